import {
  type DeletionFloor,
  encodeDeletionFloor,
  encodeState,
  encodeSyncFloor,
  type PropertyState,
  type SyncFloor,
} from './state-record.ts'
import { compareVersions, formatVersion, laterOf, type Version } from './version.ts'

/**
 * What is held under one key, and where in `memberships` it stands: -1 while it isn't acknowledged. `gone` is a tombstone of what
 * is not newer than `upToMs`.
 */
export type Cell =
  | { readonly kind: 'property'; readonly state: PropertyState; readonly offset: number }
  | { readonly kind: 'gone'; readonly upToMs: number; readonly offset: number }
  | { readonly kind: 'deletion'; readonly state: DeletionFloor; readonly offset: number }
  | { readonly kind: 'sync'; readonly state: SyncFloor; readonly offset: number }

export type PropertyCell = Extract<Cell, { kind: 'property' }>

/** Of two cells of one key: negative when `a` is the older one. */
function compareCells(a: Cell, b: Cell): number {
  if (a.kind === 'property' && b.kind === 'property') return compareVersions(a.state.version, b.state.version)
  if (a.kind === 'sync' && b.kind === 'sync') return compareVersions(a.state.version, b.state.version)
  if (a.kind === 'deletion' && b.kind === 'deletion') return compareFloors(a.state, b.state)
  // A tombstone stands above what it buries, and below anything newer.
  return timeOf(a) - timeOf(b) || Number(a.kind === 'gone') - Number(b.kind === 'gone')
}

function compareFloors(a: DeletionFloor, b: DeletionFloor): number {
  return a.requestedAtMs - b.requestedAtMs || a.partition - b.partition || a.offset - b.offset
}

function timeOf(cell: Cell): number {
  switch (cell.kind) {
    case 'property':
    case 'sync':
      return cell.state.version.atMs
    case 'gone':
      return cell.upToMs
    case 'deletion':
      return cell.state.requestedAtMs
  }
}

export type Placing = {
  readonly best: Cell
  /** Nothing has to be kept that isn't held already. */
  readonly isKnown: boolean
  /** The last record of the key isn't the best one: compaction would leave the wrong one. */
  readonly isOutOfOrder: boolean
}

/** Joins a record of the log with what is held: the higher version holds. */
export function place(incoming: Cell, held: Cell | undefined): Placing {
  if (held === undefined) return { best: incoming, isKnown: false, isOutOfOrder: false }
  const order = compareCells(incoming, held)
  if (order > 0) return { best: incoming, isKnown: false, isOutOfOrder: held.offset > incoming.offset }
  if (order < 0) return { best: held, isKnown: true, isOutOfOrder: incoming.offset > held.offset }
  const best = join(incoming, held)
  return { best, isKnown: best === held, isOutOfOrder: false }
}

/** The same version twice: written again, or by two owners that read the same record. */
function join(incoming: Cell, held: Cell): Cell {
  const offset = Math.max(incoming.offset, held.offset)
  if (incoming.kind === 'property' && held.kind === 'property') {
    const since = laterOf(incoming.state.since, held.state.since)
    if (offset === held.offset && compareVersions(since, held.state.since) === 0) return held
    return { kind: 'property', state: { ...held.state, since }, offset }
  }
  return offset === held.offset ? held : { ...held, offset }
}

/** The value of the record that says the same as the cell; a state is told quietly unless it `isLoud`. */
export function recordValueOf(cell: Cell, isLoud: boolean): Buffer | null {
  switch (cell.kind) {
    case 'property':
      return encodeState(cell.state, !isLoud)
    case 'gone':
      return null
    case 'deletion':
      return encodeDeletionFloor(cell.state)
    case 'sync':
      return encodeSyncFloor(cell.state)
  }
}

/** As text for the store: short, and quick to read. `undefined`: nothing is stored. */
export function encodeCell(cell: Cell): string | undefined {
  switch (cell.kind) {
    case 'property': {
      const { kind, id, name, value, version, since } = cell.state
      const isNew = compareVersions(version, since) === 0
      const head = kind === 'audience' ? (value === 'true' ? members : nonMembers) : 't'
      const value_ = kind === 'audience' ? '' : value
      return `${head}${formatVersion(version)};${isNew ? '' : formatVersion(since)};${cell.offset};${id.length}:${id}${name.length}:${name}${value_}`
    }
    case 'gone':
      return undefined
    case 'deletion': {
      const { requestedAtMs, requestId, partition, offset } = cell.state
      return `d${requestedAtMs};${partition};${offset};${cell.offset};${requestId}`
    }
    case 'sync':
      return `f${formatVersion(cell.state.version)};${cell.offset};${cell.state.syncId}`
  }
}

const members = 'a1'
const nonMembers = 'a0'

/** Whether an encoded property cell says that the user is in an audience. */
export function isMemberText(text: string): boolean {
  return text.startsWith(members)
}

/** Whether an encoded property cell is of this audience; `id` as `idMarkOf` gives it. */
export function hasIdMark(text: string, idMark: string): boolean {
  const first = text.indexOf(';')
  const second = text.indexOf(';', first + 1)
  const third = text.indexOf(';', second + 1)
  return text.startsWith('a') && text.startsWith(idMark, third + 1)
}

export function idMarkOf(id: string): string {
  return `${id.length}:${id}`
}

/** Reads what `encodeCell` wrote. What it didn't write is a fault of the store: it throws. */
export function decodeCell(text: string): Cell {
  switch (text[0]) {
    case 'a':
    case 't':
      return decodeProperty(text)
    case 'd': {
      const [requestedAt, partition, offset, at, ...rest] = text.slice(1).split(';')
      return {
        kind: 'deletion',
        state: {
          requestedAtMs: Number(requestedAt),
          requestId: rest.join(';'),
          partition: Number(partition),
          offset: Number(offset),
        },
        offset: Number(at),
      }
    }
    case 'f': {
      const [version = '', offset, ...rest] = text.slice(1).split(';')
      return {
        kind: 'sync',
        state: { version: storedVersion(version), syncId: rest.join(';') },
        offset: Number(offset),
      }
    }
    default:
      throw new Error('the store holds what it was not given')
  }
}

function decodeProperty(text: string): PropertyCell {
  const isAudience = text.startsWith('a')
  const start = isAudience ? 2 : 1
  const first = text.indexOf(';')
  const second = text.indexOf(';', first + 1)
  const third = text.indexOf(';', second + 1)
  const version = storedVersion(text.slice(start, first))
  const since = second === first + 1 ? version : storedVersion(text.slice(first + 1, second))
  const id = lengthened(text, third + 1)
  const name = lengthened(text, id.end)
  const value = isAudience ? (text.startsWith(members) ? 'true' : 'false') : text.slice(name.end)
  return {
    kind: 'property',
    state: { kind: isAudience ? 'audience' : 'trait', id: id.text, name: name.text, value, version, since },
    offset: Number(text.slice(second + 1, third)),
  }
}

function lengthened(text: string, at: number): { text: string; end: number } {
  const colon = text.indexOf(':', at)
  const end = colon + 1 + Number(text.slice(at, colon))
  return { text: text.slice(colon + 1, end), end }
}

/** As `parseVersion`, of what `formatVersion` wrote: a restore reads millions of them. */
function storedVersion(text: string): Version {
  const first = text.indexOf('.')
  const second = text.indexOf('.', first + 1)
  const third = text.indexOf('.', second + 1)
  return {
    atMs: Number(text.slice(0, first)),
    isNative: text.charAt(first + 1) === '1',
    partition: Number(text.slice(second + 1, third)),
    offset: Number(text.slice(third + 1)),
  }
}
