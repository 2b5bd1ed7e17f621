import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type StoppedProcess, stopInTime } from '../../../../src/roles/processes/stop-process.ts'

const shutdownTimeoutMs = 10_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
})

type Plan = { readonly isStarting: boolean; readonly startedAfterMs?: number; readonly endsAfterMs: number }

/** Stops processes that take some time to end. Returns the numbers of those that were killed, in order. */
async function stopAll(plans: readonly Plan[]): Promise<number[]> {
  const killed: number[] = []
  const processes = plans.map(({ isStarting, startedAfterMs, endsAfterMs }, index): StoppedProcess => {
    let isStillStarting = isStarting
    if (startedAfterMs !== undefined) setTimeout(() => (isStillStarting = false), startedAfterMs)
    const ended = Promise.withResolvers<Awaited<StoppedProcess['ended']>>()
    return {
      number: index + 1,
      get isStarting() {
        return isStillStarting
      },
      ended: ended.promise,
      terminate() {
        setTimeout(() => ended.resolve({ code: 0, signal: null, failure: undefined }), endsAfterMs)
      },
      kill: () => ended.resolve({ code: null, signal: 'SIGKILL', failure: undefined }),
    }
  })
  const stopped = Promise.all(
    processes.map((one) => stopInTime(one, shutdownTimeoutMs, ({ number }) => killed.push(number))),
  )
  await vi.advanceTimersByTimeAsync(60_000)
  await stopped
  return killed
}

test('a process that delivers may drain, although another one has not started yet', async () => {
  const killed = await stopAll([
    { isStarting: false, endsAfterMs: 9_500 },
    { isStarting: true, endsAfterMs: 100 },
  ])
  expect(killed).toEqual([])
})

test('a process whose start is reported after the signal has the time to drain too', async () => {
  const killed = await stopAll([{ isStarting: true, startedAfterMs: 5, endsAfterMs: 9_500 }])
  expect(killed).toEqual([])
})

test('a process that hangs is killed, sooner if it has not started yet', async () => {
  const killed = await stopAll([
    { isStarting: false, endsAfterMs: 30_000 },
    { isStarting: true, endsAfterMs: 30_000 },
  ])
  expect(killed).toEqual([2, 1])
})
