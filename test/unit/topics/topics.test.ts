import { expect, test } from 'vitest'
import { writtenBy } from '../../../src/topics/topic-list.ts'
import { groupSubscriptions, isRead, topicNames, topicTable } from '../../../src/topics/topics.ts'

const day = 86_400_000
const hour = 3_600_000
const layout = {
  prefix: 'sluice.',
  partitions: 12,
  generation: 1,
  replication: 3,
  minInsync: 2,
  retryLimitMs: 4 * hour,
  tiers: ['1m', '1h'],
  maxMessageBytes: 512 * 1024,
  attemptsKeptMs: 7 * 86_400_000,
}
const table = topicTable(layout)

function settingsOf(topic: string): Record<string, string> {
  const settings = table.find((definition) => definition.topic === topic)?.settings ?? []
  return Object.fromEntries(settings.map(({ name, value }) => [name, value]))
}

test('memberships keeps the latest record of each key, none younger than a week goes, and a deletion stays a month', () => {
  expect(settingsOf('sluice.memberships')).toMatchObject({
    'cleanup.policy': 'compact',
    'min.compaction.lag.ms': String(7 * day),
    'delete.retention.ms': String(30 * day),
    'message.timestamp.type': 'LogAppendTime',
    'min.insync.replicas': '2',
  })
})

test('memberships takes records as large as a retry topic does', () => {
  const name = 'max.message.bytes'
  expect(settingsOf('sluice.memberships')[name]).toBe(settingsOf('sluice.retry.1m')[name])
})

test('all other topics drop what has its age', () => {
  const compacted = new Set([
    'sluice.memberships',
    'sluice.backfills',
    'sluice.replay-jobs',
    'sluice.notices',
    'sluice.waiting-marks',
    'sluice.health',
  ])
  const others = table.filter(({ topic }) => !compacted.has(topic))
  expect(others.map(({ topic }) => settingsOf(topic)['cleanup.policy'])).toEqual(others.map(() => 'delete'))
})

test('what was replayed, and by whom, is known for 90 days', () => {
  expect(settingsOf('sluice.replay-jobs')).toMatchObject({
    'cleanup.policy': 'compact,delete',
    'retention.ms': String(90 * day),
    'retention.bytes': '-1',
  })
})

test.each([
  { limit: 'four hours', retryLimitMs: 4 * hour },
  { limit: 'two days', retryLimitMs: 48 * hour },
])(
  'what waits outlives an outage as long as events are kept, after all its retries of $limit',
  ({ retryLimitMs }) => {
    const settings = new Map(
      topicTable({ ...layout, retryLimitMs }).map((topic) => [topic.topic, topic.settings]),
    )
    const keptMs = (topic: string) =>
      Number(settings.get(topic)?.find(({ name }) => name === 'retention.ms')?.value)
    for (const topic of ['sluice.retry.1m', 'sluice.retry.1h', 'sluice.replays'])
      expect(keptMs(topic)).toBeGreaterThanOrEqual(keptMs('sluice.events') + retryLimitMs)
  },
)

test('no topic drops anything for its size', () => {
  const dropping = table.filter(({ topic }) => settingsOf(topic)['cleanup.policy'] === 'delete')
  expect(dropping.map(({ topic }) => settingsOf(topic)['retention.bytes'])).toEqual(dropping.map(() => '-1'))
})

test('every topic has the same number of partitions, but for those that all members read', () => {
  const ofAll = new Set([
    'sluice.backfills',
    'sluice.replay-jobs',
    'sluice.notices',
    'sluice.lending',
    'sluice.health',
  ])
  const read = table.filter(({ topic }) => !ofAll.has(topic))
  expect(new Set(read.map(({ partitions }) => partitions))).toEqual(new Set([12]))
  const whole = table.filter(({ topic }) => ofAll.has(topic))
  expect(whole.map(({ partitions }) => partitions)).toEqual([1, 1, 1, 1, 1])
})

test('the group subscribes to each topic that has a subscription, and to the tiers that are there', () => {
  const names = topicNames({ prefix: 's.', generation: 2 })
  const tiers = [{ topic: 's.g2.retry.7m', waitMs: 420_000 }]
  expect(groupSubscriptions(names, tiers)).toEqual([
    { topic: 's.events', waitMs: 0, notesPassedOn: true },
    { topic: 's.audience-changes', waitMs: 0, needsState: true, hasWindow: false },
    { topic: 's.deletions', waitMs: 0, needsState: true },
    { topic: 's.g2.memberships', waitMs: 0, needsState: true },
    { topic: 's.g2.replays', waitMs: 0, needsState: true },
    { topic: 's.g2.waiting', waitMs: 0, needsState: true, hasWindow: false, isPulled: true },
    { topic: 's.g2.retry.7m', waitMs: 420_000, needsState: true },
  ])
  expect(isRead(names, 's.g2.retry.30s')).toBe(true)
  expect(isRead(names, 's.dead-letters')).toBe(false)
})

test('a gateway writes what it takes, and nothing else', () => {
  expect(writtenBy('gateway')).toEqual(['events', 'audienceChanges', 'deletions'])
})
