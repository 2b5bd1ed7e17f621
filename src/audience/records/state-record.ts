import { parseJson, isFilled } from '../../message/json/json.ts'
import { headOf, readAsWritten, remember } from './record-reader.ts'
import {
  compareVersions,
  type Version,
  versionOf,
  type PropertyState,
  type PropertyStateKey,
} from './version.ts'

// The records of the topic `memberships`. Keys are JSON lists:
// - `[userId, spaceId, property]`: the state of one property of one user. A null value is a tombstone of the
//   state.
// - `[userId, sourceId]`: the time up to which the user's data of one source is deleted. No older value may
//   be kept or sent.
// - `[null, spaceId, audienceId]`: the last sync of an audience that the record's unit has applied.

export type DeletionStateKey = {
  readonly kind: 'deletion'
  readonly userId: string
  readonly sourceId: string
}
export type SyncStateKey = { readonly kind: 'sync'; readonly spaceId: string; readonly audienceId: string }

/** The key of a record of `memberships`. */
export type StateKey = PropertyStateKey | DeletionStateKey | SyncStateKey

/** Returns true for the state of a member of an audience, and for a computed trait that has a value. */
export function isPresent({ kind, value }: Pick<PropertyState, 'kind' | 'value'>): boolean {
  return value !== (kind === 'audience' ? 'false' : 'null')
}

/** A deletion floor. Values of the user that aren't newer than `requestedAtMs` are neither kept nor sent. */
export type DeletionFloor = {
  readonly requestedAtMs: number
  readonly requestId: string
  /**
   * The partition of the record of `deletions` that requested the deletion. `offset` is the offset of the
   * same record.
   */
  readonly partition: number
  readonly offset: number
}

/**
 * The floor of an applied sync. The state of a user who was a member after the sync counts as having at least
 * this version.
 */
export type SyncFloor = { readonly version: Version; readonly syncId: string }

export type StateRecord =
  | { readonly stateKey: PropertyStateKey; readonly state: PropertyState; readonly isSilent: boolean }
  /** A tombstone. */
  | { readonly stateKey: StateKey; readonly state: null }
  | { readonly stateKey: DeletionStateKey; readonly state: DeletionFloor }
  | { readonly stateKey: SyncStateKey; readonly state: SyncFloor }

export function encodeStateKey(stateKey: StateKey): Buffer {
  switch (stateKey.kind) {
    case 'property':
      return Buffer.from(JSON.stringify([stateKey.userId, stateKey.spaceId, stateKey.property]))
    case 'deletion':
      return Buffer.from(JSON.stringify([stateKey.userId, stateKey.sourceId]))
    case 'sync':
      return Buffer.from(JSON.stringify([null, stateKey.spaceId, stateKey.audienceId]))
  }
}

/**
 * Encodes a state. `isSilent`: true if receivers already got the value with an older version, so that no
 * message is sent for the record.
 */
export function encodeState(state: PropertyState, isSilent: boolean): Buffer {
  const { value, version, since } = state
  return Buffer.from(
    `${headOf(state)}${value},"version":${versionJson(version)},"since":${versionJson(since)}${isSilent ? ',"quiet":true' : ''}}`,
  )
}

export function encodeDeletionFloor(floor: DeletionFloor): Buffer {
  const { requestedAtMs, requestId, partition, offset } = floor
  return Buffer.from(JSON.stringify({ kind: 'deletion', requestedAtMs, requestId, partition, offset }))
}

export function encodeSyncFloor({ version, syncId }: SyncFloor): Buffer {
  return Buffer.from(`{"kind":"sync","version":${versionJson(version)},"syncId":${JSON.stringify(syncId)}}`)
}

function versionJson({ atMs, isNative, partition, offset }: Version): string {
  return `{"atMs":${atMs},"isNative":${isNative},"partition":${partition},"offset":${offset}}`
}

export type DecodedState = { ok: true; record: StateRecord } | { ok: false; fault: string }

/**
 * Decodes a record of `memberships`. Returns a fault for a record that Sluice didn't write. Never throws,
 * whatever the bytes are.
 */
export function decodeState(key: Buffer | null, value: Buffer | null): DecodedState {
  const record = key === null || value === null ? undefined : readAsWritten(key, value)
  return record === undefined ? parseState(key, value) : { ok: true, record }
}

function parseState(key: Buffer | null, value: Buffer | null): DecodedState {
  const stateKey = key === null ? undefined : parseStateKey(key)
  if (stateKey === undefined) return { ok: false, fault: 'the key is none of a state' }
  if (value === null) return { ok: true, record: { stateKey, state: null } }
  const parsed = parseJson(value.toString())
  const record = parsed.ok ? recordOf(stateKey, parsed.value) : undefined
  if (record === undefined) return { ok: false, fault: 'the value is none of its key' }
  if ('isSilent' in record) remember(record.stateKey, record.state)
  return { ok: true, record }
}

/** Reads the key of a record. Returns `undefined` if Sluice didn't write the key. Never throws. */
export function parseStateKey(key: Buffer): StateKey | undefined {
  const parsed = parseJson(key.toString())
  if (!parsed.ok || !Array.isArray(parsed.value)) return undefined
  const [first, second, third, ...rest]: unknown[] = parsed.value
  if (rest.length > 0 || !isFilled(second)) return undefined
  if (parsed.value.length === 2) {
    return isFilled(first) ? { kind: 'deletion', userId: first, sourceId: second } : undefined
  }
  if (!isFilled(third)) return undefined
  if (first === null) return { kind: 'sync', spaceId: second, audienceId: third }
  return isFilled(first) ? { kind: 'property', userId: first, spaceId: second, property: third } : undefined
}

function recordOf(stateKey: StateKey, value: unknown): StateRecord | undefined {
  if (!isObject(value)) return undefined
  switch (stateKey.kind) {
    case 'property': {
      const state = propertyStateOf(value)
      return state === undefined ? undefined : { stateKey, state, isSilent: value['quiet'] === true }
    }
    case 'deletion': {
      const state = deletionFloorOf(value)
      return state === undefined ? undefined : { stateKey, state }
    }
    case 'sync': {
      const state = syncFloorOf(value)
      return state === undefined ? undefined : { stateKey, state }
    }
  }
}

function propertyStateOf(fields: Fields): PropertyState | undefined {
  const { kind, id, name } = fields
  const version = readVersion(fields['version'])
  const since = readVersion(fields['since'])
  const value: string | undefined = JSON.stringify(fields['value'])
  if (kind !== 'audience' && kind !== 'trait') return undefined
  if (kind === 'audience' && value !== 'true' && value !== 'false') return undefined
  if (!isFilled(id) || typeof name !== 'string' || value === undefined) return undefined
  if (version === undefined || since === undefined || compareVersions(since, version) > 0) return undefined
  return { kind, id, name, value, version, since }
}

function deletionFloorOf(fields: Fields): DeletionFloor | undefined {
  const { kind, requestedAtMs, requestId, partition, offset } = fields
  if (kind !== 'deletion' || !isFilled(requestId)) return undefined
  const place = versionOf(requestedAtMs, true, partition, offset)
  if (place === undefined) return undefined
  return { requestedAtMs: place.atMs, requestId, partition: place.partition, offset: place.offset }
}

function syncFloorOf(fields: Fields): SyncFloor | undefined {
  const { kind, syncId } = fields
  const version = readVersion(fields['version'])
  return kind === 'sync' && version !== undefined && isFilled(syncId) ? { version, syncId } : undefined
}

function readVersion(value: unknown): Version | undefined {
  if (!isObject(value)) return undefined
  return versionOf(value['atMs'], value['isNative'], value['partition'], value['offset'])
}

type Fields = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
