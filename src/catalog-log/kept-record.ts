import type { WholeRecord } from '../message/records.ts'
import { CatalogLog, type StoredObject } from './log.ts'
import { headKey, keyOf } from './names.ts'
import { type Head, headOf, type RecordSeals } from './record.ts'

/**
 * A record of the catalog's topic as text, outside of Kafka. Its HMAC and its sealed secrets stay as they
 * are.
 */
export type KeptRecord = {
  readonly key: string
  readonly value: string
  readonly revision: string
  readonly mac: string
  readonly offset: number
}

export function keptObject(seals: RecordSeals, object: StoredObject): KeptRecord {
  return kept(seals.write(keyOf(object), object.definition, object.revision), object.version)
}

/** `offset`: one that is higher than those of all objects. */
export function keptHead(seals: RecordSeals, head: Head, offset: number): KeptRecord {
  return kept(seals.head(head), offset)
}

function kept({ key, value, headers = {} }: ReturnType<RecordSeals['write']>, offset: number): KeptRecord {
  return {
    key: String(key),
    value: String(value),
    revision: String(headers['revision']),
    mac: String(headers['mac']),
    offset,
  }
}

export type KeptRead =
  | { readonly ok: true; readonly log: CatalogLog; readonly head: Head }
  | { readonly ok: false; readonly problem: string }

/**
 * Reads kept records in any order. They are checked as those of the topic are: by their HMACs, and by the
 * counts of the head.
 */
export function readKept(seals: RecordSeals, records: readonly KeptRecord[]): KeptRead {
  let problem: string | undefined
  const log = new CatalogLog(seals, (refused) => {
    problem ??= `the record ${refused.key} ${refused.problem}`
  })
  for (const record of records.toSorted((one, other) => one.offset - other.offset)) log.take(wholeOf(record))
  problem ??= log.damage
  if (problem !== undefined) return { ok: false, problem }
  const { head } = log
  return head === undefined ? { ok: false, problem: `it has no ${headKey}` } : { ok: true, log, head }
}

/** Reads a kept head. Returns `undefined` if it wasn't signed with a key of this installation. */
export function readHead(seals: RecordSeals, record: KeptRecord): Head | undefined {
  const read = seals.read(wholeOf(record))
  return read.ok ? headOf(read.record.value) : undefined
}

function wholeOf({ key, value, revision, mac, offset }: KeptRecord): WholeRecord {
  return {
    offset,
    key: Buffer.from(key),
    value: Buffer.from(value),
    headers: { revision: Buffer.from(revision), mac: Buffer.from(mac) },
    timestampMs: 0,
  }
}
