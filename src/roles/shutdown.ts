import process from 'node:process'

/**
 * What SIGTERM and SIGINT do. `runRole` waits for the first of them, and then has `Parts` stop what the role
 * has started, in reverse:
 *
 * - A worker begins nothing more, ends what is in flight, parks what waits, commits and leaves the group,
 *   within `shutdown.timeout`.
 * - A gateway is no longer ready at once, still accepts connections for `gateway.shutdownDelay`, and then
 *   drains.
 * - A primary of several processes passes the signal on, and ends when all of them have ended.
 *
 * The exit code is 0. A second signal doesn't wait: the exit code is 130.
 */

/**
 * Under `npx` and `npm run` one Ctrl-C may arrive twice, from the terminal and from npm: that isn't a second
 * one.
 */
const secondSignalAfterMs = 1_000

/** Resolves at the first SIGINT or SIGTERM, and, for one of several processes, when its primary is gone. */
export function stopRequested(isForked: boolean, onSecond: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let sinceMs: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (performance.now() - (sinceMs ?? Infinity) >= secondSignalAfterMs) onSecond()
      sinceMs ??= performance.now()
      resolve()
    })
  }
  if (isForked && process.connected) process.once('disconnect', resolve)
  else if (isForked) resolve()
  return promise
}
