import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createPartitionReader, offsetRanges } from '../../kafka/read/partition-reader.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { countPartitions } from '../../topics/topic-partitions.ts'
import type { ReplayCatalog } from '../../replay/chosen.ts'
import type { AuditPage, AuditQuery } from '../../replay/audit-trail.ts'
import { count } from '../../replay/count.ts'
import type { AuditEntry, JobOrder, OffsetRange } from '../../replay/job.ts'
import type { JobLog } from '../../replay/job-log.ts'
import { type Job, stateOf } from '../../replay/jobs.ts'
import type { Group } from '../../replay/groups.ts'
import { OtherReplays } from '../../replay/other-replays.ts'
import { passed } from '../../replay/pieces.ts'
import { describeSelection, faultsOf, type Selection } from '../../replay/selection.ts'
import type { Tally } from '../../replay/replay-tally.ts'
import { askKafka, openKafka } from '../start/ask-kafka.ts'
import {
  auditRecord,
  type KafkaClient,
  openJobLog,
  openReplayReading,
  type ReplayReading,
} from './replay-jobs.ts'
import { topicNames } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'
import { openWriter } from './record-writer.ts'

/** The result of counting the records that match a selection, among the records that Kafka has now. */
export type Preview = {
  readonly selection: Selection
  readonly ranges: readonly OffsetRange[]
  /** The id of the topic that was counted. `undefined` if it isn't known. */
  readonly topicId?: string | undefined
  readonly tally: Tally
  /** The records that would be sent, by destination and reason. */
  readonly groups: readonly Group[]
  /** True if those that other replays have sent were counted, too. */
  readonly isAgain: boolean
  /** False if the time for the count ended before all records were read. */
  readonly isComplete: boolean
}

/**
 * The reason why a request about replays is refused. With `notFound`, there is no such replay. With
 * `conflict`, the request isn't possible now. With `invalid`, the request makes no sense.
 */
export type DeskRefusal = {
  readonly ok: false
  readonly kind: 'notFound' | 'conflict' | 'invalid'
  /** What is wrong and what to do, in a sentence or two. */
  readonly problem: string
}

export type DeskAnswer<T> = { readonly ok: true; readonly value: T } | DeskRefusal

/**
 * Counts the records of selections, requests replays, and looks replays up. Workers carry out the replays.
 * The methods reject when Kafka doesn't answer.
 */
export type ReplayDesk = {
  preview(
    selection: Selection,
    how: {
      /** True to count what other replays have sent, too. */
      readonly isAgain?: boolean
      /** The time, by `performance.now()`, at which the count ends, complete or not. */
      readonly untilMs?: number
      /** Called with the number of offsets that were read so far, and the number of all offsets to read. */
      readonly onProgress?: (passed: number, all: number, tally: Tally) => void
    },
  ): Promise<DeskAnswer<Preview>>
  create(
    preview: Preview,
    how: { readonly perSecond: number; readonly by: string; readonly once?: JobOrder['once'] },
  ): Promise<Job>
  list(): Promise<readonly Job[]>
  show(id: string): Promise<DeskAnswer<Job>>
  wish(id: string, state: 'run' | 'stop', by: string): Promise<DeskAnswer<Job>>
  /** `isMeant`: whether an entry is wanted. `replay`: the replay that it is about. */
  audit(
    query: AuditQuery,
    isMeant?: (entry: AuditEntry, replay: Job | undefined) => boolean,
  ): Promise<AuditPage & { readonly completeSinceMs: number | undefined }>
  /** Writes an entry of the audit trail about an action that is none of this desk's. */
  tell(deed: Omit<AuditEntry, 'atMs'>): Promise<void>
  /** Returns the tokens of the admin API that were seen last. `undefined` if none were. */
  tokens(): Promise<readonly string[] | undefined>
  /** Writes which tokens there are now, and an entry of the audit trail that describes the changes. */
  tellTokens(present: readonly string[], changes: string): Promise<void>
  stop(): Promise<void>
}

export const defaultPerSecond = 1_000
export const mostPerSecond = 1_000_000

export async function openReplayDesk({
  config,
  log,
  role,
  catalog,
  say = () => undefined,
  onOther,
}: {
  config: Config
  log: Logger
  role: KafkaRole
  catalog: () => ReplayCatalog
  /** Called with a line for the user while Kafka doesn't take a record. */
  say?: (line: string) => void
  /** Called if another log takes the place of the one that was read. The process must then start again. */
  onOther?: ((error: Error) => void) | undefined
}): Promise<ReplayDesk> {
  const topic = topicNames(config).replayJobs
  const kafka = await openKafka(config, log, role)
  if ((await askKafka(config, countPartitions(kafka, topic))) === undefined)
    throw new StartError(`${topic} does not exist: \`sluice topics apply\` creates it.`)
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const reading = await openReplayReading(config, log, reader)
  // The writer is opened last, because it is the only part with open connections. If a part after it could
  // not be opened, the connections would keep the process of a command alive.
  const writer = await openWriter(config, log, role, say)
  const jobs = openJobLog(config, reader, {
    write: (records) =>
      writer.write(
        records.map((record) => ({ ...record, topic, partition: 0, headers: {} })),
        advice,
      ),
    isAudited: true,
    onOther,
  })
  return replayDeskOf({ config, kafka, catalog, reading, jobs, stops: [reader, writer] })
}

/** Makes a desk from parts that are open already. */
export function replayDeskOf(parts: DeskParts): ReplayDesk {
  return new Desk(parts)
}

const advice = () => 'See with `sluice replay list` whether it was changed all the same.'

type DeskParts = {
  readonly config: Config
  readonly kafka: KafkaClient
  readonly catalog: () => ReplayCatalog
  readonly reading: ReplayReading
  readonly jobs: JobLog
  readonly stops: readonly { stop(): Promise<unknown> }[]
}

class Desk implements ReplayDesk {
  readonly #parts: DeskParts

  constructor(parts: DeskParts) {
    this.#parts = parts
  }

  async preview(
    selection: Selection,
    { isAgain = false, untilMs, onProgress }: Parameters<ReplayDesk['preview']>[1],
  ): Promise<DeskAnswer<Preview>> {
    const { config, kafka, catalog, reading, jobs } = this.#parts
    const problem = problemOf(selection, catalog())
    if (problem !== undefined) return { ok: false, kind: 'invalid', problem }
    const topics = topicNames(config)
    const topic = selection.from === 'events' ? topics.events : topics.deadLetters
    const topicId = await reading.topicId(selection.from)
    if (!isAgain) await jobs.update()
    const others = isAgain ? undefined : new OtherReplays(jobs.jobs, { selection, topicId })
    const ranges = await offsetRanges(kafka, topic, selection)
    const { all } = passed(ranges, [])
    const counted = await count({
      ranges,
      pieces: reading.pieces(selection.from),
      choose: reading.choose({ selection, jobId: '', catalog }, others),
      ...(untilMs !== undefined && { untilMs }),
      ...(onProgress !== undefined && {
        onProgress: (done: number, sum: Tally) => onProgress(done, all, sum),
      }),
    })
    if (counted === 'lost') return lostWhileCounted(topic)
    return { ok: true, value: { selection, ranges, topicId, isAgain, ...counted } }
  }

  async create(
    { selection, ranges, topicId, tally, isAgain, isComplete }: Preview,
    { perSecond, by, once }: Parameters<ReplayDesk['create']>[1],
  ): Promise<Job> {
    const { jobs } = this.#parts
    const atMs = Date.now()
    const counted = isComplete ? tally : undefined
    const order: JobOrder = {
      id: newId(atMs),
      selection,
      ranges,
      topicId,
      perSecond,
      by,
      atMs,
      counted,
      ...(isAgain && { again: true }),
      ...(once !== undefined && { once }),
    }
    const detail = `${describeSelection(selection)}${isAgain ? ', also what was replayed before' : ''}`
    await jobs.write(
      { kind: 'order', order },
      auditRecord({ action: 'created', job: order.id, by, detail, records: counted?.records }),
    )
    // The replay is stored already. If Kafka doesn't answer now, this must not be reported as a failure of
    // the request, because somebody would request the replay again.
    await jobs.update().catch(() => undefined)
    return jobs.jobs.get(order.id) ?? { order, wish: { state: 'run', by, atMs }, progress: undefined }
  }

  async list(): Promise<readonly Job[]> {
    const { jobs } = this.#parts
    await jobs.update()
    return [...jobs.jobs.all()].sort(
      ({ order: one }, { order: other }) => other.atMs - one.atMs || (other.id < one.id ? -1 : 1),
    )
  }

  async show(id: string): Promise<DeskAnswer<Job>> {
    const { jobs } = this.#parts
    await jobs.update()
    const job = jobs.jobs.get(id)
    if (job !== undefined) return { ok: true, value: job }
    return unknownReplay(id)
  }

  async wish(id: string, state: 'run' | 'stop', by: string): Promise<DeskAnswer<Job>> {
    const found = await this.show(id)
    if (!found.ok) return found
    if (stateOf(found.value) === 'done')
      return { ok: false, kind: 'conflict', problem: `The replay ${id} is done: ask for a new one.` }
    if (found.value.wish.state === state) return found
    const action = state === 'stop' ? 'stopped' : 'resumed'
    const records = found.value.progress?.done.records
    await this.#parts.jobs.write(
      { kind: 'wish', id, wish: { state, by, atMs: Date.now() } },
      auditRecord({ action, job: id, by, detail: 'as asked', records }),
    )
    return this.show(id)
  }

  async audit(
    query: AuditQuery,
    isMeant: Parameters<ReplayDesk['audit']>[1] = () => true,
  ): ReturnType<ReplayDesk['audit']> {
    const { jobs } = this.#parts
    await jobs.update()
    const { audit } = jobs.jobs
    const replayOf = (id: string | undefined): Job | undefined => (id === undefined ? id : jobs.jobs.get(id))
    const page = audit.page({ ...query, isMeant: (entry) => isMeant(entry, replayOf(entry.job)) })
    return { ...page, completeSinceMs: audit.completeSinceMs }
  }

  tell(deed: Omit<AuditEntry, 'atMs'>): Promise<void> {
    return this.#parts.jobs.write(auditRecord(deed))
  }

  async tokens(): Promise<readonly string[] | undefined> {
    const { jobs } = this.#parts
    await jobs.update()
    return jobs.jobs.tokens
  }

  tellTokens(present: readonly string[], changes: string): Promise<void> {
    return this.#parts.jobs.write(
      { kind: 'tokens', tokens: present },
      auditRecord({ action: 'tokens_changed', by: 'the token file', detail: changes }),
    )
  }

  async stop(): Promise<void> {
    const { reading, stops } = this.#parts
    reading.stop()
    await Promise.all(stops.map((part) => part.stop()))
  }
}

/**
 * Returns why a replay of a selection would send nothing or would have no receiver. Returns `undefined` if
 * the selection is fine.
 */
function problemOf(selection: Selection, { sources, destinations }: ReplayCatalog): string | undefined {
  const [fault] = faultsOf(selection)
  if (fault !== undefined) return `${fault.field}: ${fault.problem}.`
  const { from, destinationId, sourceId } = selection
  if (destinationId === undefined) return undefined
  const name = JSON.stringify(destinationId)
  const destination = destinations.get(destinationId)
  if (destination === undefined) return unknownDestination(destinationId)
  if (destination.state === 'off') return `The destination ${name} is off: switch it on, or pause it, first.`
  if (from !== 'events' || sourceId === undefined) return undefined
  if (!sources.has(sourceId)) return `The catalog has no source ${JSON.stringify(sourceId)}.`
  return destination.sources.includes(sourceId) ? undefined : notConnected(destinationId, sourceId)
}

export function unknownDestination(id: string): string {
  return `The catalog has no destination ${JSON.stringify(id)}: name one that it has, or put it back first.`
}

export function notConnected(destinationId: string, sourceId: string): string {
  return `The destination ${JSON.stringify(destinationId)} is not connected to ${JSON.stringify(sourceId)}: add it to its sources in the catalog first.`
}

export function unknownReplay(id: string): DeskRefusal {
  const problem = `There is no replay ${JSON.stringify(id)}: list those that there are. They are known for 90 days.`
  return { ok: false, kind: 'notFound', problem }
}

/** Returns an id that sorts by time, such as `20260723-101500-3f9a2c`. */
function newId(atMs: number): string {
  const digits = new Date(atMs).toISOString().replace(/\D/g, '')
  return `${digits.slice(0, 8)}-${digits.slice(8, 14)}-${randomBytes(3).toString('hex')}`
}

function lostWhileCounted(topic: string): DeskRefusal {
  const problem = `${topic} lost records, or was created again, while its records were counted: ask again.`
  return { ok: false, kind: 'conflict', problem }
}
