import { onTestFinished } from 'vitest'
import { Definitions } from '../../src/catalog-log/definitions.ts'
import { CatalogDesk, type Change, type DeskOptions } from '../../src/catalog-log/desk.ts'
import { HistoryReading } from '../../src/catalog-log/history-reading.ts'
import { type CatalogKeys, newKeyLine, readKeys } from '../../src/catalog-log/keys.ts'
import type { RefusedRecord } from '../../src/catalog-log/log.ts'
import { catalogReading } from '../../src/catalog-log/read.ts'
import { RecordSeals } from '../../src/catalog-log/record.ts'
import { Pen } from '../../src/kafka/pen/pen.ts'
import { createPartitionReader } from '../../src/kafka/read/partition-reader.ts'
import { workerKafka } from './worker-kafka.ts'

/** Makes keys as an installation has them. */
export function catalogKeys(...lines: readonly string[]): CatalogKeys {
  const read = readKeys((lines.length > 0 ? lines : [newKeyLine('k1')]).join('\n'))
  if (!read.ok) throw new Error(read.problem)
  return read.keys
}

/** Opens a desk and the history beside it, as `undoChange` takes them. */
export function openHistoryDesk(topic: string, keys: CatalogKeys) {
  const desk = openDesk(topic, keys)
  const reader = createPartitionReader(workerKafka(), { keepsOpen: true })
  onTestFinished(() => reader.stop())
  const refused: string[] = []
  return {
    look: () => desk.look(),
    change: (change: Change) => desk.change(change),
    definitions: new Definitions(topic, keys),
    history: new HistoryReading(reader, {
      topic: `${topic}-history`,
      seals: new RecordSeals(topic, keys),
      onRefused: ({ problem }) => refused.push(problem),
    }),
    /** Why records of the history were left out. */
    refused,
  }
}

export type OpenDeskOptions = {
  readonly penOf?: (pen: Pen) => DeskOptions['pen']
  /** The addresses of Kafka. Default: those of the test run's Kafka. */
  readonly brokers?: readonly string[]
}

/** Opens a desk for a topic that exists. Several desks of one topic are several processes. */
export function openDesk(
  topic: string,
  keys: CatalogKeys,
  onRefused: (refused: RefusedRecord) => void = () => undefined,
  { penOf = (pen) => pen, brokers }: OpenDeskOptions = {},
): CatalogDesk {
  const kafka = workerKafka(brokers === undefined ? {} : { brokers })
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const desk = new CatalogDesk({
    pen: penOf(new Pen({ kafka, transactionalId: topic, topic })),
    read: catalogReading(reader, topic),
    seals: new RecordSeals(topic, keys),
    definitions: new Definitions(topic, keys),
    allowAddresses: [],
    historyTopic: `${topic}-history`,
    audited: ({ by }) => ({ topic: `${topic}-audit`, partition: 0, records: [{ key: null, value: by }] }),
    onRefused,
  })
  onTestFinished(async () => {
    await Promise.all([desk.close(), reader.stop()])
  })
  return desk
}
