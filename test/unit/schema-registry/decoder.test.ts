import { describe, expect, test } from 'vitest'
import { createDecoder, type Decoder } from '../../../src/schema-registry/decoder.ts'
import { refuseFramed } from '../../../src/schema-registry/frame.ts'
import type { SchemaAnswer } from '../../../src/schema-registry/schema-source.ts'
import { until } from '../../support/until.ts'

/** A registry that gives the answers of the test, and a clock that only the test moves. */
class Scene {
  readonly asked: number[] = []
  /** What the decoder reported. */
  readonly reports: string[] = []
  readonly pausesMs: number[] = []
  readonly decoder: Decoder
  #answers: SchemaAnswer[]
  nowMs = 0

  constructor(...answers: SchemaAnswer[]) {
    this.#answers = answers
    this.decoder = createDecoder({
      source: {
        ask: async (schemaId) => {
          this.asked.push(schemaId)
          return this.#answers.shift() ?? { kind: 'failed', why: 'the test has no further answer' }
        },
      },
      onAnswer: (kind) => this.reports.push(kind),
      onDown: (isDown, why) => this.reports.push(isDown ? `down: ${why}` : 'up'),
      now: () => this.nowMs,
      pause: async (ms, signal) => {
        signal.throwIfAborted()
        this.pausesMs.push(ms)
        if (this.#answers.length === 0) await new Promise(() => {})
      },
    })
  }

  answerWith(...answers: SchemaAnswer[]): void {
    this.#answers = answers
  }

  /** Decodes a value. Waits first if the decoder has to wait for the schema. */
  async decode(schemaId = 7): Promise<unknown> {
    const decoded = this.decoder.decode(framed(schemaId))
    if (!(decoded instanceof Promise)) return decoded
    await decoded
    return this.decoder.decode(framed(schemaId))
  }
}

function framed(schemaId: number): Buffer {
  const frame = Buffer.alloc(6, 'x')
  frame[0] = 0
  frame.writeInt32BE(schemaId, 1)
  return frame
}

const json = Buffer.from('{}')
const found: SchemaAnswer = { kind: 'found', read: () => ({ ok: true, value: json }) }
const unknown: SchemaAnswer = { kind: 'unknown' }
const failed: SchemaAnswer = { kind: 'failed', why: 'it is down' }

test('a schema is asked for once, and then decodes at once', async () => {
  const scene = new Scene(found)
  expect(await scene.decode()).toEqual({ ok: true, value: json })
  expect(scene.decoder.decode(framed(7))).toEqual({ ok: true, value: json })
  expect(scene.asked).toEqual([7])
})

test('values that need the same schema wait for the same answer', async () => {
  const scene = new Scene(found)
  await Promise.all([scene.decode(), scene.decode(), scene.decode()])
  expect(scene.asked).toEqual([7])
})

test('a value that does not fit is refused with the id of its schema', async () => {
  const scene = new Scene({ kind: 'found', read: () => refuseFramed('schema_mismatch', 'it ends too soon') })
  expect(await scene.decode()).toEqual({
    ok: false,
    reason: 'schema_mismatch',
    detail: 'Send a value that fits schema 7, which it names: it ends too soon.',
  })
})

test('a frame that is none asks nobody', () => {
  const scene = new Scene()
  expect(scene.decoder.decode(Buffer.from([0]))).toMatchObject({ ok: false, reason: 'bad_frame' })
  expect(scene.asked).toEqual([])
})

describe('a schema that the registry does not know', () => {
  test('is refused when it has said so three times', async () => {
    const scene = new Scene(unknown, unknown, unknown)
    expect(await scene.decode()).toMatchObject({ ok: false, reason: 'unknown_schema' })
    expect(scene.asked).toEqual([7, 7, 7])
    expect(scene.reports).toEqual(['unknown', 'unknown', 'unknown'])
  })

  test('is found when another node of the registry has heard of it meanwhile', async () => {
    expect(await new Scene(unknown, unknown, found).decode()).toMatchObject({ ok: true })
  })

  test('is asked for again half a minute later', async () => {
    const scene = new Scene(unknown, unknown, unknown)
    await scene.decode()
    scene.answerWith(found)
    scene.nowMs = 29_999
    expect(await scene.decode()).toMatchObject({ ok: false })
    scene.nowMs = 30_000
    expect(await scene.decode()).toMatchObject({ ok: true })
  })
})

/** Lets the registry deny this many schemas, each three times. */
async function afterDenials(count: number): Promise<Scene> {
  const scene = new Scene(...Array.from({ length: 3 * count }, () => unknown))
  for (let id = 100; id < 100 + count; id++) await scene.decode(id)
  scene.asked.length = 0
  scene.pausesMs.length = 0
  return scene
}

describe('a producer that invents schema ids', () => {
  test('gets each further refusal after one answer, so that its partitions go on', async () => {
    const scene = await afterDenials(20)
    scene.answerWith(unknown, unknown)
    expect(await scene.decode(7)).toMatchObject({ ok: false, reason: 'unknown_schema' })
    expect(await scene.decode(8)).toMatchObject({ ok: false, reason: 'unknown_schema' })
    expect(scene.asked).toEqual([7, 8])
    expect(scene.pausesMs).toEqual([])
  })

  test('is forgotten half a minute later', async () => {
    const scene = await afterDenials(20)
    scene.nowMs = 30_000
    scene.answerWith(unknown, found)
    expect(await scene.decode()).toMatchObject({ ok: true })
  })

  test('is none that has 19 unknown schemas', async () => {
    const scene = await afterDenials(19)
    scene.answerWith(unknown, found)
    expect(await scene.decode()).toMatchObject({ ok: true })
  })
})

test('schemas are looked up ahead, sixteen at a time', async () => {
  const answers = new Map<number, (answer: SchemaAnswer) => void>()
  const asked: number[] = []
  const decoder = createDecoder({
    source: {
      ask: (schemaId) => {
        asked.push(schemaId)
        return new Promise((resolve) => answers.set(schemaId, resolve))
      },
    },
    onAnswer() {},
    onDown() {},
    now: () => 0,
    pause: async () => undefined,
  })
  for (let id = 1; id <= 20; id++) decoder.lookAhead(framed(id))
  decoder.lookAhead(framed(1))
  decoder.lookAhead(Buffer.from([0]))
  const underWay = decoder.decode(framed(17))
  await until('the first are asked for', () => asked.length === 16)
  answers.get(1)?.(found)
  await until('there is room for another', () => asked.length === 17)
  answers.get(17)?.(found)
  await underWay
  expect(decoder.decode(framed(17))).toEqual({ ok: true, value: json })
  expect(decoder.decode(framed(1))).toEqual({ ok: true, value: json })
  await until('the next is asked for', () => asked.length === 18)
  expect(asked).toEqual(Array.from({ length: 18 }, (_, index) => index + 1))
  decoder.stop()
})

test('a schema that can not be used is refused at once, with the reason', async () => {
  const scene = new Scene({ kind: 'unusable', why: 'it is Protobuf' })
  expect(await scene.decode()).toEqual({
    ok: false,
    reason: 'unusable_schema',
    detail: 'Send with another schema than 7: it is Protobuf.',
  })
  expect(scene.asked).toEqual([7])
})

describe('a registry that can not be asked', () => {
  test('is asked until it answers, less and less often, and refuses nothing', async () => {
    const scene = new Scene(...Array.from({ length: 10 }, () => failed), found)
    expect(await scene.decode()).toMatchObject({ ok: true })
    expect(scene.pausesMs).toHaveLength(10)
    for (const [index, pauseMs] of scene.pausesMs.entries()) {
      const wholeMs = Math.min(10_000, 500 * 2 ** index)
      expect(pauseMs).toBeGreaterThanOrEqual(wholeMs / 2)
      expect(pauseMs).toBeLessThanOrEqual(wholeMs)
    }
  })

  test('is not asked before the time that it asks for, which is a minute at most', async () => {
    const scene = new Scene({ ...failed, afterMs: 20_000 }, { ...failed, afterMs: 3_600_000 }, found)
    expect(await scene.decode()).toMatchObject({ ok: true })
    expect(scene.pausesMs).toEqual([20_000, 60_000])
  })

  test('is reported once, and once when no schema is missing any more', async () => {
    const scene = new Scene(failed, failed, found)
    await scene.decode()
    expect(scene.reports).toEqual(['failed', 'down: it is down', 'failed', 'found', 'up'])
  })

  test('holds up no schema that is known', async () => {
    const scene = new Scene(found)
    await scene.decode(7)
    scene.answerWith(failed)
    expect(scene.decoder.decode(framed(8))).toBeInstanceOf(Promise)
    await until('it was asked', () => scene.reports.includes('failed'))
    expect(await scene.decode(7)).toMatchObject({ ok: true })
  })

  test('is not asked any more after the stop', async () => {
    const scene = new Scene(failed, found)
    void scene.decode()
    scene.decoder.stop()
    await new Promise((resolve) => setImmediate(resolve))
    expect(scene.asked).toEqual([7])
  })
})

test('of made-up ids no more than a thousand are remembered, and the oldest is forgotten first', async () => {
  const unusable: SchemaAnswer = { kind: 'unusable', why: 'it is Protobuf' }
  const scene = new Scene(...Array.from({ length: 1_001 }, () => unusable))
  for (let id = 1; id <= 1_001; id++) await scene.decode(id)
  scene.answerWith(found)
  expect(await scene.decode(2)).toMatchObject({ ok: false })
  expect(await scene.decode(1)).toMatchObject({ ok: true })
})
