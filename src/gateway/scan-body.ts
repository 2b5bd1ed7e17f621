import { isUtf8 } from 'node:buffer'
import { Field, messagePlaces } from '../message/canonical-fields.ts'
import { invalid } from '../message/canonical-number.ts'
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  openBrace,
  openBracket,
  quote,
  scanObject,
} from '../message/canonical-scan.ts'
import { parseJson } from '../message/json.ts'
import type { MessageLimits } from '../message/limits.ts'
import { isJsonObject, type JsonObject } from './body.ts'
import type { Items } from './items.ts'
import { skipSpace, skipString, skipValue } from '../message/json-skip.ts'
import { countLostDigits } from './lost-digits.ts'
import { maxBatchMessages } from './request-limits.ts'
import { ScannedItems } from './scanned-items.ts'

/** A body whose messages were found by scanning its bytes. Don't use it after the next body is scanned. */
export type ScannedBody = {
  readonly ok: true
  /**
   * The body without its messages. If the body is a batch, its list `batch` is empty here. If it is a single
   * message, only its `writeKey` is here.
   */
  readonly body: JsonObject
  readonly items: Items
  /** The number of whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
}

type Limits = Pick<MessageLimits, 'maxDepth' | 'maxKeys'>

/**
 * The places of the fields of all messages of a body. The array for these places is large, so it is reused
 * for each body.
 */
const places = messagePlaces({ nested: true })

const batchKey = Buffer.from('batch')

/**
 * Scans the body of a single call, which is one message. Returns `undefined` if the message isn't in
 * canonical form (as JSON.stringify writes it).
 */
export function scanSingle(bytes: Buffer, limits: Limits): ScannedBody | undefined {
  if (!isUtf8(bytes)) return undefined
  places.reset(bytes)
  places.begin()
  if (scanObject(bytes, 0, places, limits) !== bytes.length) return undefined
  const items = new ScannedItems(bytes, places)
  items.addScanned(0, bytes.length)
  return { ok: true, body: { writeKey: places.valueOf(Field.writeKey) }, items, lostDigits: 0 }
}

/**
 * Scans the body of a batch. Finds the places of its messages in one pass, and parses the rest of the body.
 * If a message isn't in canonical form (as JSON.stringify writes it), parses this message too. Returns
 * `undefined` if the body isn't a JSON object with exactly one list `batch`, or if there are too many
 * messages. Also returns `undefined` if the first message isn't in canonical form, because then most likely
 * no message is.
 */
export function scanBatch(bytes: Buffer, limits: Limits): ScannedBody | undefined {
  if (!isUtf8(bytes)) return undefined
  const list = findList(bytes, limits)
  if (list === undefined) return undefined
  const { start, end, scan } = list
  const text = `${bytes.toString('utf8', 0, start)}[]${bytes.toString('utf8', end)}`
  const parsed = parseJson(text)
  if (!parsed.ok || !isJsonObject(parsed.value)) return undefined
  const lostDigits = scan.lostDigits + countLostDigits(text)
  return { ok: true, body: parsed.value, items: scan.items, lostDigits }
}

type FoundList = { readonly start: number; readonly end: number; readonly scan: ItemScan }

/**
 * Finds the list `batch` among the members of the body, and scans the list. All other members are only
 * skipped.
 */
function findList(bytes: Buffer, limits: Limits): FoundList | undefined {
  let found: FoundList | undefined
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== openBrace) return undefined
  do {
    const keyStart = skipSpace(bytes, at + 1)
    if (bytes[keyStart] !== quote) return undefined
    const keyEnd = skipString(bytes, keyStart)
    const colonAt = skipSpace(bytes, keyEnd)
    const key = bytes.subarray(keyStart + 1, keyEnd - 1)
    // A key with an escape may be `batch` in another spelling.
    if (bytes[colonAt] !== colon || key.includes(backslash)) return undefined
    const start = skipSpace(bytes, colonAt + 1)
    let end: number
    if (key.equals(batchKey)) {
      if (found !== undefined || bytes[start] !== openBracket) return undefined
      const scan = new ItemScan(bytes, limits)
      end = scan.list(start)
      if (end === invalid) return undefined
      found = { start, end, scan }
    } else end = skipValue(bytes, start)
    at = skipSpace(bytes, end)
  } while (bytes[at] === comma)
  return bytes[at] === closeBrace ? found : undefined
}

/** The scan of the list `batch` of one body. */
class ItemScan {
  readonly items: ScannedItems
  lostDigits = 0
  readonly #bytes: Buffer
  readonly #limits: Limits

  constructor(bytes: Buffer, limits: Limits) {
    this.#bytes = bytes
    this.#limits = limits
    places.reset(bytes)
    this.items = new ScannedItems(bytes, places)
  }

  /** Scans the list that begins at `start`. Returns the place after the list, or `invalid`. */
  list(start: number): number {
    const bytes = this.#bytes
    let at = skipSpace(bytes, start + 1)
    if (bytes[at] === closeBracket) return at + 1
    for (;;) {
      const end = this.items.length === maxBatchMessages ? invalid : this.#item(at)
      if (end === invalid) return invalid
      const next = skipSpace(bytes, end)
      if (bytes[next] === closeBracket) return next + 1
      if (bytes[next] !== comma) return invalid
      at = skipSpace(bytes, next + 1)
    }
  }

  #item(start: number): number {
    places.begin()
    const end = scanObject(this.#bytes, start, places, this.#limits)
    if (end !== invalid) {
      this.items.addScanned(start, end)
      return end
    }
    return this.items.length === 0 ? invalid : this.#parse(start)
  }

  /** Parses a message that isn't written as JSON.stringify writes it (in canonical form). */
  #parse(start: number): number {
    const end = skipValue(this.#bytes, start)
    const text = this.#bytes.toString('utf8', start, end)
    const parsed = parseJson(text)
    if (!parsed.ok) return invalid
    this.lostDigits += countLostDigits(text)
    this.items.addParsed(start, end, parsed.value)
    return end
  }
}
