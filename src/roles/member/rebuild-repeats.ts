import type { Logger } from 'pino'
import { AtATime } from '../../async/at-a-time.ts'
import { untilAborted } from '../../async/until-aborted.ts'
import type { Config } from '../../config/schema.ts'
import type { ConsumerOptions } from '../../kafka/group/consumer.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import { enter } from '../../message/enter.ts'
import { sourceIdOf } from '../../message/record-headers.ts'
import type { WholeRecord } from '../../message/records.ts'
import { type MessageId, rebuild, type RebuildEnd } from '../../repeats/rebuild.ts'
import type { Repeats } from '../../repeats/repeats.ts'
import type { Decoder } from '../../schema-registry/decoder.ts'
import { magicByte } from '../../schema-registry/frame.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import type { KafkaClient } from '../operations/replay-jobs.ts'
import { openDecoder } from '../start/schema-registry.ts'

type PassedOn = Parameters<NonNullable<ConsumerOptions['onInherited']>>[0]

export type RebuildRepeatsOptions = {
  readonly config: Pick<Config, 'repeats' | 'message' | 'registry'>
  readonly kafka: KafkaClient
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly metrics: Pick<WorkerMetrics, 'repeatsRebuildRecords' | 'repeatsRebuildSeconds'>
  readonly repeats: Repeats
}

/** Rebuilds the memory of repeats when this member gets partitions. */
export type RebuildRepeats = {
  /** Sets the number of units that this member owns. Each may fill its part of the memory. */
  assigned(units: number): void
  /** Resolves when the memory of a partition is rebuilt as far as it will be. Never rejects. */
  rebuild(passedOn: PassedOn): Promise<void>
  stop(): Promise<void>
}

/** The most bytes of values that a process reads for one partition. */
const bytesOfPartition = 64 * 1024 * 1024
/** The fetches that are under way at the same time, of all partitions. Each takes 1 MiB. */
const fetchesAtATime = 4

/** The rebuilds that run at the same time, for one line of the log. */
type Round = {
  running: number
  partitions: number
  records: number
  remembered: number
  readonly startedMs: number
}

export async function openRebuildRepeats(options: RebuildRepeatsOptions): Promise<RebuildRepeats> {
  // The intake already logs what becomes of the registry.
  const quiet = { info() {}, warn() {}, error() {} }
  return new Rebuilds(options, await openDecoder(options.config, quiet))
}

class Rebuilds implements RebuildRepeats {
  readonly #options: RebuildRepeatsOptions
  readonly #decoder: Decoder
  readonly #turns = new AtATime(fetchesAtATime)
  readonly #stopping = new AbortController()
  #units = 1
  #reader: PartitionReader | undefined
  #round: Round | undefined
  readonly #ended = new Map<RebuildEnd | 'failed', number>()

  constructor(options: RebuildRepeatsOptions, decoder: Decoder) {
    this.#options = options
    this.#decoder = decoder
    for (const outcome of outcomes) options.metrics.repeatsRebuildRecords.inc({ outcome }, 0)
  }

  assigned(units: number): void {
    this.#units = Math.max(1, units)
  }

  async rebuild(passedOn: PassedOn): Promise<void> {
    if (passedOn.end <= passedOn.start || this.#stopping.signal.aborted) return
    const { kafka, config, log } = this.#options
    const startedMs = performance.now()
    const round = (this.#round ??= { running: 0, partitions: 0, records: 0, remembered: 0, startedMs })
    round.running++
    round.partitions++
    const reader = (this.#reader ??= createPartitionReader(kafka, { keepsOpen: true }))
    const over = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(config.repeats.rebuildTimeMs)])
    const ended = await this.#run(passedOn, reader, over, round).catch((error: unknown) => {
      if (over.aborted) return 'time' as const
      const { topic, partition } = passedOn
      log.warn({ err: error, topic, partition }, 'the memory of repeats can not be rebuilt')
      return 'failed' as const
    })
    this.#ended.set(ended, (this.#ended.get(ended) ?? 0) + 1)
    this.#options.metrics.repeatsRebuildSeconds.inc((performance.now() - startedMs) / 1_000)
    if (--round.running === 0) await this.#end(round)
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the worker stops'))
    this.#decoder.stop()
    await this.#reader?.stop()
  }

  async #run(
    passedOn: PassedOn,
    reader: PartitionReader,
    over: AbortSignal,
    round: Round,
  ): Promise<RebuildEnd> {
    const { config, metrics, repeats } = this.#options
    const { topic, partition, topicId } = passedOn
    const where = { topic, partition, signal: over }
    const { records, remembered, ended } = await rebuild(passedOn, {
      repeats,
      read: async (from, to) => {
        await this.#turns.take(over)
        try {
          return await reader.piece({ ...where, from, to })
        } finally {
          this.#turns.end()
        }
      },
      isSameTopic: async () => topicId !== undefined && (await reader.topicId(where)) === topicId,
      idOf: (record) => this.#idOf(record, { topic, partition }, over),
      now: Date.now,
      isOver: () => over.aborted,
      windowMs: config.repeats.windowMs,
      messages: Math.floor(config.repeats.messages / this.#units),
      bytes: bytesOfPartition,
    })
    round.records += records
    round.remembered += remembered
    metrics.repeatsRebuildRecords.inc({ outcome: 'remembered' }, remembered)
    metrics.repeatsRebuildRecords.inc({ outcome: 'skipped' }, records - remembered)
    return ended
  }

  #idOf(
    record: WholeRecord,
    place: { readonly topic: string; readonly partition: number },
    over: AbortSignal,
  ): MessageId | undefined | Promise<MessageId | undefined> {
    const { value } = record
    if (value?.[0] !== magicByte) return this.#idIn(value, record, place)
    const decoded = this.#decoder.decode(value)
    if (decoded instanceof Promise)
      return untilAborted(decoded, over).then(() => this.#idOf(record, place, over))
    return decoded.ok ? this.#idIn(decoded.value, record, place) : undefined
  }

  #idIn(
    value: Buffer | null,
    { headers, offset, timestampMs }: WholeRecord,
    place: { readonly topic: string; readonly partition: number },
  ): MessageId | undefined {
    const sourceId = sourceIdOf(headers)
    if (sourceId === undefined) return undefined
    const entered = enter(value, { ...place, offset, timestampMs }, this.#options.config.message)
    return entered.ok && entered.message.isIdGiven
      ? { sourceId, messageId: entered.message.messageId }
      : undefined
  }

  async #end({ partitions, records, remembered, startedMs }: Round): Promise<void> {
    const ended = Object.fromEntries(this.#ended)
    this.#ended.clear()
    this.#round = undefined
    const reader = this.#reader
    this.#reader = undefined
    const ms = Math.round(performance.now() - startedMs)
    this.#options.log.info(
      { partitions, records, remembered, ms, ended },
      'read the end of events, to recognize repeats of earlier messages',
    )
    await reader?.stop()
  }
}

const outcomes = ['remembered', 'skipped'] as const
