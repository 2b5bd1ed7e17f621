import { hostname } from 'node:os'
import process from 'node:process'
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { untilAborted } from '../../async/until-aborted.ts'
import type { LogPiece, PartitionReader } from '../../kafka/read/partition-reader.ts'
import type { Decoder } from '../../schema-registry/decoder.ts'
import { foreignFrame, magicByte } from '../../schema-registry/frame.ts'
import { type Choice, type Chosen, leaveOut, type SourceRecord } from '../../replay/chosen.ts'
import { chooseEvent } from '../../replay/event.ts'
import type { AuditEntry, JobRecord } from '../../replay/job.ts'
import { JobLog, type JobLogOptions } from '../../replay/job-log.ts'
import { chooseLetter, isRefusedEvent } from '../../replay/letter.ts'
import type { OtherReplays } from '../../replay/other-replays.ts'
import type { Pieces } from '../../replay/pieces.ts'
import type { TopicNames } from '../../topics/topics.ts'
import { openDecoder } from '../start/schema-registry.ts'
import { topicNames } from '../start/settings.ts'

// The code here serves both steps of a replay: to count its records, and to send them again.

const stallTimeoutMs = 30_000
/** The interval at which a replay checks whether its topic still has the same id, in milliseconds. */
const checkEveryMs = 1_000

type JobLogPorts = Pick<JobLogOptions, 'write' | 'isAudited'> & {
  readonly onOther?: ((error: Error) => void) | undefined
}

/**
 * Opens the log of replays, which is in the topic `replay-jobs`. Calls `onOther` if another log takes the
 * place of the one that was read. The process must then start again.
 */
export function openJobLog(
  config: Config,
  reader: PartitionReader,
  { write, isAudited, onOther }: JobLogPorts,
): JobLog {
  const topic = topicNames(config).replayJobs
  return new JobLog({
    read: reader.follow({ topic, partition: 0, stallTimeoutMs }, onOther),
    write,
    ...(isAudited !== undefined && { isAudited }),
  })
}

export type ReplayReading = {
  /**
   * Returns the reader of the topic from which a selection takes its records. With `topicId`, the reader
   * reads only the topic with this id.
   */
  pieces(from: Choice['selection']['from'], topicId?: string): Pieces
  /** Returns the present id of this topic. `undefined` if the brokers give topics no ids. */
  topicId(from: Choice['selection']['from']): Promise<string | undefined>
  /** `others`: leaves out what these have sent. `undefined`: sends it again. */
  choose(
    choice: Omit<Choice, 'topics' | 'limits' | 'partitions'>,
    others: OtherReplays | undefined,
  ): (record: SourceRecord) => Chosen
  stop(): void
}

/**
 * Opens the parts that read the records which a replay sends again. Framed values, which begin with a schema
 * id, are decoded with the schemas of the configured registry.
 */
export async function openReplayReading(
  config: Config,
  log: Logger,
  reader: PartitionReader,
): Promise<ReplayReading> {
  const topics = topicNames(config)
  const decoder = await openDecoder(config, log)

  function piecesOf(
    { topic, topicId }: { readonly topic: string; readonly topicId: string | undefined },
    complete: (piece: LogPiece, partition: number, signal?: AbortSignal) => Promise<SourceRecord[]>,
  ): Pieces {
    const isOther = otherTopicCheck(reader, topicId)
    return {
      async piece({ partition, ...where }) {
        const place = { topic, partition, stallTimeoutMs }
        // A shorter patience of the caller takes precedence.
        const piece = await reader.piece({ ...place, ...where }).catch(async (error: unknown) => {
          where.signal?.throwIfAborted()
          const { end } = await reader.range({ ...place, ...where })
          if (end >= where.to) throw error
          return undefined
        })
        if (await isOther({ ...place, ...where })) return 'recreated'
        if (piece === undefined) return 'lost'
        return { records: await complete(piece, partition, where.signal), next: piece.next }
      },
    }
  }

  return {
    topicId: (from) => reader.topicId({ topic: topicOf(from, topics), partition: 0, stallTimeoutMs }),
    pieces(from, topicId) {
      const place = { topic: topicOf(from, topics), topicId }
      return piecesOf(place, async ({ records }, partition, signal) => {
        const plain: SourceRecord[] = []
        for (const one of records) {
          const record = { ...one, partition }
          // The other dead letters go back as they came, or their values are plain JSON already.
          const isToDecode = from === 'events' || isRefusedEvent(record, topics)
          plain.push(isToDecode ? await plainOf(decoder, record, signal) : record)
        }
        return plain
      })
    },
    choose(choice, others) {
      const whole: Choice = {
        ...choice,
        topics,
        limits: config.message,
        partitions: config.topics.partitions,
      }
      const chooses = choice.selection.from === 'events' ? chooseEvent : chooseLetter
      return (record) => withoutSent(record, chooses(record, whole), others)
    },
    stop: () => decoder.stop(),
  }
}

function withoutSent(record: SourceRecord, chosen: Chosen, others: OtherReplays | undefined): Chosen {
  if (chosen.kind !== 'send' || others === undefined) return chosen
  const messageId = chosen.records[0]?.headers['message-id']
  return others.haveSent(record, messageId) ? leaveOut('already_replayed') : chosen
}

function topicOf(from: Choice['selection']['from'], topics: TopicNames): string {
  return from === 'events' ? topics.events : topics.deadLetters
}

/**
 * Returns a function that says whether a topic has another id than `topicId`. It asks the brokers at most
 * once in `checkEveryMs`. In between, it returns false.
 */
function otherTopicCheck(
  reader: Pick<PartitionReader, 'topicId'>,
  topicId: string | undefined,
): (where: Parameters<PartitionReader['topicId']>[0]) => Promise<boolean> {
  let checkedMs = -Infinity
  return async function isOther(where) {
    if (topicId === undefined || performance.now() - checkedMs < checkEveryMs) return false
    const present = await reader.topicId(where)
    checkedMs = performance.now()
    return present !== undefined && present !== topicId
  }
}

/**
 * Returns a record with its value as plain JSON. If the value is framed, decodes it. Waits while the schema
 * registry is down. Rejects when `signal` fires.
 */
async function plainOf(
  decoder: Decoder,
  record: SourceRecord,
  signal: AbortSignal | undefined,
): Promise<SourceRecord> {
  const { value, headers } = record
  if (value?.[0] !== magicByte) {
    const refusal = value === null ? undefined : foreignFrame(value, headers)
    return refusal === undefined ? record : { ...record, unreadable: refusal.detail }
  }
  for (;;) {
    const decoded = decoder.decode(value)
    if (decoded instanceof Promise) await (signal === undefined ? decoded : untilAborted(decoded, signal))
    else return decoded.ok ? { ...record, value: decoded.value } : { ...record, unreadable: decoded.detail }
  }
}

/** Returns the record of the audit trail for an action that somebody takes now. */
export function auditRecord(deed: Omit<AuditEntry, 'atMs'>): JobRecord {
  const atMs = Date.now()
  const about = deed.job ?? deed.destination ?? ''
  const key = `${atMs}-${about}-${deed.action}-${randomBytes(3).toString('hex')}`
  return { kind: 'audit', key, entry: { atMs, ...deed } }
}

/** Returns a name for this process as the owner of replays. No other process has the same name. */
export function ownerName(): string {
  return `${hostname()}:${process.pid}:${randomBytes(3).toString('hex')}`
}

export type KafkaClient = ReturnType<typeof createKafka>
