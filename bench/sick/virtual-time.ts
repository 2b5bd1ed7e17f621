import { setImmediate as turn } from 'node:timers/promises'
import { install } from '@sinonjs/fake-timers'

/**
 * A virtual clock that jumps from event to event, so that hours pass in seconds. It replaces the timers,
 * `Date` and `performance.now` of this process. Code that waits for real sockets or files waits forever.
 */
export type VirtualTime = {
  /**
   * Runs the events in order of time, each with all that it causes at once. Resolves when `isOver` returns
   * true or no event is left.
   */
  run(isOver: () => boolean): Promise<void>
  readonly events: number
  /** Restores the real clock of the process. */
  end(): void
}

/** The first value of `performance.now`. It isn't 0, because some code uses 0 for "never". */
const headStartMs = 60_000

/** Starts a virtual clock at `startMs` (epoch milliseconds). Only one clock may run at a time. */
export function startVirtualTime(startMs: number): VirtualTime {
  const clock = install({
    now: startMs - headStartMs,
    toFake: [
      'setTimeout',
      'clearTimeout',
      'setInterval',
      'clearInterval',
      'setImmediate',
      'clearImmediate',
      'Date',
      'performance',
    ],
  })
  clock.tick(headStartMs)
  let events = 0
  return {
    async run(isOver) {
      // What was started before the run sets its first timers now. Otherwise, the clock would jump over them.
      await turn()
      while (!isOver() && clock.countTimers() > 0) {
        clock.next()
        events++
        // After a turn of the real event loop, all code behind settled promises has run as far as it can.
        await turn()
      }
    },
    get events() {
      return events
    },
    end() {
      clock.uninstall()
    },
  }
}
