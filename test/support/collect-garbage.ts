import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** V8's own: collects all garbage of this process at once, or only that of what is young. */
export const collectGarbage: (options?: { type: 'minor' }) => void = runInNewContext('gc')
