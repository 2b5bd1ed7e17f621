import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import avro from 'avsc'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { BlockReader, readBlock } from '../../../src/delivery-log/block-reader.ts'
import { BlockWriter, type WrittenState } from '../../../src/delivery-log/block-writer.ts'
import { logKinds, logOutcomes, type LogRecord, logVerdicts } from '../../../src/delivery-log/log-record.ts'
import { recordData } from '../../../src/roles/operations/log-text.ts'
import { stateOf } from '../../support/log-blocks.ts'
import { arbitraryState } from './arbitrary-state.ts'

const schemaFile = join(import.meta.dirname, '../../../schemas/attempts.avsc')
const schema = avro.Type.forSchema(JSON.parse(readFileSync(schemaFile, 'utf8')))

function write(states: readonly WrittenState[]): Buffer {
  const writer = new BlockWriter()
  for (const state of states) writer.add(state)
  return writer.take()
}

/** Returns a state as an Avro library reads it by the schema. */
function avroOf(state: WrittenState, sinceMs: number): object {
  const { atMs, firstSeenMs, durationMs, user, answer, kind, verdict, outcome, values, ...same } = state
  expect(values).toBe('')
  return {
    ...same,
    kind: logKinds[kind],
    verdict: logVerdicts[verdict] === '' ? 'none' : logVerdicts[verdict],
    outcome: logOutcomes[outcome] === '' ? 'none' : logOutcomes[outcome],
    afterMs: atMs - sinceMs,
    ageMs: atMs - firstSeenMs,
    durationMicros: durationMs * 1_000,
    user: Buffer.from(user, 'latin1'),
    answer: Buffer.from(answer ?? []),
  }
}

function recordOf(state: WrittenState, unit: number): LogRecord {
  return {
    atMs: state.atMs,
    kind: logKinds[state.kind] ?? 'attempted',
    isEnd: state.isEnd,
    weight: state.weight,
    destination: state.destination,
    hook: state.hook,
    source: state.source,
    messageId: state.messageId,
    messageType: state.messageType,
    origin: { topic: state.originTopic, partition: state.originPartition, offset: state.originOffset },
    unit,
    attempt: state.attempt,
    verdict: logVerdicts[state.verdict] ?? '',
    outcome: logOutcomes[state.outcome] ?? '',
    status: state.status,
    durationMs: state.durationMs,
    reason: state.reason,
    error: state.error,
    dueMs: logKinds[state.kind] === 'parked' ? state.atMs + state.waitMs : 0,
    firstSeenMs: state.firstSeenMs,
    user: Buffer.from(state.user, 'latin1').toString('hex'),
    job: state.job,
    answer: Buffer.from(state.answer ?? []).toString(),
  }
}

test('a block is what the schema says, to the byte', () => {
  fc.assert(
    fc.property(fc.array(arbitraryState, { minLength: 1, maxLength: 20 }), (states) => {
      const sinceMs = states[0]?.atMs ?? 0
      const value = { format: 1, sinceMs, states: states.map((state) => avroOf(state, sinceMs)) }
      expect(write(states).equals(schema.toBuffer(value))).toBe(true)
    }),
  )
})

test('what is read is what was written', () => {
  fc.assert(
    fc.property(fc.array(arbitraryState, { minLength: 1, maxLength: 20 }), (states) => {
      expect(readBlock(write(states), 7)).toEqual(states.map((state) => recordOf(state, 7)))
    }),
  )
})

const hashes = fc
  .array(fc.uint8Array({ minLength: 6, maxLength: 6 }), { maxLength: 16 })
  .map((all) => all.map((bytes) => Buffer.from(bytes).toString('latin1')).join(''))

test('the indexed values of each record follow the block, and readers that do not know them see the same', () => {
  const withValues = fc.tuple(arbitraryState, hashes).map(([state, values]) => ({ ...state, values }))
  fc.assert(
    fc.property(fc.array(withValues, { minLength: 1, maxLength: 20 }), (states) => {
      const block = write(states)
      const plain = write(states.map((state) => ({ ...state, values: '' })))
      expect(block.subarray(0, plain.length).equals(plain)).toBe(true)
      const reader = new BlockReader()
      expect(reader.open(block)).toBe(true)
      const read: string[] = []
      while (reader.next()) read.push(reader.bytes.toString('latin1', reader.valuesAt, reader.valuesEnd))
      expect(read).toEqual(states.map(({ values }) => values))
    }),
  )
})

test('a block whose values are damaged fails, or has none', () => {
  const block = write([stateOf({ values: 'abcdef' }), stateOf({ values: 'ghijkl' })])
  for (const at of [5, 4, 12, 19].map((fromEnd) => block.length - fromEnd)) {
    const damaged = Buffer.from(block)
    damaged[at] = 0xff
    expect(() => readBlock(damaged, 0)).toThrow(RangeError)
  }
})

test('a block of another format has nothing to be read', () => {
  const block = write(fc.sample(arbitraryState, 2))
  block[0] = 4
  expect(readBlock(block, 0)).toEqual([])
})

test('a damaged block fails at its end, however it is damaged', () => {
  fc.assert(
    fc.property(fc.array(arbitraryState, { minLength: 1, maxLength: 3 }), fc.nat(), (states, at) => {
      const block = write(states)
      const cut = block.subarray(0, 1 + (at % (block.length - 1)))
      expect(() => readBlock(cut, 0)).toThrow(RangeError)
    }),
  )
})

test.each([-9e15, -9e18, 9e18])(
  'a message with the time %d costs no other record of its block',
  (firstSeenMs) => {
    const block = write([stateOf({ messageId: 'odd', firstSeenMs }), stateOf({ messageId: 'good' })])
    expect(readBlock(block, 0).map(({ messageId }) => messageId)).toEqual(['odd', 'good'])
  },
)

test('a record whose time no date can show is shown with the nearest one', () => {
  const [record] = readBlock(write([stateOf({})]), 0)
  if (record === undefined) throw new Error('no record')
  expect(recordData({ ...record, firstSeenMs: -9e15 }, { seesContent: true })).toMatchObject({
    firstSeenAt: '-271821-04-20T00:00:00.000Z',
  })
})

test('a writer begins anew with each block', () => {
  const [first, second] = fc.sample(arbitraryState, 2)
  if (first === undefined || second === undefined) throw new Error('no sample')
  const writer = new BlockWriter()
  writer.add(first)
  writer.take()
  writer.add(second)
  expect(readBlock(writer.take(), 0)).toEqual([recordOf(second, 0)])
})

test('the end of a delivery can be added to the record that was written last', () => {
  const [first, second] = fc.sample(arbitraryState, 2)
  if (first === undefined || second === undefined) throw new Error('no sample')
  const writer = new BlockWriter()
  writer.add({ ...first, isEnd: false })
  writer.add({ ...second, isEnd: false })
  writer.markEnd()
  expect(readBlock(writer.take(), 0).map(({ isEnd }) => isEnd)).toEqual([false, true])
})
