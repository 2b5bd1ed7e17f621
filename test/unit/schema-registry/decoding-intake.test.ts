import * as fc from 'fast-check'
import type { RecordContent } from '../../../src/message/held-record.ts'
import { describe, expect, test } from 'vitest'
import { refuseFramed } from '../../../src/schema-registry/frame.ts'
import { createIntake, type Intake } from '../../../src/schema-registry/decoding-intake.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'

type TestRecord = { topic: string; partition: number; offset: number; isAbandoned: boolean; giveBack(): void }

/**
 * An intake whose values are framed as 0 and the number of a schema. A schema is known when the registry has
 * answered.
 */
class Scene {
  readonly passed: string[] = []
  readonly headers: RecordContent['headers'][] = []
  readonly given: string[] = []
  readonly refused: string[] = []
  /** The schemas that are to be looked up ahead. */
  readonly lookedAhead: number[] = []
  readonly full = new Set<string>()
  readonly intake: Intake<TestRecord>
  readonly #known = new Map<number, boolean>()
  readonly #asked = new Map<number, PromiseWithResolvers<void>>()
  #offset = 0

  constructor() {
    this.intake = createIntake<TestRecord>({
      topics: new Set(['events', 'deletions']),
      decode: (value) => {
        const schema = value[1] ?? 0
        const isGood = this.#known.get(schema)
        if (isGood === true) return { ok: true, value: Buffer.from(`plain ${schema}`) }
        if (isGood === false) return refuseFramed('unknown_schema', 'none')
        const asked = this.#asked.get(schema) ?? Promise.withResolvers<void>()
        this.#asked.set(schema, asked)
        return asked.promise
      },
      lookAhead: (value) => this.lookedAhead.push(value[1] ?? 0),
      next: (record, { value, headers }) => {
        this.passed.push(`${nameOf(record)} ${String(value)}`)
        this.headers.push(headers)
      },
      refuse: (record, { value }, { reason }) =>
        this.refused.push(`${nameOf(record)} ${value?.toString('hex')} ${reason}`),
      setPartitionFull: (topic, partition, isFull) => {
        if (isFull) this.full.add(`${topic}/${partition}`)
        else this.full.delete(`${topic}/${partition}`)
      },
    })
  }

  take(
    value: RecordContent['value'],
    {
      topic = 'events',
      partition = 0,
      headers,
    }: { topic?: string; partition?: number; headers?: NonNullable<RecordContent['headers']> } = {},
  ): TestRecord {
    const offset = this.#offset++
    const given = this.given
    const record = {
      topic,
      partition,
      offset,
      isAbandoned: false,
      giveBack() {
        given.push(nameOf(this))
      },
    }
    this.intake.accept(record, { key: null, value, ...(headers !== undefined && { headers }) })
    return record
  }

  /** Lets the registry answer with a schema. */
  async answer(schema: number, isGood = true): Promise<void> {
    this.#known.set(schema, isGood)
    this.#asked.get(schema)?.resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function nameOf({ topic, partition, offset }: TestRecord): string {
  return `${topic}/${partition}/${offset}`
}

const plain = Buffer.from('{}')
const needs = (schema: number): Buffer => Buffer.from([0, schema])

test('plain records, and those without a value, pass at once', () => {
  const scene = new Scene()
  scene.take(plain)
  scene.take(null)
  scene.take(Buffer.alloc(0))
  expect(scene.passed).toEqual(['events/0/0 {}', 'events/0/1 null', 'events/0/2 '])
})

test('a record of a topic whose values are never framed passes as it is', () => {
  const scene = new Scene()
  scene.take(needs(1), { topic: 'retry.1m' })
  expect(scene.passed).toEqual(['retry.1m/0/0 \u0000\u0001'])
})

test('a record that is framed in another way is refused, with its value as it came', () => {
  const scene = new Scene()
  scene.take(Buffer.from([3, 0, ...Buffer.alloc(16, 7), 1]))
  scene.take(Buffer.from([2]), { headers: { 'apicurio.value.contentId': Buffer.alloc(8, 1) } })
  scene.take(plain, { headers: { 'apicurio.value.contentId': Buffer.alloc(8, 1) } })
  const glue = `0300${'07'.repeat(16)}01`
  expect(scene.refused).toEqual([`events/0/0 ${glue} bad_frame`, 'events/0/1 02 bad_frame'])
  expect(scene.passed).toEqual(['events/0/2 {}'])
})

test('a framed record whose schema is known passes at once, as plain JSON and with its headers', async () => {
  const scene = new Scene()
  await scene.answer(1)
  scene.take(needs(1))
  expect(scene.passed).toEqual(['events/0/0 plain 1'])
})

test('a record that can not be read is refused as it came', async () => {
  const scene = new Scene()
  await scene.answer(1, false)
  scene.take(needs(1))
  expect(scene.refused).toEqual(['events/0/0 0001 unknown_schema'])
})

describe('while a schema is missing', () => {
  test('its partition is not fetched, what came of it waits in order, and others go on', async () => {
    const scene = new Scene()
    await scene.answer(2)
    scene.take(plain)
    scene.take(needs(1))
    scene.take(plain)
    scene.take(needs(2))
    scene.take(plain, { partition: 1 })
    scene.take(needs(2), { topic: 'deletions' })
    expect(scene.passed).toEqual(['events/0/0 {}', 'events/1/4 {}', 'deletions/0/5 plain 2'])
    expect(scene.full).toEqual(new Set(['events/0']))
    expect(scene.intake.held).toEqual({ records: 3, bytes: 6, partitions: 1 })

    scene.passed.length = 0
    await scene.answer(1)
    expect(scene.passed).toEqual(['events/0/1 plain 1', 'events/0/2 {}', 'events/0/3 plain 2'])
    expect(scene.full).toEqual(new Set())
    expect(scene.intake.held).toEqual({ records: 0, bytes: 0, partitions: 0 })
  })

  test('the schemas of all that waits are asked for at once', () => {
    const scene = new Scene()
    scene.take(needs(1))
    scene.take(plain)
    scene.take(needs(2))
    scene.take(needs(3), { topic: 'retry.1m' })
    expect(scene.lookedAhead).toEqual([1, 2])
  })

  test('the next that is missing is waited for in turn', async () => {
    const scene = new Scene()
    scene.take(needs(1))
    scene.take(needs(2))
    await scene.answer(1, false)
    expect(scene.refused).toHaveLength(1)
    expect(scene.full).toEqual(new Set(['events/0']))
    await scene.answer(2)
    expect(scene.passed).toEqual(['events/0/1 plain 2'])
    expect(scene.full).toEqual(new Set())
  })

  test('what waits is a copy, since the fetch that it was a part of is large', async () => {
    const scene = new Scene()
    scene.take(needs(1))
    const fetched = Buffer.from('{}')
    scene.take(fetched)
    fetched.fill('x')
    await scene.answer(1)
    expect(scene.passed).toContain('events/0/1 {}')
  })

  test('what waits keeps its headers, also one without a value', async () => {
    const scene = new Scene()
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs lacks this type of Kafka
    const headers = { 'source-id': Buffer.from('web'), twice: [null, Buffer.from('x')], none: null } as never
    scene.take(needs(1), { headers })
    scene.take(plain, { headers })
    await scene.answer(1)
    expect(scene.passed).toEqual(['events/0/0 plain 1', 'events/0/1 {}'])
    expect(scene.headers).toEqual([headers, headers])
  })

  test('records of a partition that is lost are given back, and never passed on', async () => {
    const scene = new Scene()
    const lost = [scene.take(needs(1)), scene.take(plain)]
    scene.take(needs(1), { partition: 1 })
    for (const record of lost) record.isAbandoned = true
    scene.intake.letGoAbandoned()
    expect(scene.given).toEqual(['events/0/0', 'events/0/1'])
    expect(scene.full).toEqual(new Set(['events/1']))
    await scene.answer(1)
    expect(scene.passed).toEqual(['events/1/2 plain 1'])
  })

  test('a partition that is lost and comes back begins anew', async () => {
    const scene = new Scene()
    scene.take(needs(1)).isAbandoned = true
    scene.intake.letGoAbandoned()
    scene.take(needs(2))
    await scene.answer(1)
    expect(scene.passed).toEqual([])
    await scene.answer(2)
    expect(scene.passed).toEqual(['events/0/1 plain 2'])
  })

  test('what was given back is kept by nobody, however long the schema is looked for', async () => {
    const scene = new Scene()
    const given: WeakRef<TestRecord>[] = []
    for (let round = 0; round < 20; round++) {
      const records = [scene.take(needs(1)), scene.take(plain)]
      for (const record of records) {
        record.isAbandoned = true
        given.push(new WeakRef(record))
      }
      scene.intake.letGoAbandoned()
    }
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
    expect(scene.given).toHaveLength(40)
    // The last records may still be in variables of this function.
    expect(given.filter((record) => record.deref() !== undefined).length).toBeLessThanOrEqual(2)
  })

  test('a stop gives back all that waits', async () => {
    const scene = new Scene()
    scene.take(needs(1))
    scene.take(plain)
    scene.intake.stop()
    await scene.answer(1)
    expect(scene.given).toEqual(['events/0/0', 'events/0/1'])
    expect(scene.passed).toEqual([])
    expect(scene.intake.held).toEqual({ records: 0, bytes: 0, partitions: 0 })
  })
})

test('every record ends once, in the order of its partition, whatever is missing for how long', async () => {
  const step = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ partition: fc.nat(2), schema: fc.option(fc.integer({ min: 1, max: 4 })) }),
    },
    { weight: 2, arbitrary: fc.record({ answer: fc.integer({ min: 1, max: 4 }), isGood: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ lose: fc.nat(2) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const scene = new Scene()
      let records: TestRecord[] = []
      const taken: string[] = []
      for (const each of steps) {
        if ('answer' in each) await scene.answer(each.answer, each.isGood)
        else if ('lose' in each) {
          for (const record of records) if (record.partition === each.lose) record.isAbandoned = true
          records = records.filter(({ isAbandoned }) => !isAbandoned)
          scene.intake.letGoAbandoned()
          expect(scene.full).not.toContain(`events/${each.lose}`)
        } else {
          const record = scene.take(each.schema === null ? plain : needs(each.schema), each)
          records.push(record)
          taken.push(nameOf(record))
        }
      }
      for (const schema of [1, 2, 3, 4]) await scene.answer(schema)
      // An answer may have led to another question. So all schemas were answered above, one after the other.
      const ended = [...scene.passed, ...scene.refused].map((line) => line.split(' ', 1)[0] ?? '')
      expect([...ended, ...scene.given].sort()).toEqual([...taken].sort())
      for (const partition of [0, 1, 2]) {
        const offsets = scene.passed.flatMap((line) => {
          const [topic, of, offset] = line.split(' ', 1)[0]?.split('/') ?? []
          return topic === 'events' && Number(of) === partition ? [Number(offset)] : []
        })
        expect(offsets).toEqual(offsets.toSorted((a, b) => a - b))
      }
      expect(scene.full).toEqual(new Set())
      expect(scene.intake.held).toEqual({ records: 0, bytes: 0, partitions: 0 })
    }),
    { numRuns: 1_000 },
  )
})
