import { gunzipSync } from 'node:zlib'
import { parseJson } from '../../src/message/json/json.ts'
import type { Exchange } from './tap.ts'

export type JsonObject = { readonly [field: string]: unknown }

/** A message as a client sent it, and the fields that its batch sets for all of its messages. */
export type SentMessage = {
  /** The kind of a single call, from its path. `undefined` in a batch. */
  kind: string | undefined
  message: JsonObject
  /** The fields of the batch. All of them are `undefined` in a single call. */
  shared: { context: unknown; integrations: unknown; sentAt: unknown }
  exchange: Exchange
}

const kinds: Readonly<Record<string, string>> = {
  i: 'identify',
  t: 'track',
  p: 'page',
  s: 'screen',
  g: 'group',
  a: 'alias',
}
const batches: ReadonlySet<string> = new Set(['batch', 'import', 'b'])

/**
 * Returns the messages of a request, as a plain reader of Segment's API takes them. Returns an empty list if
 * the request isn't a tracking call.
 */
export function sentMessages(exchange: Exchange): SentMessage[] {
  const call = /^\/v1\/(\w+)$/.exec(exchange.path)?.[1]
  if (exchange.method !== 'POST' || call === undefined || call === 'm') return []
  const body = readBody(exchange)
  const { context, integrations, sentAt } = body
  if (!batches.has(call)) {
    const none = { context: undefined, integrations: undefined, sentAt: undefined }
    return [{ kind: kinds[call] ?? call, message: body, shared: none, exchange }]
  }
  const items: unknown[] = Array.isArray(body['batch']) ? body['batch'] : []
  return items.map((item) => {
    const message = asObject(item)
    return { kind: undefined, message, shared: { context, integrations, sentAt }, exchange }
  })
}

function readBody({ headers, body }: Exchange): JsonObject {
  const bytes = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
  return readObject(bytes)
}

export function readObject(bytes: Buffer): JsonObject {
  const parsed = parseJson(bytes.toString('utf8'))
  if (!parsed.ok) throw new Error('the body is no JSON')
  return asObject(parsed.value)
}

function asObject(value: unknown): JsonObject {
  if (!isObject(value)) throw new Error('the body is no object')
  return value
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a field of the object itself. So `__proto__` counts as a field only if it was sent. */
export function fieldOf(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}
