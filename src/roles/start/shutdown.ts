import process from 'node:process'

// The effect of SIGTERM and SIGINT. `runRole` waits for the first signal. Then `Parts` stops the parts that
// the role has started, in reverse order:
//
// - A worker starts no further delivery, finishes the deliveries in flight, parks the deliveries that wait,
//   commits and leaves the group, within `shutdown.timeout`.
// - A gateway is no longer ready, but still accepts connections for `gateway.shutdownDelay`. Then it answers
//   the open requests and closes.
// - A primary of several processes passes the signal on, and ends when all of them have ended.
//
// The exit code is 0. On a second signal the process ends at once with exit code 130.

/**
 * How long after the first signal further signals are ignored, in milliseconds. Under `npx` and `npm run` one
 * Ctrl-C may arrive twice, from the terminal and from npm.
 */
const secondSignalAfterMs = 1_000

/** Resolves at the first SIGINT or SIGTERM. In a forked process, also resolves when the primary has ended. */
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
