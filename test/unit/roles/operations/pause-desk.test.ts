import { expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import type { KeyedRecord } from '../../../../src/message/records.ts'
import { encodeGone } from '../../../../src/notices/gone-record.ts'
import { pauseDeskOf } from '../../../../src/roles/operations/pause-desk.ts'

function bytesOf(value: Buffer | string | null): Buffer | null {
  return typeof value === 'string' ? Buffer.from(value) : value
}

const unused = async (): Promise<void> => undefined

async function* readNone(): AsyncGenerator<never> {}

test('many requests at once share one reading of the topic, and none waits for the readings of all the others', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  let readings = 0
  const first = Promise.withResolvers<void>()
  const desk = pauseDeskOf({
    config: read.config,
    hasTopic: async () => true,
    reader: { stop: unused },
    // oxlint-disable-next-line require-yield -- the topic has no record
    read: async function* none() {
      readings++
      await first.promise
    },
    health: { read: async () => undefined },
    writer: { write: unused, stop: unused },
  })
  const asked = Array.from({ length: 50 }, () => desk.paused())
  first.resolve()
  expect(await Promise.all(asked)).toEqual(Array.from({ length: 50 }, () => ({ ok: true, value: [] })))
  // A request that comes during a reading may have to see a record that this reading misses. So it waits for
  // the next reading.
  expect(readings).toBe(2)
})

test('a topic that can not be read fails all requests that wait for it, and no later one', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  let isSilent = true
  const desk = pauseDeskOf({
    config: read.config,
    hasTopic: async () => !isSilent || Promise.reject(new Error('Kafka is silent')),
    reader: { stop: unused },
    read: readNone,
    health: { read: async () => undefined },
    writer: { write: unused, stop: unused },
  })
  const asked = await Promise.allSettled([desk.paused(), desk.resume('crm', 'ann'), desk.paused()])
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  isSilent = false
  expect(await desk.paused()).toEqual({ ok: true, value: [] })
})

test('an order to try all messages of a destination also resumes its gone URLs, and one for a single message does not', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const records: KeyedRecord[] = []
  function write(record: Pick<KeyedRecord, 'key' | 'value'>): void {
    records.push({ ...record, offset: records.length, timestampMs: 1 })
  }
  const desk = pauseDeskOf({
    config: read.config,
    hasTopic: async () => true,
    reader: { stop: unused },
    async *read(from) {
      yield records.slice(from)
    },
    health: { read: async () => undefined },
    writer: {
      async write(given) {
        for (const { topic, key, value } of given)
          if (topic.endsWith('notices') && key instanceof Buffer) write({ key, value: bytesOf(value) })
      },
      stop: unused,
    },
  })
  const content = { content: 'c', atMs: 1, lastOutcome: 'status 410', readTo: 0 }
  write(encodeGone({ destinationId: 'crm', hookId: 'main', content }))
  await desk.retryNow({ destinationId: 'crm', messageId: 'm-1', by: 'ann' })
  const goneHooks = async (): Promise<readonly string[]> => {
    const answer = await desk.gone()
    return answer.ok ? [...answer.value.keys()] : [answer.problem]
  }
  expect(await goneHooks()).toEqual(['crm'])
  await desk.retryNow({ destinationId: 'crm', messageId: undefined, by: 'ann' })
  expect(await goneHooks()).toEqual([])
  const kinds = records.map(({ key }): unknown => JSON.parse(key.toString())[0])
  expect(kinds).toEqual(['gone', 'recall', 'resumed', 'recall'])
  write(encodeGone({ destinationId: 'crm', hookId: 'main', content: { ...content, readTo: records.length } }))
  expect(await desk.resume('crm', 'ann')).toMatchObject({ ok: true, value: { pause: { cause: 'gone' } } })
  expect(await desk.resume('crm', 'ann')).toMatchObject({ ok: false, kind: 'conflict' })
})
