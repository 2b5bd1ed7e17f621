import { expect, onTestFinished, test } from 'vitest'
import { encodeJobRecord, type JobOrder } from '../../../src/replay/job.ts'
import { JobLog, type EncodedJobRecord } from '../../../src/replay/job-log.ts'
import { JobRun, type Written } from '../../../src/replay/job-run.ts'
import { stateOf } from '../../../src/replay/jobs.ts'
import type { Pieces } from '../../../src/replay/pieces.ts'
import { ReplayRunner } from '../../../src/replay/runner.ts'
import { until } from '../../support/until.ts'

/** Returns the log of replays, which holds one replay, by default of 10 records. Its topic is in memory. */
async function logOfOne(ranges: JobOrder['ranges'] = [{ start: 0, end: 10 }]): Promise<JobLog> {
  const records: EncodedJobRecord[] = []
  const log = new JobLog({
    async *read(from) {
      yield records.slice(from).map((record, index) => ({ ...record, offset: from + index }))
    },
    write: async (written) => void records.push(...written),
    isAudited: true,
  })
  const order = {
    id: 'job-1',
    selection: { from: 'dead-letters' },
    perSecond: 1_000,
    by: 'ann',
    atMs: 1,
    ranges,
  } as const
  await log.write({ kind: 'order', order })
  await log.update()
  return log
}

/** A record that the replay sends to the destination `crm`. */
const sent = {
  topic: 'replays',
  partition: 0,
  key: null,
  value: Buffer.from('{}'),
  headers: { 'destination-id': 'crm' },
}

const bare = { key: null, value: null, headers: {}, timestampMs: 0, partition: 0 }

/** Runs the replay. Each record that is read is sent, unless it has a key. `left` says how many are not settled. */
async function run(
  log: JobLog,
  owner: string,
  piece: Pieces['piece'],
  left: (written: Written) => Promise<number | undefined> = async () => 0,
): Promise<void> {
  const job = log.jobs.get('job-1')
  if (job === undefined) throw new Error('there is no such replay')
  const one = new JobRun({
    job,
    owner,
    log,
    pieces: { piece },
    choose: ({ key }) =>
      key === null ? { kind: 'send', records: [sent] } : { kind: 'left_out', why: 'source_off' },
    produce: async () => 'acknowledged',
    isOwner: () => true,
    backlog: async () => 0,
    remainder: (written) => ({ left: () => left(written) }),
    onSent() {},
    signal: new AbortController().signal,
  })
  try {
    await one.go()
  } finally {
    await log.update()
  }
}

async function fails(): Promise<never> {
  throw new Error('Kafka does not answer')
}

test('the audit trail says who takes a replay over, and not that an owner tries again', async () => {
  const log = await logOfOne()
  for (let time = 1; time <= 2; time++) await expect(run(log, 'w1', fails)).rejects.toThrow('does not answer')
  await run(log, 'w2', async ({ to }) => ({ records: [], next: to }))
  expect(log.jobs.audit.all.map(({ by, action }) => `${by} ${action}`)).toEqual([
    'w1 begun',
    'w2 taken_over',
    'w2 done',
  ])
  expect(log.jobs.get('job-1')?.progress).toMatchObject({ owner: 'w2', isOver: true })
})

test('the tries of an owner write one record of progress, however many they are', async () => {
  const log = await logOfOne()
  const keys = new Set<string>()
  const write = log.write.bind(log)
  log.write = async (...records) => {
    for (const record of records) keys.add(encodeJobRecord(record).key.toString())
    await write(...records)
  }
  for (let time = 1; time <= 2; time++) await expect(run(log, 'w1', fails)).rejects.toThrow('does not answer')
  expect([...keys].filter((key) => key.includes('progress'))).toEqual(['["job-1","progress",1]'])
  expect(log.jobs.get('job-1')?.progress).toMatchObject({ term: 1, note: 1, owner: 'w1' })
  await run(log, 'w2', async ({ to }) => ({ records: [], next: to }))
  expect(log.jobs.get('job-1')?.progress).toMatchObject({ term: 2, owner: 'w2', isOver: true })
})

test('the progress says which selected records were not sent, so that a later replay sends them', async () => {
  const log = await logOfOne()
  const key = Buffer.from('left out')
  const records = [3, 4, 5].map((offset) => ({ ...bare, offset, key: offset === 4 ? null : key }))
  await run(log, 'w1', async ({ to }) => ({ records, next: to }))
  expect(log.jobs.get('job-1')?.progress).toMatchObject({
    unsent: [
      [0, 3, 4],
      [0, 5, 6],
    ],
  })
})

test('a partition that can not be read holds up no other, and is read as soon as it can be', async () => {
  const log = await logOfOne([
    { start: 0, end: 10 },
    { start: 0, end: 30 },
    { start: 0, end: 10 },
  ])
  const read: string[] = []
  await run(log, 'w1', async ({ partition, from, to, stallTimeoutMs }) => {
    // The first partition has a leader again when all others are read.
    if (partition === 0 && stallTimeoutMs !== undefined) {
      read.push('no leader')
      throw new Error('logs/0 has no leader')
    }
    read.push(`${partition}/${from}`)
    return { records: [], next: Math.min(to, from + 10) }
  })
  expect(read).toEqual(['no leader', '1/0', '2/0', '1/10', '1/20', '0/0'])
  expect(log.jobs.get('job-1')?.progress).toMatchObject({ isOver: true })
})

test('a replay stops, and says why, if its topic has lost the records that it was to read', async () => {
  const log = await logOfOne()
  await run(log, 'w1', async () => 'lost')
  const job = log.jobs.get('job-1')
  expect(job && stateOf(job)).toBe('stopped')
  expect(job?.wish.detail).toContain('partition 0 ends before offset 10')
  expect(log.jobs.audit.all.map(({ action }) => action)).toEqual(['begun', 'stopped'])
})

test('a replay stops, and says why, if its topic was created again', async () => {
  const log = await logOfOne()
  await run(log, 'w1', async () => 'recreated')
  const job = log.jobs.get('job-1')
  expect(job && stateOf(job)).toBe('stopped')
  expect(job?.wish.detail).toContain('was deleted and created again')
})

const one: Pieces['piece'] = async ({ to }) => ({ records: [{ ...bare, offset: to - 1 }], next: to })

test('a replay whose records are all handed over is done only when none of them waits, and says how many do', async () => {
  const log = await logOfOne()
  const states: unknown[] = []
  const lefts = [1, undefined, 1, 0]
  await run(log, 'w1', one, async (written) => {
    expect(written).toEqual({ records: 1, destinationIds: new Set(['crm']) })
    await log.update()
    const job = log.jobs.get('job-1')
    states.push([job && stateOf(job), job?.progress?.waits])
    return lefts.shift()
  })
  expect(states).toEqual([
    ['delivering', undefined],
    ['delivering', 1],
    ['delivering', undefined],
    ['delivering', 1],
  ])
  const job = log.jobs.get('job-1')
  expect(job && stateOf(job)).toBe('done')
  expect(log.jobs.audit.all.map(({ action }) => action)).toEqual(['begun', 'done'])
})

test('another owner goes on waiting, and sends nothing again', async () => {
  const log = await logOfOne()
  await expect(run(log, 'w1', one, fails)).rejects.toThrow('does not answer')
  const known: Written[] = []
  await run(log, 'w2', fails, async (written) => {
    known.push(written)
    return 0
  })
  // It can't know for which destinations the former owner's records were.
  expect(known).toEqual([{ records: 1, destinationIds: undefined }])
  expect(log.jobs.get('job-1')?.progress).toMatchObject({ isOver: true, done: { records: 1 } })
})

test('a worker that has not heard from its group takes no replay from the worker that may own it now', async () => {
  const log = await logOfOne()
  let reads = 0
  const update = log.update.bind(log)
  log.update = () => {
    reads++
    return update()
  }
  let isMember = false
  const runner = new ReplayRunner({
    owner: 'w1',
    partitions: 1,
    log,
    open: () => ({
      pieces: { piece: async ({ to }) => ({ records: [], next: to }) },
      choose: () => ({ kind: 'no' }),
    }),
    produce: async () => 'acknowledged',
    isOwner: () => isMember,
    backlog: async () => 0,
    remainder: () => ({ left: async () => 0 }),
    observer: { begun() {}, sent() {}, ended() {}, failed() {} },
  })
  onTestFinished(() => runner.stop())
  runner.acquire(0)
  await until('it has looked', () => reads >= 3)
  await update()
  expect(log.jobs.get('job-1')?.progress).toBeUndefined()
  isMember = true
  await until('it does the replay', () => log.jobs.get('job-1')?.progress?.isOver === true)
})
