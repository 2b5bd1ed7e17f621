import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeadReason } from '../../../src/message/dead-letter-reasons.ts'
import { encodeRetryState } from '../../../src/retry/retry-state.ts'
import type { SeenRecord } from '../../support/kafka.ts'
import { produceRaw, type RawRecord } from '../../support/raw-batch.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, deploy } from './deployment.ts'
import { type Dead, type Delivered, type HostileRecord, sourceId } from './hostile-rows.ts'
import { hostileRecords } from './hostile-table.ts'

/**
 * Tests of records that no producer should write, each between two good records. Each hostile record is
 * delivered byte for byte as expected, or becomes a dead letter with a reason. None of them keeps other
 * records from being delivered.
 */

const partitions = 3
/**
 * The size at which a batch is written, in bytes. A larger record gets a batch in which only two good records
 * accompany it.
 */
const maxBatchBytes = 300_000
const maxResidentBytes = 512 * 1024 ** 2

let server: Receiver
let sluice: Deployment
/** The most resident memory of the worker so far, in bytes. */
let residentBytes = 0
let sampling: NodeJS.Timeout
/** The number of dead letters that the test expects so far. */
let deadLetters = 0
const goodIds: string[] = []

beforeAll(async () => {
  server = await startReceiver({ '/up': answer(200), '/down': answer(500) })
  sluice = await deploy({
    destinations: [
      { id: 'up', sources: [sourceId], hooks: [{ url: `${server.origin}/up` }] },
      { id: 'down', sources: ['down'], hooks: [{ url: `${server.origin}/down`, id: 'hook' }] },
    ],
    otherSources: [{ id: 'disabled', enabled: false }],
    variables: {
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_RETRY_LIMIT: '4s',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
  sampling = setInterval(() => {
    sluice.worker
      .metric('process_resident_memory_bytes')
      .then((bytes) => (residentBytes = Math.max(residentBytes, bytes)))
      .catch(() => undefined)
  }, 200)
})

afterAll(async () => {
  clearInterval(sampling)
  await sluice?.stop()
  await server?.stop()
})

function page(messageId: string): string {
  return JSON.stringify({ type: 'page', userId: 'u', messageId })
}

function good(): RawRecord {
  const messageId = `good-${goodIds.length}`
  goodIds.push(messageId)
  return { value: page(messageId), headers: [['source-id', sourceId]] }
}

function bodiesAt(path: string): Map<string, string> {
  return new Map(
    server.requestsTo(path).map(({ body }) => {
      const text = body.toString()
      const { messageId }: { messageId: string } = JSON.parse(text)
      return [messageId, text]
    }),
  )
}

async function allGoodArrived(): Promise<void> {
  await until('all good messages have come', () => {
    const arrived = bodiesAt('/up')
    return goodIds.every((id) => arrived.has(id))
  })
}

/** Waits until the worker has settled all records. Returns what the worker still holds. */
async function heldAfterAll(): Promise<{ records: number; bytes: number }> {
  await until('all is settled', async () => (await sluice.worker.metric('sluice_consumer_lag_records')) === 0)
  return {
    records: await sluice.worker.metric('sluice_held_records'),
    bytes: await sluice.worker.metric('sluice_held_bytes'),
  }
}

const nothing = { records: 0, bytes: 0 }

const sizeOf = ({ key, value, headers = [] }: RawRecord): number =>
  [key, value, ...headers.flat()].reduce<number>((sum, bytes) => sum + (bytes?.length ?? 0), 0)

/**
 * Writes records to a partition, with a good record before and behind each. Returns the offsets of `records`.
 */
async function produceBetweenGood(
  topic: string,
  partition: number,
  records: readonly RawRecord[],
): Promise<number[]> {
  const offsets: number[] = []
  let batch: RawRecord[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    const first = await produceRaw(topic, partition, [...batch, good()])
    offsets.push(...batch.flatMap((_record, index) => (index % 2 === 1 ? [first + index] : [])))
    batch = []
    bytes = 0
  }
  for (const record of records) {
    if (batch.length > 0 && bytes + sizeOf(record) > maxBatchBytes) await flush()
    batch.push(good(), record)
    bytes += sizeOf(record)
  }
  await flush()
  return offsets
}

type Row<Becomes> = Omit<HostileRecord, 'becomes'> & { becomes: Becomes }

function isDelivered(row: HostileRecord): row is Row<Delivered> {
  return 'body' in row.becomes
}

function isDead(row: HostileRecord): row is Row<Dead> {
  return 'reason' in row.becomes
}

const deliveredRows = hostileRecords.filter(isDelivered)
const deadRows = hostileRecords.filter(isDead)

/**
 * Returns a short text as it is. Returns the beginning and the digest of a long text, because a difference of
 * a megabyte is no help.
 */
function shown(text = ''): string {
  if (text.length < 5_000) return text
  return `${text.slice(0, 200)}… ${text.length} characters, ${createHash('sha256').update(text).digest('hex')}`
}

function withFirstBitChanged(text: string): Buffer {
  const bytes = Buffer.from(text)
  bytes[0] = (bytes[0] ?? 0) ^ 0x80
  return bytes
}

const bytesOf = (bytes: string | Buffer | null | undefined): Buffer | null =>
  bytes === null || bytes === undefined ? null : Buffer.from(bytes)

describe(`of ${hostileRecords.length} hostile records`, () => {
  /** The `partition/offset` of each row, by the name of the row. */
  const places = new Map<string, string>()
  let letters: SeenRecord[]

  beforeAll(async () => {
    for (let partition = 0; partition < partitions; partition++) {
      const rows = hostileRecords.filter((_row, index) => index % partitions === partition)
      const offsets = await produceBetweenGood(
        `${sluice.prefix}events`,
        partition,
        rows.map(({ record }) => record),
      )
      rows.forEach(({ name }, index) => places.set(name, `${partition}/${offsets[index]}`))
    }
    deadLetters += deadRows.length
    letters = await sluice.read('dead-letters', deadLetters)
    await allGoodArrived()
  })

  test('there are more than a hundred, each with a name of its own', () => {
    expect(hostileRecords.length).toBeGreaterThan(100)
    expect(places.size).toBe(hostileRecords.length)
  })

  test.each(deliveredRows)('one is delivered to the byte: $name', async ({ name, becomes }) => {
    const madeId = `${sluice.prefix}events-${(places.get(name) ?? '').replace('/', '-')}`
    const messageId = becomes.messageId.replace('MADE_ID', madeId)
    await until(`${messageId} has come`, () => bodiesAt('/up').has(messageId))
    expect(shown(bodiesAt('/up').get(messageId))).toBe(shown(becomes.body.replace('MADE_ID', madeId)))
  })

  test.each(deadRows)('one is a dead letter, $becomes.reason: $name', ({ name, record, becomes }) => {
    const letter = letters.find(
      ({ headers }) => headers['origin'] === `${sluice.prefix}events/${places.get(name)}`,
    )
    expect(letter?.headers['reason']).toBe(becomes.reason)
    expect(letter?.headers['detail']).toMatch(
      /^((Send|Set) .*\.|the (record has no header|catalog has no source) .*)$/,
    )
    expect(letter?.headers['detail']?.length).toBeLessThan(200)
    const keepsValue = !becomes.omits.includes('value')
    const keepsKey = !becomes.omits.includes('key')
    const value = keepsValue ? bytesOf(record.value) : null
    expect(letter?.value === null ? value === null : value?.equals(letter?.value ?? Buffer.alloc(0))).toBe(
      true,
    )
    expect(letter?.key).toBe(keepsKey ? (bytesOf(record.key)?.toString() ?? null) : null)
    expect('value-omitted' in (letter?.headers ?? {})).toBe(!keepsValue)
    expect('key-omitted' in (letter?.headers ?? {})).toBe(!keepsKey)
  })

  test('each is one or the other, once', async () => {
    expect(letters).toHaveLength(deadRows.length)
    await until(
      'all are counted',
      async () => (await sluice.worker.metric('sluice_dead_letters_total')) === deadRows.length,
    )
    const arrived = server.requestsTo('/up')
    expect(arrived).toHaveLength(deliveredRows.length + goodIds.length)
    expect(await sluice.worker.metric('sluice_dead_letters_total', { reason: 'internal_error' })).toBe(0)
  })

  test('none keeps anything: all is settled', async () => {
    expect(await heldAfterAll()).toEqual(nothing)
  })
})

describe('a batch', () => {
  test('of 130,000 records stops nothing', async () => {
    const records = Array.from({ length: 130_000 }, (): RawRecord => ({
      headers: [['source-id', 'disabled']],
    }))
    await produceRaw(`${sluice.prefix}events`, 0, records, { codec: 'zstd' })
    await produceBetweenGood(`${sluice.prefix}events`, 0, [])
    await allGoodArrived()
    expect(await sluice.worker.metric('sluice_not_routed_total', { reason: 'source_disabled' })).toBe(
      records.length,
    )
    expect(await heldAfterAll()).toEqual(nothing)
  })

  test('of 100 MiB once it is decompressed is one dead letter, and what is behind it comes', async () => {
    const beside: RawRecord = { value: page('beside a bomb'), headers: [['source-id', sourceId]] }
    const bomb = [beside, { value: Buffer.alloc(100 * 1024 ** 2, ' ') }, beside]
    const first = await produceRaw(`${sluice.prefix}events`, 1, bomb, { codec: 'zstd' })
    await produceBetweenGood(`${sluice.prefix}events`, 1, [])
    deadLetters++
    await allGoodArrived()
    const letters = await sluice.read('dead-letters', deadLetters)
    const letter = letters.find(({ headers }) => headers['reason'] === 'unreadable_batch')
    expect(letter).toMatchObject({
      value: null,
      headers: { origin: `${sluice.prefix}events/1/${first + 2}` },
    })
    expect(letter?.headers['detail']).toContain(
      `offsets ${first} to ${first + 2} of the partition can't be read`,
    )
    expect(await heldAfterAll()).toEqual(nothing)
  })
})

describe('on a retry topic', () => {
  const sound = encodeRetryState({
    sourceId,
    destinationId: 'up',
    messageId: 'retried',
    kind: 'page',
    nextRung: 1,
    attempts: 1,
    firstSeenMs: Date.now(),
    expiresAtMs: Date.now() + 3_600_000,
    failedHooks: ['gone'],
    notBeforeMs: new Map([['gone', Date.now()]]),
    hookContents: new Map([['gone', '0123456789ab']]),
    lastOutcome: 'status 500',
    origin: { topic: 'events', partition: 0, offset: 0 },
  })
  const names = Object.keys(sound)
  const counts = ['rung', 'attempts', 'first-seen', 'expires-at']
  const optional = new Set(['failed-hooks', 'not-before', 'hook-contents', 'last-outcome'])

  type Changes = Record<string, string | Buffer | null>
  type Retried = { name: string; record: RawRecord }
  /** Returns a record of a retry topic. Its key is `name`, by which the test finds the dead letter. */
  const retried = (name: string, changes: Changes, rest: RawRecord = {}): Retried => ({
    name,
    record: { key: name, value: page(name), headers: Object.entries({ ...sound, ...changes }), ...rest },
  })
  const failing = (name: string, changes: Changes) => retried(name, { 'destination-id': 'down', ...changes })
  const never = String(Number.MAX_SAFE_INTEGER)

  const damaged: readonly (Retried & { reason: DeadReason })[] = [
    ...[
      retried('no headers', {}, { headers: [] }),
      retried('no value', {}, { value: null }),
      retried('an empty value', {}, { value: '' }),
      ...names
        .filter((name) => !optional.has(name))
        .map((name) => retried(`${name} without a value`, { [name]: null })),
      ...names.map((name) => retried(`${name} of half a megabyte`, { [name]: 'h'.repeat(500_000) })),
      ...counts.flatMap((name) => [
        retried(`${name} with a changed bit`, { [name]: withFirstBitChanged('1700000000000') }),
        retried(`an empty ${name}`, { [name]: '' }),
        retried(`a negative ${name}`, { [name]: '-1' }),
        retried(`a ${name} of 1,000 digits`, { [name]: '9'.repeat(1_000) }),
      ]),
      retried('failed-hooks that are no list', { 'failed-hooks': '{"a":1}' }),
      retried('failed-hooks of 16,000 levels', { 'failed-hooks': '['.repeat(16_000) }),
      retried('a not-before without a time', { 'not-before': '[["hook","soon"]]' }),
      retried('hook-contents of another kind', { 'hook-contents': '[["gone",{"a":1}]]' }),
      retried('an origin that is no place', { origin: 'nowhere' }),
      retried(
        'everything of half a megabyte',
        Object.fromEntries(names.map((name) => [name, 'h'.repeat(500_000)])),
      ),
    ].map((row) => ({ ...row, reason: 'bad_retry_headers' as const })),
    ...[
      retried('a destination with a changed bit', { 'destination-id': withFirstBitChanged('up') }),
      retried('the destination __proto__', { 'destination-id': '__proto__' }),
    ].map((row) => ({ ...row, reason: 'destination_removed' as const })),
    ...[
      failing('a delivery that would never expire', { 'expires-at': never }),
      failing('one that should wait for ever', { 'expires-at': never, 'not-before': `[["hook",${never}]]` }),
      failing('one on a rung that no ladder has', { rung: '9007199254740000' }),
    ].map((row) => ({ ...row, reason: 'expired' as const })),
  ]
  const unharmed: readonly Retried[] = [
    retried(
      'headers that repeat',
      {},
      { headers: [...Object.entries(sound), ['rung', 'x'], ['source-id', null]] },
    ),
    retried(
      'other headers',
      {},
      { headers: [...Object.entries(sound), ['x', Buffer.from([0xff])], ['', null]] },
    ),
    retried('an expiry that has passed', { 'expires-at': '1' }),
    retried(
      'optional headers without a value',
      Object.fromEntries([...optional].map((name) => [name, null])),
    ),
  ]

  let letters: SeenRecord[]

  beforeAll(async () => {
    const topic = `${sluice.prefix}retry.1s`
    for (let partition = 0; partition < partitions; partition++) {
      const rows = damaged.filter((_row, index) => index % partitions === partition)
      for (const { record } of rows) await produceRaw(topic, partition, [record])
      await produceRaw(
        topic,
        partition,
        unharmed.map(({ record }) => record),
      )
    }
    deadLetters += damaged.length
    letters = await sluice.read('dead-letters', deadLetters)
  })

  test.each(damaged)(
    'one is a dead letter, $reason, that keeps its message: $name',
    ({ name, record, reason }) => {
      const letter = letters.find(({ key }) => key === name)
      expect(letter?.headers['reason']).toBe(reason)
      expect(letter?.headers['detail']).toMatch(/\S/)
      expect(letter?.value?.toString() ?? null).toBe(record.value)
    },
  )

  test.each(unharmed)('one is delivered in each partition: $name', async ({ name }) => {
    const arrived = () => server.requestsTo('/up').filter(({ body }) => body.toString() === page(name))
    await until('it has come', () => arrived().length >= partitions)
    expect(arrived()).toHaveLength(partitions)
  })

  test('none keeps anything: all is settled', async () => {
    expect(await heldAfterAll()).toEqual(nothing)
    expect(await sluice.worker.metric('sluice_dead_letters_total')).toBe(deadLetters)
  })
})

test('the worker has stayed small, and is the same', () => {
  expect(sluice.worker.isRunning).toBe(true)
  process.stdout.write(`resident memory at the most: ${Math.round(residentBytes / 1024 ** 2)} MiB\n`)
  expect(residentBytes).toBeGreaterThan(0)
  expect(residentBytes).toBeLessThan(maxResidentBytes)
})
