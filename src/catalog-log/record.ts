import { timingSafeEqual } from 'node:crypto'
import { isRecord } from '../catalog/plain-data.ts'
import { blockBytes } from '../delivery/hmac.ts'
import type { CatalogKey, CatalogKeys } from './keys.ts'
import { type EntryKind, headKey } from './names.ts'
import { withOwnKeys } from '../message/json/json.ts'
import type { WholeRecord, WrittenRecord } from '../message/records.ts'

/** The last record of each change set. */
export type Head = {
  /** The number of the change set. Each one has a higher number than all before it. */
  readonly revision: number
  /**
   * The id by which a writer whose commit had no answer finds its change again. It is random, or made from
   * the key of a request.
   */
  readonly changeId: string
  /** The digest of the request that has asked for the change, if the request has a key. */
  readonly request?: string | undefined
  /** When the change was made, in epoch milliseconds. */
  readonly atMs: number
  /** Who made the change: the name of a token, or a user of the command line. */
  readonly by: string
  /** How many objects there are after the change. */
  readonly counts: Readonly<Record<EntryKind, number>> & { readonly token?: number }
  /**
   * The id of the log: all changes since the first one have the same. A topic that was made anew or emptied
   * has another one. Absent if a version of Sluice began the log that had no lineages.
   */
  readonly lineage?: string | undefined
  /** True: somebody has said that this log takes the place of whatever was the catalog before. */
  readonly isAccepted?: boolean | undefined
}

/** A record whose author has a key of this installation. `value`: `null` deletes the object. */
export type SignedRecord = {
  readonly key: string
  readonly value: unknown
  readonly revision: number
  readonly offset: number
}

export type RecordRead =
  | { readonly ok: true; readonly record: SignedRecord }
  /** `isOfOtherKey`: its key isn't in the file of keys, so this process can't judge it. */
  | { readonly ok: false; readonly problem: string; readonly isOfOtherKey?: boolean }

/** Reads and writes records of the catalog's topic: JSON, with an HMAC-SHA256 in a header. */
export class RecordSeals {
  readonly #installation: string
  readonly #keys: CatalogKeys
  /** What is signed, after room for the HMAC's pad. */
  #room = Buffer.alloc(0)

  constructor(installation: string, keys: CatalogKeys) {
    this.#installation = installation
    this.#keys = keys
  }

  write(key: string, value: object | null, revision: number): WrittenRecord {
    const text = value === null ? null : JSON.stringify(value)
    const { current } = this.#keys
    const mac = `${current.id}:${this.#mac(current, { key, text, revision })}`
    return { key, value: text, headers: { revision: String(revision), mac } }
  }

  head(head: Head): WrittenRecord {
    return this.write(headKey, head, head.revision)
  }

  read({ key: bytes, value, headers, offset, unreadable }: WholeRecord): RecordRead {
    if (unreadable !== undefined) return { ok: false, problem: `can not be read: ${unreadable}` }
    const key = String(bytes)
    const text = value === null ? null : String(value)
    const revision = Number(String(headers['revision']))
    const [keyId = '', hex = ''] = String(headers['mac']).split(':')
    const found = this.#keys.byId.get(keyId)
    if (headers['mac'] === undefined || !Number.isSafeInteger(revision))
      return { ok: false, problem: 'was not written by Sluice' }
    if (found === undefined)
      return {
        ok: false,
        problem: `was written with the key ${keyId}, which catalog.keysFile lacks`,
        isOfOtherKey: true,
      }
    const given = Buffer.from(hex)
    const expected = Buffer.from(this.#mac(found, { key, text, revision }))
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      return {
        ok: false,
        problem: 'was changed by somebody without the key, or belongs to another installation',
      }
    const read = text === null ? null : withOwnKeys(text, JSON.parse(text))
    return { ok: true, record: { key, value: read, revision, offset } }
  }

  /** Returns the HMAC in hex. */
  #mac(
    { mac }: CatalogKey,
    { key, text, revision }: { key: string; text: string | null; revision: number },
  ): string {
    const signed = JSON.stringify([this.#installation, key, revision, text === null]) + (text ?? '')
    const neededBytes = blockBytes + 3 * signed.length
    if (this.#room.length < neededBytes) this.#room = Buffer.allocUnsafeSlow(2 * neededBytes)
    const length = this.#room.write(signed, blockBytes)
    return mac.of(this.#room, blockBytes, length)
  }
}

/** Returns the head if a value of the key `head` is one. */
export function headOf(value: unknown): Head | undefined {
  const isHead = isRecord(value) && typeof value['revision'] === 'number' && isRecord(value['counts'])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only Sluice has the key that signed it
  return isHead ? (value as Head) : undefined
}
