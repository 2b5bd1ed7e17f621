/** What the catalog consists of, as in a file. */
export const entryKinds = ['source', 'destination'] as const
export type EntryKind = (typeof entryKinds)[number]

/** What the topic of the catalog has. Tokens of the admin API are no part of the catalog. */
export const objectKinds = [...entryKinds, 'token'] as const
export type ObjectKind = (typeof objectKinds)[number]

export type ObjectName = { readonly kind: ObjectKind; readonly id: string }

/**
 * The key of the record that ends each change set. No object has this key, because the key of an object has a
 * slash.
 */
export const headKey = 'head'

/** Returns the key of an object's records. Its bytes never change: compaction compares them. */
export function keyOf({ kind, id }: ObjectName): string {
  return `${kind}/${id}`
}

/** Reads the key of an object. Returns `undefined` for the key of anything else. */
export function nameOf(key: string): ObjectName | undefined {
  const at = key.indexOf('/')
  const kind = objectKinds.find((known) => known === key.slice(0, at))
  const id = key.slice(at + 1)
  return kind === undefined || !ids[kind].test(id) ? undefined : { kind, id }
}

const entryId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const ids = {
  source: entryId,
  destination: entryId,
  token: /^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$/,
} as const satisfies Record<ObjectKind, RegExp>

export function isEntry<T extends ObjectName>(object: T): object is T & { readonly kind: EntryKind } {
  return object.kind !== 'token'
}
