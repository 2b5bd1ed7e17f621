import { monotonicUs } from './clock.ts'

/**
 * Calls `send` at a fixed rate by the clock until `isOver` returns true, without waiting for earlier calls.
 * Resolves after the last call.
 */
export function sendAtRate(
  perSecond: number,
  send: (index: number, dueUs: number) => void,
  isOver: (next: number) => boolean,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const startUs = monotonicUs()
  let next = 0
  const tick = (): void => {
    for (; !isOver(next); next++) {
      const dueUs = startUs + (next * 1_000_000) / perSecond
      if (dueUs > monotonicUs()) {
        setTimeout(tick, 1)
        return
      }
      send(next, dueUs)
    }
    resolve()
  }
  tick()
  return promise
}
