import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { Hmac } from '../delivery/hmac.ts'

/** A key of the catalog. One secret of 32 bytes makes both keys. */
export type CatalogKey = {
  /** The name of the key in records, so that a key can be replaced while old records remain. */
  readonly id: string
  /** The key of the HMAC that each record has. */
  readonly mac: Hmac
  /** The key of AES-256-GCM, which seals secrets. */
  readonly seal: KeyObject
}

export type CatalogKeys = {
  /** The key with which records are written. */
  readonly current: CatalogKey
  readonly byId: ReadonlyMap<string, CatalogKey>
}

export type KeysRead =
  | { readonly ok: true; readonly keys: CatalogKeys }
  | { readonly ok: false; readonly problem: string }

const line = /^([A-Za-z0-9][A-Za-z0-9_-]{0,31}) ([A-Za-z0-9+/]{43}=)$/

/**
 * Parses the text of a file of keys. Each line has the id of a key, and 32 bytes in base64. The first key
 * writes, and all of them read. Lines that begin with # are comments.
 */
export function readKeys(text: string): KeysRead {
  const byId = new Map<string, CatalogKey>()
  for (const [index, raw] of text.split('\n').entries()) {
    const given = raw.trim()
    if (given === '' || given.startsWith('#')) continue
    const match = line.exec(given)
    // The line isn't quoted, because it may be a secret.
    if (match === null)
      return { ok: false, problem: `line ${index + 1} is no key: \`sluice catalog key\` writes such a line` }
    const [, id = '', secret = ''] = match
    if (byId.has(id)) return { ok: false, problem: `line ${index + 1} has the id ${id} of an earlier line` }
    byId.set(id, keyFrom(id, Buffer.from(secret, 'base64')))
  }
  const [current] = byId.values()
  if (current === undefined)
    return { ok: false, problem: 'it has no key: write the output of `sluice catalog key` into it' }
  return { ok: true, keys: { current, byId } }
}

/** Makes a new key, as a line of a file of keys. */
export function newKeyLine(id = `k${randomBytes(4).toString('hex')}`): string {
  return `${id} ${randomBytes(32).toString('base64')}`
}

function keyFrom(id: string, secret: Buffer): CatalogKey {
  const derived = (use: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, '', `sluice catalog ${use}`, 32))
  // Node would make a `KeyObject` of a buffer at each use, which takes longer than to open a text.
  return { id, mac: new Hmac('sha256', derived('mac'), 'hex'), seal: createSecretKey(derived('seal')) }
}
