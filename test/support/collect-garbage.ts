import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/**
 * V8's function `gc`. Collects all garbage of this process at once, or with `type: 'minor'` only young
 * objects.
 */
export const collectGarbage: (options?: { type: 'minor' }) => void = runInNewContext('gc')
