import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { produce, type SeenRecord } from '../../support/kafka.ts'
import { answer, inTurn, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** Tests of records that can't be delivered, that no destination wants, or that wait. */

let server: Receiver
let sluice: Deployment

beforeAll(async () => {
  server = await startReceiver({
    '/up': answer(200),
    '/down': answer(500),
    '/recovers': inTurn(answer(500), answer(200)),
  })
  sluice = await deploy({
    destinations: [
      destination('up'),
      destination('down'),
      destination('recovers'),
      destination('off', { state: 'off' }),
      destination('orders', { filter: { types: ['track'], events: ['Order Completed'] } }),
    ],
    otherSources: [{ id: 'unconnected' }, { id: 'disabled', enabled: false }],
    variables: {
      SLUICE_RETRY_LADDER: '1s,5m',
      SLUICE_RETRY_THEN: '5m',
      SLUICE_RETRY_LIMIT: '1h',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

function destination(id: string, rest: Partial<DestinationEntry> = {}): DestinationEntry {
  return { id, sources: [id], hooks: [{ url: `${server.origin}/${id}` }], ...rest }
}

function ping(messageId: string, fields: object = {}): object {
  return { type: 'track', userId: 'u1', event: 'Ping', messageId, ...fields }
}

async function arrived(path: string, messageId: string): Promise<void> {
  await until(`${messageId} came at ${path}`, () => messageIdsAt(path).includes(messageId))
}

function messageIdsAt(path: string): string[] {
  return server.requestsTo(path).map(({ body }) => JSON.parse(body.toString()).messageId)
}

function lagOfEvents(): Promise<number> {
  return sluice.worker.metric('sluice_consumer_lag_records', { topic: `${sluice.prefix}events` })
}

function attempts(): Promise<number> {
  return sluice.worker.metric('sluice_attempts_total')
}

function deadLetters(): Promise<number> {
  return sluice.worker.metric('sluice_dead_letters_total')
}

describe('a record that can not be delivered', () => {
  let dead: SeenRecord[]

  const good = JSON.stringify(ping('good'))
  const refusals: { reason: string; value: string | Buffer | null; headers?: Record<string, string> }[] = [
    { reason: 'not_json', value: '{"type":"track",' },
    {
      reason: 'not_utf8',
      value: Buffer.concat([Buffer.from('{"type":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
    },
    { reason: 'empty_value', value: null },
    { reason: 'not_an_object', value: '[]' },
    { reason: 'unknown_type', value: '{"type":"purchase","userId":"u1"}' },
    { reason: 'no_user_anon_id', value: '{"type":"track","event":"E"}' },
    {
      reason: 'number_out_of_range',
      value: '{"type":"track","userId":"u1","event":"E","properties":{"a":1e999}}',
    },
    { reason: 'no_source', value: good, headers: {} },
    { reason: 'unknown_source', value: good, headers: { 'source-id': 'nobody' } },
  ]

  beforeAll(async () => {
    await produce(
      `${sluice.prefix}events`,
      refusals.map(({ reason, value, headers = { 'source-id': 'up' } }) => ({
        key: `key of ${reason}`,
        partition: 1,
        headers: { trace: 't', ...headers },
        value,
      })),
    )
    dead = await sluice.read('dead-letters', refusals.length)
  })

  test.each(refusals)(
    'goes to the dead letters as it is, with its reason: $reason',
    ({ reason, value, headers }) => {
      const record = dead.find((candidate) => candidate.key === `key of ${reason}`)
      expect(record?.headers).toMatchObject({ reason, ...headers })
      expect(record?.headers['detail']).toMatch(/\S/)
      expect(record?.headers['origin']).toBe(
        `${sluice.prefix}events/1/${refusals.findIndex((row) => row.reason === reason)}`,
      )
      expect(record?.partition).toBe(1)
      expect(record?.value).toEqual(value === null ? null : Buffer.from(value))
    },
  )

  test('is one dead letter each', async () => {
    expect(dead).toHaveLength(refusals.length)
    for (const { reason } of refusals) {
      // Readers may see a record before its writer knows that it is written.
      await until(
        `${reason} is counted`,
        async () => (await sluice.worker.metric('sluice_dead_letters_total', { reason })) === 1,
      )
    }
  })

  test('stops nothing: the partition goes on', async () => {
    await sluice.send('up', [{ partition: 1, value: ping('behind-the-bad') }])
    await arrived('/up', 'behind-the-bad')
    expect(await until('all of it is settled', async () => (await lagOfEvents()) === 0)).toBe(true)
  })

  test('also on a retry topic, where a stranger put it', async () => {
    const topic = `${sluice.prefix}retry.1s`
    await produce(topic, [{ key: 'stranger', partition: 2, value: good, headers: { rung: 'first' } }])
    const records = await sluice.read('dead-letters', refusals.length + 1)
    const record = records.find(({ key }) => key === 'stranger')
    expect(record?.headers).toMatchObject({ reason: 'bad_retry_headers', origin: `${topic}/2/0` })
    expect(record?.headers['detail']).toContain('rung is not a whole number')
    expect(record?.value?.toString()).toBe(good)
    await until('it is counted', async () => (await deadLetters()) === refusals.length + 1)
  })
})

describe('a message that is routed to nobody', () => {
  test.each([
    { source: 'unconnected', reason: 'no_destination', message: ping('nobody-1') },
    { source: 'disabled', reason: 'source_disabled', message: ping('nobody-2') },
    { source: 'off', reason: 'destination_off', message: ping('nobody-3') },
    {
      source: 'up',
      reason: 'filtered_by_integrations',
      message: ping('nobody-4', { integrations: { All: false } }),
    },
    { source: 'orders', reason: 'filtered_by_destination', message: ping('nobody-5') },
  ])('is settled, and counted: $reason', async ({ source, reason, message }) => {
    const before = { attempts: await attempts(), deadLetters: await deadLetters() }
    await sluice.send(source, [{ value: message }])
    await until('it is counted', () => sluice.worker.metric('sluice_not_routed_total', { reason }))
    await until('it is settled', async () => (await lagOfEvents()) === 0)
    expect({ attempts: await attempts(), deadLetters: await deadLetters() }).toEqual(before)
  })
})

test('a destination with a filter gets only the messages that pass', async () => {
  await sluice.send('orders', [
    { value: ping('ping') },
    { value: { type: 'page', userId: 'u1', messageId: 'page' } },
    { value: ping('order', { event: 'Order Completed' }) },
    { value: { type: 'delete', userId: 'u1', messageId: 'delete' } },
  ])
  await arrived('/orders', 'order')
  await arrived('/orders', 'delete')
  await until('all are settled', async () => (await lagOfEvents()) === 0)
  expect(messageIdsAt('/orders').toSorted()).toEqual(['delete', 'order'])
})

describe('while 1,000 deliveries wait on a tier', () => {
  const count = 1_000

  beforeAll(async () => {
    await sluice.send(
      'down',
      Array.from({ length: count }, (_, i) => ({ key: `u${i}`, value: ping(`waits-${i}`) })),
    )
    await until(
      'all wait on the tier of 5 minutes',
      async () => (await sluice.worker.metric('sluice_parked_records', { tier: '5m' })) === count,
    )
  })

  test('none of them is in memory', async () => {
    await until('all is settled', async () => (await sluice.worker.metric('sluice_held_records')) === 0)
    expect(await sluice.worker.metric('sluice_held_bytes')).toBe(0)
    expect(await sluice.worker.metric('sluice_parked_records', { tier: '5m' })).toBe(count)
    expect(await sluice.worker.metric('sluice_records_total', { topic: 'retry.5m' })).toBe(0)
  })

  test('the metrics tell when the first is due', async () => {
    const records = await sluice.read('retry.5m')
    const dueMs = Math.min(...records.map(({ timestamp }) => timestamp)) + 5 * 60_000
    const told = () => sluice.worker.metric('sluice_oldest_due_timestamp_seconds', { tier: '5m' })
    // Each partition has its own first record, which the worker learns at its own time.
    expect(await until('it is told', async () => (await told()) === dueMs / 1_000)).toBe(true)
  })

  test('fresh events are delivered in all partitions', async () => {
    for (const partition of [0, 1, 2]) {
      await sluice.send('up', [{ partition, value: ping(`fresh-${partition}`) }])
      await arrived('/up', `fresh-${partition}`)
    }
    expect(messageIdsAt('/up')).toEqual(expect.arrayContaining(['fresh-0', 'fresh-1', 'fresh-2']))
  })

  test('the other tiers go on', async () => {
    const delivered = () => sluice.worker.metric('sluice_deliveries_total', { verdict: 'delivered' })
    const before = await delivered()
    await sluice.send('recovers', [{ value: ping('comes-back') }])
    await until('it is delivered by a later attempt', async () => (await delivered()) === before + 1)
    expect(messageIdsAt('/recovers')).toEqual(['comes-back', 'comes-back'])
    await until('none is held', async () => (await sluice.worker.metric('sluice_held_records')) === 0)
  })
})
