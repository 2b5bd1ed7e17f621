import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import type { CatalogDesk, DeskOptions } from '../../../src/catalog-log/desk.ts'
import { CatalogLog } from '../../../src/catalog-log/log.ts'
import { catalogReading } from '../../../src/catalog-log/read.ts'
import { RecordSeals } from '../../../src/catalog-log/record.ts'
import { Pen, UnknownOutcomeError } from '../../../src/kafka/pen/pen.ts'
import { createPartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import { catalogKeys, openDesk } from '../../support/catalog-log.ts'
import {
  CatalogModel,
  contentOf,
  type Outcome,
  outcomeOf,
  readHistory,
  shopEdit,
  type Writer,
} from '../../support/catalog-model.ts'
import { createTopic, randomPrefix } from '../../support/kafka.ts'
import { Random } from '../../support/random.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

/** `fault/catalog-model.test.ts` is the long form, with processes that are killed. */

/** The changes of each writer. */
const each = 12

test('writers that fence each other and lose answers agree with all readers on every change', async () => {
  const topic = `${randomPrefix()}catalog`
  await createTopic(topic, { settings: compacting })
  await createTopic(`${topic}-audit`)
  await createTopic(`${topic}-history`)
  const keys = catalogKeys()
  const [seals, definitions] = [new RecordSeals(topic, keys), new Definitions(topic, keys)]
  const random = new Random(Number(process.env['SLUICE_TEST_SEED'] ?? 1))
  const refused: string[] = []
  const onRefused: DeskOptions['onRefused'] = ({ problem }) => refused.push(problem)
  const fence = fenceOf(topic, random)
  const desks = [
    openDesk(topic, keys, onRefused, { penOf: (pen) => fenced(pen, fence) }),
    openDesk(topic, keys, onRefused, { penOf: (pen) => fenced(pen, fence) }),
    openDesk(topic, keys, onRefused, { penOf: (pen) => losing(pen, random) }),
  ]
  await openDesk(topic, keys).change({ edits: [shopEdit], by: 'ann' })
  const model = new CatalogModel(random)
  const follower = following(topic, seals)
  await Promise.all(
    desks.map(async (desk, index) => {
      for (let part = 0; part < each; part += 4) {
        model.see((await desk.look()).objects)
        await model.work(writerOf(desk), `w${index}-${part}`, 4)
        if (index === 0) await follower.toEnd()
      }
    }),
  )

  const logs = [...(await Promise.all(desks.map((desk) => desk.look()))), await follower.toEnd()]
  const fresh = following(topic, seals)
  logs.push(await fresh.toEnd())
  const expected = model.verify(await readHistory(`${topic}-history`, seals))
  const [first] = logs
  for (const log of logs) {
    expect(log.damage).toBeUndefined()
    expect(contentOf(log.objects, definitions)).toEqual(contentOf(first?.objects ?? new Map(), definitions))
  }
  expect(first?.objects.size).toBe(expected.size)
  for (const [key, definition] of expected) expect(first?.objects.get(key)?.definition).toEqual(definition)
  expect(refused).toEqual([])
  expect(model.counts.made).toBeGreaterThan(each)
  expect(model.counts.refused).toBeGreaterThan(0)
})

/** Kafka cleans what is older than a few seconds whenever it looks. Heads of changes without an answer stay. */
const compacting = {
  'cleanup.policy': 'compact',
  'segment.ms': '200',
  'min.cleanable.dirty.ratio': '0.01',
  'min.compaction.lag.ms': '3000',
  'max.compaction.lag.ms': '4000',
}

function writerOf(desk: CatalogDesk): Writer {
  return {
    change: (edit) =>
      desk.change({ edits: [edit], by: 'model' }).then(outcomeOf, (): Outcome => ({ kind: 'unknown' })),
  }
}

/** A pen that others take away before, in the middle of, and after each step of its work. */
function fenced(pen: Pen, fence: Fence): DeskOptions['pen'] {
  return {
    get isHeld() {
      return pen.isHeld
    },
    async take() {
      await fence.maybe()
      await pen.take()
      await fence.maybe()
    },
    async write(records, beside) {
      await fence.maybe()
      const meanwhile = fence.afterTurns()
      // The answer counts only once the fence is over, so that a failed write is never left alone.
      const [written] = await Promise.allSettled([pen.write(records, beside), meanwhile])
      if (written.status === 'rejected') throw written.reason
      return written.value
    },
    close: () => pen.close(),
  }
}

/** A pen of which every fourth answer is lost: the records are written, and the writer doesn't learn it. */
function losing(pen: Pen, random: Random): DeskOptions['pen'] {
  let isLost = false
  return {
    get isHeld() {
      return pen.isHeld && !isLost
    },
    async take() {
      isLost = false
      await pen.take()
    },
    async write(records, beside) {
      const offsets = await pen.write(records, beside)
      if (!random.oneIn(4)) return offsets
      isLost = true
      throw new UnknownOutcomeError('the answer was lost')
    },
    close: () => pen.close(),
  }
}

type Fence = { readonly maybe: () => Promise<void>; readonly afterTurns: () => Promise<void> }

/** Takes the pen from whoever has it: in every tenth call, at once or some turns of the event loop later. */
function fenceOf(topic: string, random: Random): Fence {
  const pen = new Pen({ kafka: workerKafka(), transactionalId: topic, topic })
  onTestFinished(() => pen.close())
  const maybe = async (): Promise<void> => {
    if (random.oneIn(10)) await pen.take()
  }
  return {
    maybe,
    async afterTurns() {
      for (let turns = random.below(200); turns > 0; turns--) await nextTurn()
      await maybe()
    },
  }
}

/** Reads the topic from its beginning, and again from where it was. */
function following(topic: string, seals: RecordSeals) {
  const reader = createPartitionReader(workerKafka())
  onTestFinished(() => reader.stop())
  const read = catalogReading(reader, topic)
  const log = new CatalogLog(seals, ({ problem }) => {
    throw new Error(problem)
  })
  return {
    async toEnd(): Promise<CatalogLog> {
      for await (const { records, next } of read(log.next)) {
        for (const record of records) log.take(record)
        log.readTo(next)
      }
      return log
    },
  }
}
