import { isCount, isFilled } from '../message/json-values.ts'
import { leftOutReasons } from './chosen.ts'
import { replaySources, type Selection } from './selection.ts'
import type { Tally } from './replay-tally.ts'

/** Of a partition: from `start` to before `end`. */
export type OffsetRange = { readonly start: number; readonly end: number }

/** A replay as it was asked for. It never changes. */
export type JobOrder = {
  readonly id: string
  readonly selection: Selection
  /** Records a second, at most. */
  readonly perSecond: number
  /** Who asked for it, and when, in epoch milliseconds. */
  readonly by: string
  readonly atMs: number
  /** What of each partition is looked at, by its number: what comes later is no part of it. */
  readonly ranges: readonly OffsetRange[]
  /** What was counted beforehand; `undefined`: it was begun without. */
  readonly counted?: Tally | undefined
}

/** What somebody wants of it. */
export type JobRequest = {
  readonly state: 'run' | 'stop'
  readonly by: string
  readonly atMs: number
  /** Why it was stopped, where nobody wanted that. */
  readonly detail?: string | undefined
}

/** How far it is. What is before `offsets` is in Kafka, and noted behind that. */
export type JobProgress = {
  /** Each owner has a higher one than those before: what one of before still writes counts for nothing. */
  readonly term: number
  /** How often this owner has noted something. */
  readonly note: number
  /** The process that has it. */
  readonly owner: string
  /** By partition: the first that is still to be looked at. */
  readonly offsets: readonly number[]
  readonly done: Tally
  readonly atMs: number
  /** All of it is done. */
  readonly isOver: boolean
}

/** What has happened, and who did it. */
export type AuditEntry = {
  readonly atMs: number
  readonly by: string
  readonly action: AuditAction
  /** The replay that it is about; absent: of none. */
  readonly job?: string | undefined
  /** How many records were counted, or sent by then. */
  readonly records?: number | undefined
  /** What, in words. */
  readonly detail: string
}

export const auditActions = ['created', 'begun', 'taken_over', 'stopped', 'resumed', 'done'] as const
export type AuditAction = (typeof auditActions)[number]

export type JobRecord =
  | { readonly kind: 'order'; readonly order: JobOrder }
  | { readonly kind: 'wish'; readonly id: string; readonly wish: JobRequest }
  | { readonly kind: 'progress'; readonly id: string; readonly progress: JobProgress }
  | { readonly kind: 'audit'; readonly key: string; readonly entry: AuditEntry }

/**
 * Records of the topic `replay-jobs`, whose keys are JSON lists: `[id, "order"]`, `[id, "wish"]`,
 * `[id, "progress", term]` and `["audit", key]`. Each is a key of its own, so that compaction leaves the last
 * of each: a note that comes too late of an owner of before takes the place of its own alone.
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
  }
}

/** `undefined` for what `encodeJobRecord` has not written. Never throws. */
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
  return { id, selection, perSecond, by, atMs, ranges: read, counted: tally }
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
  return { term, note, owner, offsets, done, atMs, isOver }
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
  const { atMs, by, job, records, detail } = fields
  const action = auditActions.find((known) => known === fields['action'])
  if (!isCount(atMs) || !isText(by) || action === undefined || !isText(detail)) return undefined
  return { atMs, by, action, job: textOf(job), records: numberOf(records), detail }
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
