import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { OneAtATime } from '../../async/one-at-a-time.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import { countPartitions } from '../../topics/topic-partitions.ts'
import { Board } from '../../notices/board.ts'
import type { Gone } from '../../notices/gone-record.ts'
import { encodePause, type Pause } from '../../notices/pause-record.ts'
import { type AskedDrop, type AskedRecall, encodeDrop, encodeRecall } from '../../recall/order-record.ts'
import { encodeJobRecord, type JobRecord } from '../../replay/job.ts'
import { inFile } from '../catalog/in-file.ts'
import { openKafka } from '../start/ask-kafka.ts'
import { auditRecord } from './replay-jobs.ts'
import type { DeskAnswer, DeskRefusal } from './replay-desk.ts'
import { noticesReadEveryMs, topicNames } from '../start/settings.ts'
import { type HealthReading, type KnownHealth, openHealthReading } from './health-reading.ts'
import { openWriter, type Writer } from './record-writer.ts'

/** A destination that Sluice has paused. */
export type PausedDestination = { readonly destinationId: string; readonly pause: Pause }

/** A destination that Sluice had paused, and that was resumed now. */
export type ResumedDestination = PausedDestination & { readonly atMs: number; readonly by: string }

/** The hooks that have answered 410 (Gone), by destination and hook, whatever their present content is. */
export type GoneByDestination = ReadonlyMap<string, ReadonlyMap<string, Gone>>

/** An order that was given to the workers, and when. */
export type AskedRetry = AskedRecall & { readonly atMs: number }
export type GivenDrop = AskedDrop & { readonly atMs: number }

/**
 * Looks up the destinations that Sluice has paused, and what waits of all. Resumes them: workers pause
 * destinations, this desk doesn't. Gives the workers orders to try messages now, or to give them up. The
 * methods reject when Kafka doesn't answer.
 */
export type PauseDesk = {
  paused(): Promise<DeskAnswer<readonly PausedDestination[]>>
  /** Returns the hooks that have answered 410 (Gone), by destination and hook. */
  gone(): Promise<DeskAnswer<GoneByDestination>>
  /** Ends the pause of a destination, and lets those of its hooks be asked again that are gone. */
  /** Returns what the workers know of destinations now. */
  health(): Promise<KnownHealth>
  resume(destinationId: string, by: string): Promise<DeskAnswer<ResumedDestination>>
  /** Makes the workers try now what waits for a destination on the retry topics. */
  retryNow(order: AskedRecall): Promise<DeskAnswer<AskedRetry>>
  /** Makes dead letters of what waits for a destination in its queue and on the retry topics. */
  drop(order: AskedDrop): Promise<DeskAnswer<GivenDrop>>
  stop(): Promise<void>
}

/** The time after which every worker knows that a destination was resumed, in milliseconds. */
export const knownWithinMs = 2 * noticesReadEveryMs
const stallTimeoutMs = 10_000

export async function openPauseDesk({
  config,
  log,
  role,
  say,
  onOther,
}: {
  config: Config
  log: Logger
  role: KafkaRole
  /** Called if another log takes the place of the one that was read. The process must then start again. */
  onOther?: ((error: Error) => void) | undefined
  /** Called with a line for the user while Kafka doesn't take a record. */
  say: (line: string) => void
}): Promise<PauseDesk> {
  const kafka = await openKafka(config, log, role)
  const writer = await openWriter(config, log, role, say)
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const place = { topic: topicNames(config).notices, partition: 0, stallTimeoutMs }
  const unread = (error: unknown) => log.debug({ err: error }, 'what waits of destinations can not be read')
  return pauseDeskOf({
    config,
    hasTopic: async () => (await countPartitions(kafka, place.topic)) !== undefined,
    reader,
    read: reader.follow(place, onOther),
    health: openHealthReading(config, kafka, reader, unread),
    writer,
  })
}

/** Makes a desk from parts that are open already. */
export function pauseDeskOf(parts: DeskParts): PauseDesk {
  return new Desk(parts)
}

type DeskParts = {
  readonly config: Config
  /** Returns true if the topic `notices` exists. */
  readonly hasTopic: () => Promise<boolean>
  readonly reader: Pick<PartitionReader, 'stop'>
  readonly read: ReturnType<PartitionReader['follow']>
  readonly health: HealthReading
  readonly writer: Writer
}

class Desk implements PauseDesk {
  readonly #parts: DeskParts
  readonly #board = new Board()
  #hasTopic = false
  /** The reason why the last reading gives no result. `undefined` if it gives a result. */
  #refusal: DeskRefusal | undefined
  readonly #readings = new OneAtATime(async () => {
    this.#refusal = await this.#read()
  })

  constructor(parts: DeskParts) {
    this.#parts = parts
  }

  async paused(): Promise<DeskAnswer<readonly PausedDestination[]>> {
    const refusal = await this.#update()
    if (refusal !== undefined) return refusal
    const value = [...this.#board.pauses.paused].map(([destinationId, pause]) => ({ destinationId, pause }))
    return { ok: true, value }
  }

  async gone(): Promise<DeskAnswer<GoneByDestination>> {
    const refusal = await this.#update()
    if (refusal !== undefined) return refusal
    const { pauses } = this.#board
    const ids = new Set(pauses.knownGone.map(({ destinationId }) => destinationId))
    const value = [...ids].map((id) => [id, pauses.goneOf(id)] as const).filter(([, hooks]) => hooks.size > 0)
    return { ok: true, value: new Map(value) }
  }

  async health(): Promise<KnownHealth> {
    return { board: await this.#parts.health.read(), nowMs: Date.now() }
  }

  async resume(destinationId: string, by: string): Promise<DeskAnswer<ResumedDestination>> {
    const refusal = await this.#update()
    if (refusal !== undefined) return refusal
    const { config, writer } = this.#parts
    const { pauses } = this.#board
    const pause = pauses.pauseOf(destinationId) ?? pauseOfGone([...pauses.goneOf(destinationId).values()])
    if (pause === undefined) return { ok: false, kind: 'conflict', problem: notPaused(config, destinationId) }
    const topics = topicNames(config)
    const atMs = Date.now()
    const resumed = resumption(destinationId, atMs, by)
    const detail = `paused since ${new Date(pause.atMs).toISOString()}`
    const audited = auditRecord({ action: 'destination_resumed', destination: destinationId, by, detail })
    const place = { partition: 0, headers: {} }
    await writer.write(
      [
        { ...resumed, ...place, topic: topics.notices },
        { ...encodeJobRecord(audited), ...place, topic: topics.replayJobs },
      ],
      () => 'Look with `sluice destinations paused` whether it was resumed.',
    )
    return { ok: true, value: { destinationId, pause, atMs, by } }
  }

  async retryNow(order: AskedRecall): Promise<DeskAnswer<AskedRetry>> {
    const refusal = await this.#update()
    if (refusal !== undefined) return refusal
    const { destinationId, messageId, by } = order
    const detail = messageId === undefined ? '' : `only the message ${messageId}`
    const audited = auditRecord({ action: 'destination_retried', destination: destinationId, by, detail })
    const atMs = Date.now()
    // Whoever asks for all messages also asks for the hooks that are gone. The workers read this record
    // first.
    const asksGone = messageId === undefined && this.#board.pauses.goneOf(destinationId).size > 0
    const resumed = asksGone ? [resumption(destinationId, atMs, by)] : []
    await this.#order(
      [...resumed, encodeRecall(order)],
      audited,
      'what was tried meanwhile is not tried twice',
    )
    return { ok: true, value: { ...order, atMs } }
  }

  async drop(order: AskedDrop): Promise<DeskAnswer<GivenDrop>> {
    const refusal = await this.#update()
    if (refusal !== undefined) return refusal
    const { destinationId, by } = order
    const detail = 'what waits in its queue and on the retry topics'
    const audited = auditRecord({ action: 'destination_dropped', destination: destinationId, by, detail })
    const atMs = Date.now()
    await this.#order([encodeDrop(order)], audited, 'what is a dead letter already stays one')
    return { ok: true, value: { ...order, atMs } }
  }

  /** Writes an order to the workers, and its entry of the audit trail. */
  async #order(
    orders: readonly { readonly key: Buffer; readonly value: Buffer | null }[],
    audited: JobRecord,
    again: string,
  ): Promise<void> {
    const { config, writer } = this.#parts
    const topics = topicNames(config)
    const place = { partition: 0, headers: {} }
    await writer.write(
      [
        ...orders.map((order) => ({ ...order, ...place, topic: topics.notices })),
        { ...encodeJobRecord(audited), ...place, topic: topics.replayJobs },
      ],
      () => `Run the command again: ${again}.`,
    )
  }

  async stop(): Promise<void> {
    const { reader, writer } = this.#parts
    await Promise.all([reader.stop(), writer.stop()])
  }

  /**
   * Reads the topic `notices` up to its present end. Only one reading runs at a time. All calls that are made
   * during a reading share the next reading.
   */
  async #update(): Promise<DeskRefusal | undefined> {
    await this.#readings.run()
    return this.#refusal
  }

  async #read(): Promise<DeskRefusal | undefined> {
    const { config, hasTopic, read } = this.#parts
    const topic = topicNames(config).notices
    this.#hasTopic ||= await hasTopic()
    if (!this.#hasTopic) {
      const problem = `${topic} does not exist: \`sluice topics apply\` creates it. Without it Sluice pauses nothing, and workers get no orders.`
      return { ok: false, kind: 'conflict', problem }
    }
    for await (const records of read(this.#board.position))
      for (const record of records) this.#board.take(record, Math.min(record.timestampMs, Date.now()))
    return undefined
  }
}

function resumption(destinationId: string, atMs: number, by: string): ReturnType<typeof encodePause> {
  return encodePause({ kind: 'resumed', destinationId, content: { atMs, by, cause: 'asked' } })
}

/** Returns the pause of a destination with gone hooks about which nobody has written a record of a pause. */
function pauseOfGone(gone: readonly Gone[]): Pause | undefined {
  const [first] = gone.toSorted((one, other) => one.atMs - other.atMs)
  if (first === undefined) return undefined
  const { atMs, lastOutcome, readTo } = first
  return { sinceMs: atMs, atMs, urls: '', lastOutcome, readTo, cause: 'gone' }
}

function notPaused(config: Config, id: string): string {
  const ofCatalog =
    config.catalog.source === 'file'
      ? ` If the catalog pauses it: ${inFile(config, { deed: 'resume', id })}`
      : ' One that the catalog pauses is resumed there, by its state.'
  return `Sluice has not paused the destination ${JSON.stringify(id)}: list those that it has paused.${ofCatalog}`
}

/** Returns a paused destination as the HTTP API and `--json` show it. */
export function pausedData({ destinationId, pause }: PausedDestination) {
  const { sinceMs, atMs, lastOutcome, cause = 'failing' } = pause
  return { destination: destinationId, since: timeOf(sinceMs), pausedAt: timeOf(atMs), lastOutcome, cause }
}

/** Returns a resumed destination as the HTTP API and `--json` show it. */
export function resumedData(resumed: ResumedDestination) {
  return {
    ...pausedData(resumed),
    resumedAt: timeOf(resumed.atMs),
    resumedBy: resumed.by,
    workersKnowWithinSeconds: knownWithinMs / 1_000,
  }
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
