import { setImmediate as turn } from 'node:timers/promises'
import { install } from '@sinonjs/fake-timers'

/**
 * A clock that goes from event to event: while it runs, the timers, `Date` and `performance.now` of this process are its own, and hours
 * pass in seconds. What is waited for by real sockets or files waits for ever.
 */
export type VirtualTime = {
  /** Lets all happen in its order, and what each event leads to at once, until `isOver` says so or nothing is to come. */
  run(isOver: () => boolean): Promise<void>
  /** Events that have happened. */
  readonly events: number
  /** Gives the process its own clock back. */
  end(): void
}

/** `performance.now` begins a while after 0: 0 means never to some. */
const headStartMs = 60_000

/** Begins at `startMs` (epoch milliseconds). Only one at a time. */
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
      while (!isOver() && clock.countTimers() > 0) {
        clock.next()
        events++
        // A turn of the real event loop: all that has been resolved goes on, as far as it can.
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
