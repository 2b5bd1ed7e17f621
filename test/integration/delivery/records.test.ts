import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { produce, type SeenRecord } from '../../support/kafka.ts'
import { answer, inTurn, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** What becomes of records that can't be delivered, aren't wanted, or wait; and of edits of the catalog meanwhile. */

let server: Receiver

beforeAll(async () => {
  server = await startReceiver({
    '/up': answer(200),
    '/down': answer(500),
    '/paused': answer(200),
    '/removed': answer(500),
    '/off-later': answer(500),
    '/new': answer(200),
    '/recovers': inTurn(answer(500), answer(200)),
  })
})

afterAll(() => server?.stop())

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

describe('a record that can not be delivered', () => {
  let sluice: Deployment
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
    sluice = await deploy({
      destinations: [destination('up')],
      variables: { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s', SLUICE_RETRY_LIMIT: '1s' },
    })
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

  afterAll(() => sluice?.stop())

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
      expect(await sluice.worker.metric('sluice_dead_letters_total', { reason })).toBe(1)
    }
  })

  test('stops nothing: the partition goes on', async () => {
    await sluice.send('up', [{ partition: 1, value: ping('behind-the-bad') }])
    await arrived('/up', 'behind-the-bad')
    const lag = () => sluice.worker.metric('sluice_consumer_lag_records', { topic: `${sluice.prefix}events` })
    expect(await until('all of it is settled', async () => (await lag()) === 0)).toBe(true)
  })

  test('also on a retry topic, where a stranger put it', async () => {
    const topic = `${sluice.prefix}retry.1s`
    await produce(topic, [{ key: 'stranger', partition: 2, value: good, headers: { rung: 'first' } }])
    const records = await sluice.read('dead-letters', refusals.length + 1)
    const record = records.find(({ key }) => key === 'stranger')
    expect(record?.headers).toMatchObject({ reason: 'bad_retry_headers', origin: `${topic}/2/0` })
    expect(record?.headers['detail']).toContain('rung is not a whole number')
    expect(record?.value?.toString()).toBe(good)
  })
})

describe('a message that is routed to nobody', () => {
  let sluice: Deployment

  beforeAll(async () => {
    sluice = await deploy({
      destinations: [destination('up'), destination('off', { state: 'off' })],
      otherSources: [{ id: 'unconnected' }, { id: 'disabled', enabled: false }],
    })
  })

  afterAll(() => sluice?.stop())

  test.each([
    { source: 'unconnected', reason: 'no_destination', message: ping('nobody-1') },
    { source: 'disabled', reason: 'source_disabled', message: ping('nobody-2') },
    { source: 'off', reason: 'destination_off', message: ping('nobody-3') },
    {
      source: 'up',
      reason: 'filtered_by_integrations',
      message: ping('nobody-4', { integrations: { All: false } }),
    },
  ])('is settled, and counted: $reason', async ({ source, reason, message }) => {
    await sluice.send(source, [{ value: message }])
    await until('it is counted', () => sluice.worker.metric('sluice_not_routed_total', { reason }))
    const lag = () => sluice.worker.metric('sluice_consumer_lag_records', { topic: `${sluice.prefix}events` })
    await until('it is settled', async () => (await lag()) === 0)
    expect(await sluice.worker.metric('sluice_attempts_total')).toBe(0)
    expect(await sluice.worker.metric('sluice_dead_letters_total')).toBe(0)
  })
})

function atFirst(): DestinationEntry[] {
  return [
    destination('up'),
    destination('paused', { state: 'paused' }),
    destination('removed'),
    destination('off-later'),
  ]
}

describe('the catalog is edited while messages come', () => {
  let sluice: Deployment

  beforeAll(async () => {
    sluice = await deploy({
      destinations: atFirst(),
      variables: {
        SLUICE_RETRY_LADDER: '1s,2s',
        SLUICE_RETRY_THEN: '1s',
        SLUICE_RETRY_LIMIT: '4s',
        SLUICE_METRICS_PER_DESTINATION: 'true',
      },
    })
  })

  afterAll(() => sluice?.stop())

  test('what is for a paused destination waits past the limit, and is delivered once it is on', async () => {
    const ids = ['paused-1', 'paused-2', 'paused-3']
    await sluice.send(
      'paused',
      ids.map((id) => ({ value: ping(id) })),
    )
    const parked = () => sluice.worker.metric('sluice_parked_total', { reason: 'paused' })
    // After 1 s, 2 s and 2 s more: the limit of 4 s has passed by then.
    await until('all have been parked four times', async () => (await parked()) >= 4 * ids.length)
    expect(server.requestsTo('/paused')).toEqual([])
    expect(await sluice.worker.metric('sluice_dead_letters_total')).toBe(0)

    sluice.recatalog([
      destination('up'),
      destination('paused'),
      destination('removed'),
      destination('off-later'),
    ])
    for (const id of ids) await arrived('/paused', id)
    expect(messageIdsAt('/paused').toSorted()).toEqual(ids)
  })

  test('a destination is live within a second of the edit that adds it', async () => {
    const editedMs = performance.now()
    sluice.recatalog([...atFirst(), destination('new')])
    await until(
      'it is in force',
      async () => (await sluice.worker.metric('sluice_catalog_destinations')) === atFirst().length + 1,
      { everyMs: 10 },
    )
    expect(performance.now() - editedMs).toBeLessThan(1_000)
    await sluice.send('new', [{ value: ping('to-the-new') }])
    await arrived('/new', 'to-the-new')
  })

  test('what waits for a destination that is removed or switched off becomes a dead letter', async () => {
    sluice.recatalog(atFirst())
    await sluice.send('removed', [{ key: 'removed', value: ping('for-removed') }])
    await sluice.send('off-later', [{ key: 'off-later', value: ping('for-off') }])
    await arrived('/removed', 'for-removed')
    await arrived('/off-later', 'for-off')
    sluice.recatalog([destination('up'), destination('off-later', { state: 'off' })])
    const dead = await sluice.read('dead-letters', 2)
    const reasons = Object.fromEntries(dead.map(({ key, headers }) => [key, headers['reason']]))
    expect(reasons).toEqual({ removed: 'destination_removed', 'off-later': 'destination_off' })
  })

  test('a faulty edit is refused as a whole, and the catalog before stays in force until it is repaired', async () => {
    sluice.recatalog([destination('up')])
    const inForce = () => sluice.worker.metric('sluice_catalog_destinations')
    const refused = () => sluice.worker.metric('sluice_catalog_refused')
    await until('one destination is in force', async () => (await inForce()) === 1)

    sluice.recatalog([destination('new'), destination('faulty', { hooks: [{ url: 'ftp://example.com/' }] })])
    await until('the edit is refused', async () => (await refused()) === 1)
    expect(await inForce()).toBe(1)
    await sluice.send('up', [{ value: ping('despite-the-fault') }])
    await arrived('/up', 'despite-the-fault')

    sluice.recatalog([destination('up'), destination('new')])
    await until('the repaired one is in force', async () => (await inForce()) === 2)
    expect(await refused()).toBe(0)
  })
})

describe('a cap on requests in flight that an edit lowers', () => {
  const requestMs = 200
  const count = 120
  let slow: Receiver
  let sluice: Deployment

  beforeAll(async () => {
    slow = await startReceiver((_request, response) => void setTimeout(() => response.end(), requestMs))
    sluice = await deploy({
      destinations: [slowDestination(20)],
      variables: { SLUICE_DELIVERY_TIMEOUT: '1s', SLUICE_DELIVERY_LANE_WAIT: '1m' },
    })
  })

  afterAll(async () => {
    await sluice?.stop()
    await slow?.stop()
  })

  function slowDestination(maxInFlight: number): DestinationEntry {
    return destination('slow', { hooks: [{ url: `${slow.origin}/` }], maxInFlight })
  }

  test('lets no request wait for a connection until its time is up', async () => {
    await sluice.send(
      'slow',
      Array.from({ length: count }, (_, i) => ({ value: ping(`slow-${i}`) })),
    )
    await until('the first are under way', () => slow.requests.length > 0)
    sluice.recatalog([slowDestination(2)])
    await until('all have come', () => slow.requests.length >= count)
    await until('all are over', async () => (await sluice.worker.metric('sluice_held_records')) === 0)
    expect(await sluice.worker.metric('sluice_attempts_total', { outcome: 'timeout' })).toBe(0)
    expect(slow.requests).toHaveLength(count)
  })
})

describe('while 1,000 deliveries wait on a tier', () => {
  let sluice: Deployment
  const count = 1_000

  beforeAll(async () => {
    sluice = await deploy({
      destinations: [destination('down'), destination('up'), destination('recovers')],
      variables: {
        SLUICE_RETRY_LADDER: '1s,5m',
        SLUICE_RETRY_THEN: '5m',
        SLUICE_RETRY_LIMIT: '1h',
        SLUICE_LOG_ATTEMPTS: 'false',
      },
    })
    await sluice.send(
      'down',
      Array.from({ length: count }, (_, i) => ({ key: `u${i}`, value: ping(`waits-${i}`) })),
    )
    await until(
      'all wait on the tier of 5 minutes',
      async () => (await sluice.worker.metric('sluice_parked_records', { tier: '5m' })) === count,
    )
  })

  afterAll(() => sluice?.stop())

  test('none of them is in memory', async () => {
    await until('all is settled', async () => (await sluice.worker.metric('sluice_held_records')) === 0)
    expect(await sluice.worker.metric('sluice_held_bytes')).toBe(0)
    expect(await sluice.worker.metric('sluice_parked_records', { tier: '5m' })).toBe(count)
    expect(await sluice.worker.metric('sluice_records_total', { topic: 'retry.5m' })).toBe(0)
  })

  test('the metrics tell when the first is due', async () => {
    const records = await sluice.read('retry.5m')
    const dueMs = Math.min(...records.map(({ timestamp }) => timestamp)) + 5 * 60_000
    expect(await sluice.worker.metric('sluice_oldest_due_timestamp_seconds', { tier: '5m' })).toBe(
      dueMs / 1000,
    )
  })

  test('fresh events are delivered in all partitions', async () => {
    for (const partition of [0, 1, 2]) {
      const startedMs = performance.now()
      await sluice.send('up', [{ partition, value: ping(`fresh-${partition}`) }])
      await arrived('/up', `fresh-${partition}`)
      expect(performance.now() - startedMs).toBeLessThan(5_000)
    }
  })

  test('the other tiers go on', async () => {
    const delivered = () => sluice.worker.metric('sluice_deliveries_total', { verdict: 'delivered' })
    const before = await delivered()
    await sluice.send('recovers', [{ value: ping('comes-back') }])
    await until('it is delivered by a later attempt', async () => (await delivered()) === before + 1)
    expect(messageIdsAt('/recovers')).toEqual(['comes-back', 'comes-back'])
    expect(await sluice.worker.metric('sluice_held_records')).toBe(0)
  })
})
