import { Breath } from '../../async/breath.ts'
import { inPieces } from '../../async/pieces.ts'
import { CatalogLog } from '../../catalog-log/log.ts'
import { catalogReading } from '../../catalog-log/read.ts'
import { RecordSeals } from '../../catalog-log/record.ts'
import type { Config } from '../../config/schema.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import { messageOf, OtherLogError } from '../../kafka/wire/errors.ts'
import { askKafka, type openKafka } from '../start/ask-kafka.ts'
import { topicNames } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'
import { catalogKeys } from './keys.ts'

export type CatalogTopicLog = Record<
  'debug' | 'info' | 'warn' | 'error',
  (fields: object, message: string) => void
>

export type KafkaClient = Awaited<ReturnType<typeof openKafka>>

/** The topic as it was read to its end. */
export type LoadedTopic = {
  readonly log: CatalogLog
  /** Empty if the brokers give topics no ids. */
  readonly topicId: string
}

/** What is known of the log that was in force last. */
export type KnownLog = {
  readonly revision: number
  readonly lineage: string | undefined
  /** What to do if it is another catalog, in words. */
  readonly ifAnother?: string
}

/** Says that the topic can't be used, and that the last good copy of it may take its place. */
export class TopicTroubleError extends StartError {
  override readonly name = 'TopicTroubleError'
}

/** How long the topic's id may stay unknown, in milliseconds. */
const topicIdTimeoutMs = 10_000

/** Makes the log of a process. It tells which records it doesn't take. */
function newLog(config: Config, log: CatalogTopicLog): CatalogLog {
  const topic = topicNames(config).catalog
  return new CatalogLog(new RecordSeals(topic, catalogKeys(config)), (refused) =>
    log.error(
      { topic, ...refused },
      'a record of the catalog was refused: what was in force before it stays in force',
    ),
  )
}

/**
 * Reads the topic of the catalog to its end. Throws a `TopicTroubleError` if it can't be read, was damaged,
 * or isn't what was in force before.
 */
export async function loadTopic(
  config: Config,
  kafka: KafkaClient,
  { log, known }: { readonly log: CatalogTopicLog; readonly known: KnownLog | undefined },
): Promise<LoadedTopic> {
  const topic = topicNames(config).catalog
  const reader = createPartitionReader(kafka)
  const loaded = newLog(config, log)
  try {
    const place = { topic, partition: 0, stallTimeoutMs: topicIdTimeoutMs }
    const topicId = await askKafka(config, reader.topicId(place)).catch(unreadable)
    const reading = catalogReading(reader, topic)
    const read = async (): Promise<void> => {
      // A process that delivers reads a topic again that was made anew.
      const breath = new Breath()
      for await (const { records, next } of reading(0)) {
        for (const record of records) {
          await inPieces(loaded.taking(record), breath)
          await breath.take()
        }
        loaded.readTo(next)
      }
    }
    await askKafka(config, read()).catch(unreadable)
    refuseDamage(topic, loaded)
    refuseOther(topic, loaded, known)
    return { log: loaded, topicId: topicId ?? '' }
  } finally {
    await reader.stop()
  }

  function unreadable(cause: unknown): never {
    if (!(cause instanceof Error) || cause instanceof TypeError) throw cause
    if (cause instanceof OtherLogError) throw new TopicTroubleError(cause.message, { cause })
    throw new TopicTroubleError(
      `The topic ${topic} can not be read: ${messageOf(cause)}. \`sluice topics apply\` creates it.`,
      { cause },
    )
  }
}

function refuseDamage(topic: string, log: CatalogLog): void {
  const { damage, otherKey } = log
  if (damage === undefined) return
  const problem = `The topic ${topic} can not be used: ${damage}.`
  // The copy of a process that lacks a key would be older for ever.
  if (otherKey !== undefined)
    throw new StartError(`${problem} Give this process all keys (catalog.keysFile).`)
  throw new TopicTroubleError(
    `${problem} Either this process lacks a key (catalog.keysFile), or somebody without a key has written to the topic, or deleted records. In the latter case, \`sluice catalog restore FILE\` or \`sluice catalog import FILE --repair\` writes the whole catalog again.`,
  )
}

/**
 * Throws if the topic has lost changes that this machine has seen, and nobody has said that it is right so.
 */
function refuseOther(topic: string, { head }: CatalogLog, known: KnownLog | undefined): void {
  if (known === undefined) return
  const { revision = 0, lineage, isAccepted = false } = head ?? {}
  const isOther = known.lineage !== undefined && lineage !== undefined && known.lineage !== lineage
  if (revision >= known.revision && (!isOther || isAccepted)) return
  const seen = `The topic ${topic} ends with change ${revision}, and this machine has seen change ${known.revision}${isOther ? ' of another log' : ''}`
  const after = `\`sluice catalog accept --after ${known.revision}\``
  throw new TopicTroubleError(
    isAccepted
      ? `${seen}. The topic was accepted, but as an earlier one, because changes came fast or a clock was ahead: ${after} says that it is right.`
      : `${seen}: the topic was made anew, or has lost records. ${whatToDo.slice(0, -1)}${known.ifAnother ?? ''}.`,
  )
}

export const whatToDo =
  '`sluice catalog restore FILE` brings back a sealed export, and `sluice catalog accept` says that the topic is right as it is.'
