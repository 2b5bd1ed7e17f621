import { describe, expect, test } from 'vitest'
import type { Pipeline, WaitingQueue } from '../../../src/pipeline/pipeline-ports.ts'
import { destinationOf, failed, type Stage, stage, taken, TestRecord } from './stage.ts'
import { takingQueue } from './taking-queue.ts'

/**
 * Tests of records with several deliveries at the time when their unit goes to another owner. The next owner
 * makes all deliveries of a record that is given back, so none of them may be queued or begun.
 */

type Scene = {
  all: Stage
  /** The destinations of the deliveries that were queued. */
  queued: string[]
}

/** A pipeline in which deliveries for `mailer` have to join its queue, and those for `crm` don't. */
function scene(ids: readonly string[], settings: Partial<WaitingQueue> = {}): Scene {
  const queued: string[] = []
  const queue: WaitingQueue = {
    ...takingQueue(() => {}, { has: ({ destinationId }) => destinationId === 'mailer' }),
    async append(_source, destinationId) {
      queued.push(destinationId)
      return 'acknowledged'
    },
    ...settings,
  }
  const all = stage({
    sources: { shop: {}, space: { kind: 'audiences' } },
    destinations: ids.map((id) => destinationOf(id, { sources: ['shop', 'space'], maxInFlight: 1 })),
    queue,
  })
  return { all, queued }
}

const track = Buffer.from('{"type":"track","event":"e","userId":"u"}')
const headers = { 'source-id': 'shop' }

function sendEvent({ pipeline }: Stage): TestRecord {
  const record = new TestRecord('events', 1)
  pipeline.accept(record, { key: Buffer.from('u'), value: track, headers })
  return record
}

const retryHeaders = {
  ...headers,
  'destination-id': 'mailer',
  'message-id': 'm',
  'message-type': 'track',
  'first-seen': '0',
  origin: 'events/2/1',
  attempts: '1',
  rung: '1',
  'expires-at': '0',
}
const toCrm = { 'destination-id': 'crm' }
const retried = { key: Buffer.from('u'), value: track, headers: retryHeaders }

const entries: Record<string, (pipeline: Pipeline, record: TestRecord) => void> = {
  deletions: (pipeline, record) =>
    pipeline.acceptDelete(record, {
      userId: 'u',
      deletes: [{ sourceId: 'shop', messageId: 'm', body: Buffer.from('{"type":"delete","userId":"u"}') }],
    }),
  events: (pipeline, record) => pipeline.accept(record, { key: Buffer.from('u'), value: track, headers }),
  memberships: (pipeline, record) =>
    pipeline.acceptIdentify(record, {
      kind: 'identify',
      userId: 'u',
      spaceId: 'space',
      property: 'p',
      since: 's',
      messageId: 'm',
      body: Buffer.from('v'),
    }),
  'retry.1m': (pipeline, record) => pipeline.accept(record, retried),
  'retry.10m': (pipeline, record) => pipeline.acceptRecalled(record, retried),
  waiting: (pipeline, record) => pipeline.acceptWaiting(record, retried, 'retry'),
}

describe.each(Object.entries(entries))('a record of %s that comes too late', (topic, enter) => {
  test.each([[['crm', 'mailer', 'ads']], [['mailer', 'ads', 'crm']]])(
    'is given back after its unit was lost, and nothing of it is queued: %s',
    async (ids) => {
      const { all, queued } = scene(ids)
      const record = new TestRecord(topic, 1, { isAbandoned: true })
      enter(all.pipeline, record)
      await all.settle()
      expect([record.givenBack, record.settled]).toEqual([1, 0])
      expect([queued, all.written, all.bodies()]).toEqual([[], [], []])
      expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
    },
  )

  test('is given back while the worker stops', async () => {
    const { all, queued } = scene(['crm', 'mailer'])
    await all.pipeline.drain()
    const record = new TestRecord(topic, 1)
    enter(all.pipeline, record)
    await all.settle()
    expect([record.givenBack, record.settled, queued]).toEqual([1, 0, []])
    expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
  })
})

test('a superseded value that comes too late is given back too, so that the next owner outlasts it', async () => {
  const { all, queued } = scene(['crm', 'mailer'])
  const record = all.identify('v', { isSuperseded: true, isAbandoned: true, mayHaveBegun: true })
  await all.settle()
  expect([record.givenBack, record.settled, queued, all.written]).toEqual([1, 0, [], []])
})

/** Hands in two events, and loses their unit while the first is under way at `crm`. */
async function loseAfterTwo(all: Stage): Promise<TestRecord[]> {
  const records = [sendEvent(all), sendEvent(all)]
  expect(all.posted.map(({ to }) => to)).toEqual(['crm'])
  for (const record of records) record.isAbandoned = true
  all.pipeline.letGoAbandoned()
  await all.answer(taken)
  return records
}

describe('when the unit of a record is lost', () => {
  const orders = [[['crm', 'mailer']], [['mailer', 'crm']]]

  test.each(orders)(
    'what waits in a lane is queued, if another delivery of its record was: %s',
    async (ids) => {
      const { all, queued } = scene(ids)
      const records = await loseAfterTwo(all)
      expect(queued).toEqual(['mailer', 'mailer', 'crm'])
      expect(records.map(({ settled, givenBack }) => [settled, givenBack])).toEqual([
        [1, 0],
        [1, 0],
      ])
    },
  )

  test.each(orders)('so it is, if an owner that was killed had queued the other one: %s', async (ids) => {
    const { all, queued } = scene(ids, { wasQueued: ({ destinationId }) => destinationId === 'mailer' })
    const [, record] = await loseAfterTwo(all)
    expect([queued, record?.settled, record?.givenBack]).toEqual([['crm'], 1, 0])
  })

  test.each(orders)('nothing is written of what its next owner makes again: %s', async (ids) => {
    const { all, queued } = scene(ids, { isOpen: false })
    all.pipeline.accept(new TestRecord('retry.1m', 0), { ...retried, headers: { ...retryHeaders, ...toCrm } })
    const record = sendEvent(all)
    expect(all.posted.map(({ to }) => to)).toEqual(['crm', 'mailer'])
    // The group has removed this member, so the next owner doesn't wait for the request to `mailer`.
    Object.assign(record, { isAbandoned: true, isElsewhere: true })
    all.pipeline.letGoAbandoned()
    all.posted[1]?.answer(failed)
    await all.settle()
    expect([record.givenBack, record.settled, all.written, queued]).toEqual([1, 0, [], []])
  })
})
