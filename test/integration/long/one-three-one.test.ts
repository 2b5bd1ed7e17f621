import { setTimeout as passTime } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { ChangingGroup } from '../../support/changing-group.ts'
import { type Report, underLoad } from '../../support/group-load.ts'
import { until } from '../../support/until.ts'

/** The time in milliseconds for which the group stays unchanged under load, between two changes. */
const betweenMs = 2_000

test('from one worker to three and back to one under load, nothing is lost and nothing is repeated', async () => {
  const report = await underLoad({ workers: 1, change: toThreeAndBack })
  print(report)
  expect(timesOf(report)).toEqual(once)
})

test('workers with instance ids that leave when they stop do the same, and their partitions move at once', async () => {
  const report = await underLoad({
    workers: 1,
    // The Helm chart sets these variables if pods are scaled. The session is longer than the test waits for
    // partitions.
    variablesOf: (name) => ({
      SLUICE_KAFKA_INSTANCE_ID: `pod-${name}`,
      SLUICE_KAFKA_LEAVE_ON_STOP: 'true',
      SLUICE_KAFKA_SESSION_TIMEOUT: '3m',
    }),
    async change(group) {
      await toThreeAndBack(group)
      const all = sharesOf(group, 'w1')[0]
      const left = new Set(group.changes.flatMap(({ kind, worker }) => (kind === 'leave' ? [worker] : [])))
      const last = [...group.logs.keys()].find((worker) => !left.has(worker)) ?? ''
      await until('the last one has all partitions', () => sharesOf(group, last).at(-1) === all)
    },
  })
  print(report)
  expect(timesOf(report)).toEqual(once)
})

async function toThreeAndBack(group: ChangingGroup): Promise<void> {
  await passTime(betweenMs)
  await Promise.all([group.join(), group.join()])
  await passTime(betweenMs)
  // The worker that was there first leaves too.
  await Promise.all([group.leave(0), group.leave(1)])
  expect(group.size).toBe(1)
  await passTime(betweenMs)
}

/** Returns the number of partitions that a worker got at each of its joins. */
function sharesOf({ logs }: ChangingGroup, worker: string): unknown[] {
  const log = logs.get(worker) ?? []
  return log.filter(({ msg }) => msg === 'joined the group').map((line) => line['partitions'])
}

const once = { gaps: [], repeats: [], changes: ['join', 'join', 'join', 'leave', 'leave'] }

function timesOf({ gaps, repeats, changes }: Report): object {
  return { gaps, repeats, changes: changes.map(({ kind }) => kind).slice(0, 5) }
}

/** Prints the figures of a report. If messages were lost or repeated, also prints what the workers logged. */
function print({ gaps, repeats, produced, deliveries, longestPauseMs, log }: Report): void {
  process.stdout.write(
    `from 1 to 3 to 1 workers: ${produced} messages, ${deliveries} deliveries, ${gaps.length} lost, ${repeats.length} repeated, ` +
      `${longestPauseMs} ms without any at the most\n`,
  )
  if (gaps.length === 0 && repeats.length === 0) return
  for (const { ms, text } of log) process.stdout.write(`${new Date(ms).toISOString()} ${text}\n`)
}
