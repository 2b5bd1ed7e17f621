import { leftOutReasons } from './chosen.ts'
import { replaySources, type Selection } from './selection.ts'
import type { Tally } from './replay-tally.ts'
import { isCount, isFilled } from '../message/json/json.ts'

/** The offsets of a partition that are at least `start` and lower than `end`. */
export type OffsetRange = { readonly start: number; readonly end: number }

/** A partition, and the offsets in it that are at least `start` and lower than `end`. */
export type UnsentRange = readonly [partition: number, start: number, end: number]

/** The order of a replay. It never changes. */
export type JobOrder = {
  readonly id: string
  readonly selection: Selection
  /** Limit on the records that are sent per second. */
  readonly perSecond: number
  /** `by` is the person who ordered the replay. `atMs` is the time of the order, in epoch milliseconds. */
  readonly by: string
  readonly atMs: number
  /** The offsets that are read, by partition. Records with higher offsets don't belong to the replay. */
  readonly ranges: readonly OffsetRange[]
  /**
   * The id of the topic that the replay reads. If the topic has another id now, `ranges` aren't valid.
   * `undefined` if the id isn't known.
   */
  readonly topicId?: string | undefined
  /** True if the replay sends what other replays have sent, too. */
  readonly again?: boolean | undefined
  /**
   * The id that the Idempotency-Key of the request gives the order, and the digest of the request. Absent if
   * the request has no such key.
   */
  readonly once?: { readonly changeId: string; readonly request: string } | undefined
  /** The result of the count before the replay. `undefined` if the replay started without a count. */
  readonly counted?: Tally | undefined
}

/** A request to run or stop a replay. Its record has `wish` in the key. */
export type JobRequest = {
  readonly state: 'run' | 'stop'
  readonly by: string
  readonly atMs: number
  /** The reason why the replay stopped, if it stopped by itself. */
  readonly detail?: string | undefined
}

/**
 * The progress of a replay. This progress is written only after Kafka has all chosen records with offsets
 * lower than `offsets`.
 */
export type JobProgress = {
  /**
   * The number of the owner. Each owner has a higher number than all earlier owners, so progress that a
   * former owner still writes is ignored.
   */
  readonly term: number
  /** The number of times that the same owner had already written its progress. */
  readonly note: number
  /** The name of the process that runs the replay. */
  readonly owner: string
  /** The first offset that is still to be read, by partition. */
  readonly offsets: readonly number[]
  readonly done: Tally
  /**
   * The offsets of selected records that this replay hasn't sent (`Unsent`). `undefined` if the owner is of a
   * version that didn't note them.
   */
  readonly unsent?: readonly UnsentRange[] | undefined
  readonly atMs: number
  /** True if all records of the replay are written to be delivered. */
  readonly isHandedOver?: boolean | undefined
  /**
   * How many of these records aren't settled yet, at most. `undefined` if this isn't known. Records of other
   * replays to the same destinations are counted too.
   */
  readonly waits?: number | undefined
  readonly isOver: boolean
}

/** An entry of the audit trail. It names an action and who did it. */
export type AuditEntry = {
  readonly atMs: number
  readonly by: string
  readonly action: AuditAction
  /** The id of the replay that the entry concerns. `undefined` if it concerns no replay. */
  readonly job?: string | undefined
  /** The id of the destination that the entry concerns. `undefined` if it concerns no destination. */
  readonly destination?: string | undefined
  /** The number of records that were counted, or that were sent so far. */
  readonly records?: number | undefined
  /** A description of the action. */
  readonly detail: string
}

export const auditActions = [
  'created',
  'begun',
  'taken_over',
  'stopped',
  'resumed',
  'done',
  'destination_resumed',
  'destination_retried',
  'destination_dropped',
  'destination_tested',
  'user_searched',
  'content_read',
  'tokens_changed',
  'signed_in',
  'signed_out',
  'sessions_ended',
  'links_changed',
  'catalog_changed',
] as const
export type AuditAction = (typeof auditActions)[number]

export type JobRecord =
  | { readonly kind: 'order'; readonly order: JobOrder }
  | { readonly kind: 'wish'; readonly id: string; readonly wish: JobRequest }
  | { readonly kind: 'progress'; readonly id: string; readonly progress: JobProgress }
  | { readonly kind: 'audit'; readonly key: string; readonly entry: AuditEntry }
  /** The tokens of the admin API that were seen last: their names, rights and marks, without the tokens. */
  | { readonly kind: 'tokens'; readonly tokens: readonly string[] }

/**
 * Encodes a record of `replay-jobs`. The keys of this topic are JSON lists: `[id, "order"]`, `[id, "wish"]`,
 * `[id, "progress", term]`, `["audit", key]` and `["tokens", "seen"]`. Compaction keeps the last record of
 * each key. Each owner has its own `term`, so late progress of a former owner replaces only the former
 * owner's own progress.
 */
export function encodeJobRecord(record: JobRecord): { key: Buffer; value: Buffer } {
  return { key: asJson(keyOf(record)), value: asJson(valueOf(record)) }
}

function keyOf(record: JobRecord): readonly unknown[] {
  switch (record.kind) {
    case 'order':
      return [record.order.id, record.kind]
    case 'wish':
      return [record.id, record.kind]
    case 'progress':
      return [record.id, record.kind, record.progress.term]
    case 'audit':
      return [record.kind, record.key]
    case 'tokens':
      return [record.kind, 'seen']
  }
}

function valueOf(record: JobRecord): object {
  switch (record.kind) {
    case 'order': {
      const { id: _inKey, ...order } = record.order
      return { ...order, ranges: record.order.ranges.map(({ start, end }) => [start, end]) }
    }
    case 'wish':
      return record.wish
    case 'progress':
      return record.progress
    case 'audit':
      return record.entry
    case 'tokens':
      return { tokens: record.tokens }
  }
}

/** Decodes a record. Returns `undefined` if `encodeJobRecord` didn't write it. Never throws. */
export function decodeJobRecord(key: Buffer, value: Buffer | null): JobRecord | undefined {
  const names = parse(key)
  const fields = value === null ? undefined : parse(value)
  if (!Array.isArray(names) || !isObject(fields)) return undefined
  const [id, kind, term]: unknown[] = names
  if (!isFilled(id) || !isFilled(kind)) return undefined
  if (id === 'audit') {
    const entry = readAudit(fields)
    return entry && { kind: 'audit', key: kind, entry }
  }
  if (id === 'tokens') {
    const { tokens } = fields
    return Array.isArray(tokens) && tokens.every(isText) ? { kind: 'tokens', tokens } : undefined
  }
  switch (kind) {
    case 'order': {
      const order = readOrder(id, fields)
      return order && { kind, order }
    }
    case 'wish': {
      const wish = readWish(fields)
      return wish && { kind, id, wish }
    }
    case 'progress': {
      const progress = readProgress(fields)
      return progress?.term === term && progress !== undefined ? { kind, id, progress } : undefined
    }
    default:
      return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

function readOrder(id: string, fields: Fields): JobOrder | undefined {
  const { perSecond, by, atMs, ranges, counted } = fields
  const selection = readSelection(fields['selection'])
  const tally = counted === undefined ? undefined : readTally(counted)
  if (selection === undefined || !isCount(perSecond) || perSecond < 1 || !isText(by) || !isCount(atMs))
    return undefined
  if (!Array.isArray(ranges) || (counted !== undefined && tally === undefined)) return undefined
  const read: OffsetRange[] = []
  for (const range of ranges) {
    if (!Array.isArray(range)) return undefined
    const [start, end]: unknown[] = range
    if (!isCount(start) || !isCount(end)) return undefined
    read.push({ start, end })
  }
  const topicId = textOf(fields['topicId'])
  const again = fields['again'] === true && { again: true }
  const once = readOnce(fields['once'])
  const asked = once !== undefined && { once }
  return { id, selection, perSecond, by, atMs, ranges: read, topicId, counted: tally, ...again, ...asked }
}

function readOnce(given: unknown): JobOrder['once'] {
  if (!isObject(given)) return undefined
  const { changeId, request } = given
  return isFilled(changeId) && isFilled(request) ? { changeId, request } : undefined
}

function readSelection(given: unknown): Selection | undefined {
  if (!isObject(given)) return undefined
  const from = replaySources.find((known) => known === given['from'])
  const { destinationId, sourceId, reason, messageId, fromMs, toMs } = given
  if (from === undefined) return undefined
  if (![destinationId, sourceId, reason, messageId].every(isTextOrAbsent)) return undefined
  if (![fromMs, toMs].every((time) => time === undefined || Number.isSafeInteger(time))) return undefined
  return {
    from,
    destinationId: textOf(destinationId),
    sourceId: textOf(sourceId),
    reason: textOf(reason),
    messageId: textOf(messageId),
    fromMs: numberOf(fromMs),
    toMs: numberOf(toMs),
  }
}

function readWish({ state, by, atMs, detail }: Fields): JobRequest | undefined {
  if ((state !== 'run' && state !== 'stop') || !isText(by) || !isCount(atMs)) return undefined
  return { state, by, atMs, detail: textOf(detail) }
}

function readProgress(fields: Fields): JobProgress | undefined {
  const { term, note, owner, offsets, atMs, isOver } = fields
  const done = readTally(fields['done'])
  if (!isCount(term) || !isCount(note) || !isText(owner) || !isCount(atMs)) return undefined
  if (typeof isOver !== 'boolean' || done === undefined) return undefined
  if (!Array.isArray(offsets) || !offsets.every(isCount)) return undefined
  const handedOver = fields['isHandedOver'] === true && {
    isHandedOver: true,
    waits: numberOf(fields['waits']),
  }
  const unsent = readUnsent(fields['unsent'])
  const known = unsent !== undefined && { unsent }
  return { term, note, owner, offsets, done, ...known, atMs, isOver, ...handedOver }
}

function readUnsent(given: unknown): UnsentRange[] | undefined {
  if (!Array.isArray(given)) return undefined
  const ranges: UnsentRange[] = []
  for (const range of given) {
    if (!Array.isArray(range)) return undefined
    const [partition, start, end]: unknown[] = range
    if (!isCount(partition) || !isCount(start) || !isCount(end)) return undefined
    ranges.push([partition, start, end])
  }
  return ranges
}

function readTally(given: unknown): Tally | undefined {
  if (!isObject(given)) return undefined
  const { records, bytes } = given
  const counts = given['leftOut']
  if (!isCount(records) || !isCount(bytes) || !isObject(counts)) return undefined
  const leftOut: Record<string, number> = {}
  for (const reason of leftOutReasons) {
    const count = counts[reason]
    if (isCount(count)) leftOut[reason] = count
  }
  return { records, bytes, leftOut }
}

function readAudit(fields: Fields): AuditEntry | undefined {
  const { atMs, by, job, destination, records, detail } = fields
  const action = auditActions.find((known) => known === fields['action'])
  if (!isCount(atMs) || !isText(by) || action === undefined || !isText(detail)) return undefined
  return {
    atMs,
    by,
    action,
    job: textOf(job),
    destination: textOf(destination),
    records: numberOf(records),
    detail,
  }
}

function asJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || isText(value)
}

function textOf(value: unknown): string | undefined {
  return isText(value) ? value : undefined
}

function numberOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? Number(value) : undefined
}
