import { statSync } from 'node:fs'

/** Shortest time between two checks of a file. */
const everyMs = 5_000

/**
 * Tells its callers whether a file has changed. The check needs no timer and no thread of libuv, only one
 * system call every few seconds.
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
   * Returns true if the file has changed since the last call, and also on the first call. A file that appears
   * or disappears has changed too. Within five seconds of the last check of the file, this method returns
   * false without checking.
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

  /** Makes the next check find a change, because the file could not be read. */
  checkAgain(): void {
    this.#state = ''
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
