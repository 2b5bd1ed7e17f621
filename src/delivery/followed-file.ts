import { statSync } from 'node:fs'

/** How often a file is looked at, at most. */
const everyMs = 5_000

/**
 * Tells when a file has changed, to those who ask: no timer, no thread of libuv's, and a single call of the
 * system each few seconds.
 */
export class FollowedFile {
  readonly path: string
  readonly #now: () => number
  #state = ''
  #lookedMs = -Infinity

  constructor(path: string, now: () => number) {
    this.path = path
    this.#now = now
  }

  /**
   * Whether it has changed since this was last asked; true for the first time. A file that isn't there is a
   * state too.
   */
  hasChanged(): boolean {
    const nowMs = this.#now()
    if (nowMs - this.#lookedMs < everyMs) return false
    this.#lookedMs = nowMs
    const state = stateOf(this.path)
    if (state === this.#state) return false
    this.#state = state
    return true
  }
}

function stateOf(path: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(path)
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
  } catch {
    return 'none'
  }
}
