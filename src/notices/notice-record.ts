import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { type Notice, type NoticeKind, noticeKinds, subjectOf } from './notice.ts'
import { decodeGone, type GoneRecord } from './gone-record.ts'
import { decodePause, type PauseRecord } from './pause-record.ts'

// The records of the topic `notices`. Their keys are JSON lists:
//
// - `["report", REPORTER]`: the observations of a process about hooks and destinations. While a process has
//   observations, it writes this record a few times a minute. If there are too many observations for one
//   record, it writes several records, each with another REPORTER.
// - `["told", KIND, DESTINATION, SUBJECT]`: the last notice of a kind about a subject. A process writes this
//   record before it sends the notice, and once more after that. After a crash, the next process sends every
//   notice whose second record is missing.
//
// `pause-record.ts` has the records about pauses, and `gone-record.ts` those about hooks that are gone.

const failingHook = Type.Object({
  destinationId: Type.String(),
  hookId: Type.String(),
  sinceMs: Type.Number(),
  lastFailedMs: Type.Number(),
  lastOutcome: Type.String(),
})
const answeredHook = Type.Object({
  destinationId: Type.String(),
  hookId: Type.String(),
  atMs: Type.Number(),
})
const countOfReasons = Type.Record(Type.String(), Type.Number())
const countedDestination = Type.Object({
  destinationId: Type.String(),
  paced: countOfReasons,
  dead_letters: countOfReasons,
})
const reportSchema = Type.Object({
  failing: Type.Array(failingHook),
  answered: Type.Array(answeredHook),
  counts: Type.Array(countedDestination),
  refusing: Type.Optional(Type.Array(failingHook)),
  accepted: Type.Optional(Type.Array(answeredHook)),
})

/** A failing hook, as one process has observed it. Times are epoch milliseconds. */
export type FailingHook = Readonly<Static<typeof failingHook>>
/** A hook that was passed to `Watch.follow`, and has accepted a request since the previous report. */
export type AnsweredHook = Readonly<Static<typeof answeredHook>>
/** The numbers of a destination's paced deliveries and dead letters since the previous report, by reason. */
export type CountedDestination = Readonly<Static<typeof countedDestination>>

export type Report = {
  readonly failing: readonly FailingHook[]
  readonly answered: readonly AnsweredHook[]
  readonly counts: readonly CountedDestination[]
  /** The hooks that refuse everything. Absent in reports of earlier versions. */
  readonly refusing?: readonly FailingHook[] | undefined
  /** The hooks of which any process reports that they refuse everything, and that have accepted a request. */
  readonly accepted?: readonly AnsweredHook[] | undefined
}

const hookNotice = {
  destinationId: Type.String(),
  hookId: Type.String(),
  sinceMs: Type.Number(),
  atMs: Type.Number(),
}
const countedNotice = {
  destinationId: Type.String(),
  sinceMs: Type.Number(),
  atMs: Type.Number(),
  counts: countOfReasons,
}
const noticeSchema = Type.Union([
  Type.Object({
    kind: Type.Literal('failing'),
    ...hookNotice,
    lastOutcome: Type.String(),
    times: Type.Number(),
  }),
  Type.Object({ kind: Type.Literal('recovered'), ...hookNotice }),
  Type.Object({ kind: Type.Literal('refusing'), ...hookNotice, lastOutcome: Type.String() }),
  Type.Object({ kind: Type.Literal('paced'), ...countedNotice }),
  Type.Object({ kind: Type.Literal('dead_letters'), ...countedNotice }),
  Type.Object({
    kind: Type.Literal('needs_backfill'),
    destinationId: Type.String(),
    spaceId: Type.String(),
    atMs: Type.Number(),
  }),
  Type.Object({
    kind: Type.Literal('secret_ending'),
    destinationId: Type.String(),
    endsAtMs: Type.Number(),
    atMs: Type.Number(),
  }),
  Type.Object({
    kind: Type.Literal('auto_paused'),
    destinationId: Type.String(),
    sinceMs: Type.Number(),
    atMs: Type.Number(),
    lastOutcome: Type.String(),
  }),
  Type.Object({
    kind: Type.Literal('resumed'),
    destinationId: Type.String(),
    sinceMs: Type.Number(),
    atMs: Type.Number(),
    cause: Type.Union([Type.Literal('asked'), Type.Literal('catalog')]),
  }),
])
const toldSchema = Type.Object({ notice: noticeSchema, isSent: Type.Boolean() })

/** The last notice of a kind about a subject. `isSent`: true if a record says that the notice was sent. */
export type Told = { readonly notice: Notice; readonly isSent: boolean }

export type LogRecord =
  | { readonly kind: 'report'; readonly reporter: string; readonly report: Report | undefined }
  | { readonly kind: 'told'; readonly key: string; readonly told: Told | undefined }
  | { readonly kind: 'pause'; readonly record: PauseRecord }
  | { readonly kind: 'gone'; readonly record: GoneRecord }

type Encoded = { readonly key: Buffer; readonly value: Buffer | null }

export function encodeReport(reporter: string, report: Report | undefined): Encoded {
  return { key: Buffer.from(JSON.stringify(['report', reporter])), value: encode(report) }
}

export function encodeTold(told: Told): Encoded {
  return { key: Buffer.from(toldKeyOf(told.notice)), value: encode(told) }
}

/**
 * Limit on the entries in each list of a record. With this limit, a record with all lists isn't too large for
 * the topic.
 */
const mostOfEach = 500

/**
 * Divides a report into as many records as it needs, each with another reporter. If `atLeast` is higher than
 * this number, adds empty reports, which replace what their reporters have reported before.
 */
export function pagesOf(
  reporter: string,
  { failing, answered, counts, refusing = [], accepted = [] }: Report,
  atLeast: number,
): readonly { readonly reporter: string; readonly report: Report }[] {
  const lengths = [failing, answered, counts, refusing, accepted].map(({ length }) => length)
  const needed = Math.ceil(Math.max(...lengths) / mostOfEach)
  return Array.from({ length: Math.max(atLeast, needed) }, (_, page) => {
    const onPage = <T>(all: readonly T[]): readonly T[] =>
      all.slice(page * mostOfEach, (page + 1) * mostOfEach)
    return {
      reporter: page === 0 ? reporter : `${reporter}/${page + 1}`,
      report: {
        failing: onPage(failing),
        answered: onPage(answered),
        counts: onPage(counts),
        refusing: onPage(refusing),
        accepted: onPage(accepted),
      },
    }
  })
}

/** Encodes the record that removes the notice with the key `key`. */
export function encodeForgotten(key: string): Encoded {
  return { key: Buffer.from(key), value: null }
}

function encode(value: object | undefined): Buffer | null {
  return value === undefined ? null : Buffer.from(JSON.stringify(value))
}

/** Returns the key under which a notice is stored as the last notice of its kind and subject. */
function toldKeyOf(notice: Notice): string {
  return toldKey(notice.kind, notice.destinationId, subjectOf(notice))
}

export function toldKey(kind: NoticeKind, destinationId: string, subject = ''): string {
  return JSON.stringify(['told', kind, destinationId, subject])
}

const checkReport = Compile(reportSchema)
const checkTold = Compile(toldSchema)

/**
 * Decodes a record. Returns `undefined` for a record that this version of Sluice doesn't write. Never throws.
 */
export function decodeRecord(key: Buffer, value: Buffer | null): LogRecord | undefined {
  const text = key.toString()
  const names = parse(text)
  const content = value === null ? undefined : parse(value.toString())
  if (!Array.isArray(names)) return undefined
  const [what, name]: unknown[] = names
  if (what === 'report' && typeof name === 'string' && names.length === 2)
    return { kind: 'report', reporter: name, report: checkReport.Check(content) ? content : undefined }
  if (what === 'told' && isKind(name) && names.length === 4)
    return { kind: 'told', key: text, told: checkTold.Check(content) ? content : undefined }
  return decodeAboutPauses(names, content)
}

function decodeAboutPauses(names: readonly unknown[], content: unknown): PauseLogRecord | undefined {
  const gone = decodeGone(names, content)
  if (gone !== undefined) return { kind: 'gone', record: gone }
  const record = decodePause(names, content)
  return record && { kind: 'pause', record }
}

/** A record about pauses and hooks that are gone. */
export type PauseLogRecord = Extract<LogRecord, { readonly kind: 'pause' | 'gone' }>

/** Decodes a record about pauses or hooks that are gone. Reads no other values. Never throws. */
export function decodePauseRecord(key: Buffer, value: Buffer | null): PauseLogRecord | undefined {
  const names = parse(key.toString())
  if (!Array.isArray(names) || names[0] === 'report' || names[0] === 'told') return undefined
  return decodeAboutPauses(names, value === null ? undefined : parse(value.toString()))
}

function isKind(name: unknown): boolean {
  return noticeKinds.some((kind) => kind === name)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
