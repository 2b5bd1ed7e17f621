import { noCode, type Owners, type QueueClass, queueClasses } from './owners.ts'

// The marks are records of the compacted topic `waiting-marks`, in the partition of their unit:
//
// - `<topic id>/owners/<block>` says whose the records of a block are. It saves the next owner of the unit
//   the reading of these records. It follows from the log alone, so it doesn't matter who wrote it.
// - `<topic id>/done/<writer>/<block>` says which records of a block are done. Each tenure of a unit has its
//   own writer. A mark is a fact, so the marks of several writers are added up, and a late mark of an earlier
//   owner does no harm.
// - `<topic id>/void/<writer>/<block>` says which of them are done because they are void: another process has
//   appended them when it wasn't the owner any more (`fences.ts`). Their messages are still to be delivered
//   from the records from which they were made.
//
// The topic id binds the marks to the log. If `waiting` is deleted and created again, its old marks are void.

export type MarkKey =
  | { readonly kind: 'owners'; readonly topicId: string; readonly block: number }
  | {
      readonly kind: 'done' | 'void'
      readonly topicId: string
      readonly block: number
      readonly writer: string
    }

export function markKeyText(key: MarkKey): string {
  return key.kind === 'owners'
    ? `${key.topicId}/owners/${key.block}`
    : `${key.topicId}/${key.kind}/${key.writer}/${key.block}`
}

export function parseMarkKey(text: string): MarkKey | undefined {
  const match = /^([^/]*)\/(?:owners|(done|void)\/([^/]+))\/(\d{1,15})$/.exec(text)
  if (match === null) return undefined
  const [, topicId = '', kind, writer, block] = match
  const common = { topicId, block: Number(block) }
  if (writer === undefined) return { kind: 'owners', ...common }
  return { kind: kind === 'void' ? 'void' : 'done', writer, ...common }
}

/** Whose the first records of a block are, and the last number that each writer gave to one of them. */
export type OwnersMark = {
  /** Pairs of a code and the number of records. */
  readonly runs: readonly (readonly [code: number, length: number])[]
  readonly sequences: ReadonlyMap<string, number>
}

export function encodeOwners({ runs, sequences }: OwnersMark, owners: Owners): Buffer {
  const ids: string[] = []
  const numbers = new Map<string, number>()
  const written = runs.flatMap(([code, length]) => {
    if (code === noCode) return [noCode, length]
    const id = owners.destinationOf(code)
    let number = numbers.get(id)
    if (number === undefined) {
      number = ids.push(id)
      numbers.set(id, number)
    }
    return [number * queueClasses.length + (code % queueClasses.length), length]
  })
  return Buffer.from(JSON.stringify({ v: 1, ids, runs: written, sequences: [...sequences] }))
}

/** Reads an owners mark. Returns `undefined` if it can't be read; the log then has to be read instead. */
export function decodeOwners(value: Buffer, owners: Owners): OwnersMark | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(value.toString())
  } catch {
    return undefined
  }
  if (!isOwners(parsed)) return undefined
  const { ids, runs, sequences } = parsed
  const decoded: [number, number][] = []
  for (let at = 0; at + 1 < runs.length; at += 2) {
    const [code = 0, length = 0] = [runs[at], runs[at + 1]]
    const id = ids[Math.floor(code / queueClasses.length) - 1]
    const queueClass = queueClasses[code % queueClasses.length]
    if (code !== noCode && (id === undefined || queueClass === undefined)) return undefined
    decoded.push([
      id === undefined || queueClass === undefined ? noCode : owners.codeOf(id, queueClass),
      length,
    ])
  }
  return { runs: decoded, sequences: new Map(sequences) }
}

function isOwners(value: unknown): value is {
  ids: string[]
  runs: number[]
  sequences: [string, number][]
} {
  return (
    typeof value === 'object' &&
    value !== null &&
    'v' in value &&
    value.v === 1 &&
    'ids' in value &&
    Array.isArray(value.ids) &&
    value.ids.every((id) => typeof id === 'string') &&
    'runs' in value &&
    Array.isArray(value.runs) &&
    value.runs.every((run) => Number.isInteger(run) && Number(run) >= 0) &&
    'sequences' in value &&
    Array.isArray(value.sequences) &&
    value.sequences.every(isSequence)
  )
}

function isSequence(value: unknown): value is [string, number] {
  return Array.isArray(value) && typeof value[0] === 'string' && Number.isInteger(value[1])
}

/** The version of a done mark, and of a void mark. The bitmap of `Block.doneBits` follows it. */
const doneVersion = 1

export function encodeDone(bits: Buffer): Buffer {
  return Buffer.concat([Buffer.from([doneVersion]), bits])
}

/** Returns the bitmap of a done or void mark. Returns `undefined` if the mark can't be read. */
export function decodeDone(value: Buffer): Buffer | undefined {
  return value[0] === doneVersion ? value.subarray(1) : undefined
}

/**
 * The header of a done mark. It names one of the records that the mark describes, so that the next owner can
 * ask the brokers whether the log still has it. Older versions ignore the header.
 */
export const lastDoneHeader = 'last-done'

/**
 * The header of a done mark with the fences of its writer (`fences.ts`), by which later owners judge. Older
 * versions ignore the header.
 */
export const fencesHeader = 'fences'

/** Returns the text of fences, which is '' for none. */
export function fencesText(fences: ReadonlyMap<string, number>): string {
  return fences.size === 0 ? '' : JSON.stringify([...fences])
}

/** Reads the fences of a writer. Without a readable text, there are none. */
export function parseFences(text: string | undefined): ReadonlyMap<string, number> {
  let parsed: unknown
  try {
    parsed = JSON.parse(text ?? '[]')
  } catch {
    return new Map()
  }
  return new Map(Array.isArray(parsed) ? parsed.filter(isSequence) : [])
}

/** A record of a log. */
export type PlaceInLog = {
  readonly offset: number
  /** The epoch of the leader that appended the record. */
  readonly leaderEpoch: number
}

export function placeText({ offset, leaderEpoch }: PlaceInLog): string {
  return `${offset}/${leaderEpoch}`
}

/** Reads a place. Returns `undefined` for any other text, and without one. */
export function parsePlace(text: string | undefined): PlaceInLog | undefined {
  const match = /^(\d{1,15})\/(\d{1,10})$/.exec(text ?? '')
  return match === null ? undefined : { offset: Number(match[1]), leaderEpoch: Number(match[2]) }
}

/** The header of a record of `waiting`: who appended it, as which number, and in which class. */
export const queuedHeader = 'queued'

export type Queued = {
  /** The tenure of a unit that appended the record. '' if no owner of the unit did. */
  readonly writer: string
  /** The number of the record among the records of its writer. A record that was written twice has one. */
  readonly sequence: number
  readonly queueClass: QueueClass
}

export function queuedText({ writer, sequence, queueClass }: Queued): string {
  return `${writer}/${sequence}/${queueClass}`
}

/** Reads the header `queued`. A record without a readable header counts as a new message. */
export function parseQueued(text: string | undefined): Queued {
  const match = /^([^/]*)\/(\d{1,15})\/([a-z]+)$/.exec(text ?? '')
  const queueClass = queueClasses.find((one) => one === match?.[3])
  if (queueClass === undefined) return { writer: '', sequence: 0, queueClass: 'fresh' }
  return { writer: match?.[1] ?? '', sequence: Number(match?.[2]), queueClass }
}
