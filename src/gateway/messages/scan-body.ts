import { isUtf8 } from 'node:buffer'
import { Field, messagePlaces } from '../../message/canonical-fields.ts'
import { invalid } from '../../message/json/canonical-number.ts'
import { scanObject } from '../../message/canonical-scan.ts'
import { skipSpace, skipString, startOf, weigh, type Weight } from '../../message/json/json-skip.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { copyTidied, mostTidied, tidy, type Tidied } from '../../message/json/tidy.ts'
import { copyRespelled, respell, respelledText } from '../../message/json/respell.ts'
import { memberOf, type Outline, outlineOf, valueOf } from '../../message/message-outline.ts'
import type { BodyFault } from './body.ts'
import { maxBatchMessages, maxMessageBytes } from './request-limits.ts'
import type { RequestWork } from './request-work.ts'
import { ScannedItems } from './scanned-items.ts'
import { keyIn } from './write-key.ts'
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  isAt,
  openBrace,
  openBracket,
  plain,
  quote,
} from '../../message/json/json-bytes.ts'
import type { Items } from './item.ts'

/** A body whose messages were found by scanning its bytes. Don't use it after the next body is scanned. */
export type ScannedBody = {
  readonly ok: true
  /**
   * What a batch has for all of its messages, without the messages: `writeKey`, `sentAt`, `context` and
   * `integrations`. `batch` is here only if it is no list. If the body is a single message, only its
   * `writeKey` is here.
   */
  readonly body: Outline
  readonly items: Items
  /** The number of whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
}

type Refused = { readonly ok: false; readonly fault: BodyFault }
export type Scanned = ScannedBody | Refused

type Limits = Pick<MessageLimits, 'maxDepth' | 'maxKeys'>

/**
 * The places of the fields of all messages of a body. The array for these places is large, so it is reused
 * for each body.
 */
const places = messagePlaces({ nested: true })

const space = 0x20
const batchKey = Buffer.from('"batch"')

/** Scans the body of a single call, which is one message. */
export function scanSingle(bytes: Buffer, limits: Limits, work: RequestWork): Scanned {
  if (!isUtf8(bytes)) return refuse('not_utf8')
  const weight = weightOf(bytes, work, bytes.length)
  if (!work.scans(weight)) return refuse('too_dense')
  places.reset(bytes)
  places.begin()
  const items = new ScannedItems(bytes, places)
  if (scanObject(bytes, 0, places, limits) === bytes.length) {
    items.addScanned(0, bytes.length)
    return { ok: true, body: { writeKey: places.valueOf(Field.writeKey) }, items, lostDigits: 0 }
  }
  if (!work.respells(weight)) return refuse('too_dense')
  const start = startOf(bytes)
  const given = { bytes, start: skipSpace(bytes, start), limits }
  const tidied = bytes.length <= mostTidied ? addTidied(items, given) : undefined
  if (tidied !== undefined) {
    if (skipSpace(bytes, tidied.end) !== bytes.length) return refuse('not_json')
    if (work.isLimited) work.tidied(weight, tidied)
    return { ok: true, body: { writeKey: places.valueOf(Field.writeKey) }, items, lostDigits: 0 }
  }
  const respelled = respell(bytes, start, limits)
  if (respelled === undefined || skipSpace(bytes, respelled.end) !== bytes.length) return refuse('not_json')
  const { lostDigits } = respelled
  if (!work.unescapes(respelled.escapes)) return refuse('too_dense')
  if (addRespelled(items, { bytes, start, limits }, respelled)) {
    return { ok: true, body: { writeKey: places.valueOf(Field.writeKey) }, items, lostDigits }
  }
  const outline = items.outlineAt(0)
  if (outline === undefined) return refuse('not_an_object')
  return { ok: true, body: { writeKey: outline['writeKey'] }, items, lostDigits }
}

/** A value among the bytes that a client has sent. */
type Given = { readonly bytes: Buffer; readonly start: number; readonly limits: Limits }

/** So many messages of a batch are tidied in vain. Then no other one is tidied. */
const mostInVain = 3

/** What a client has sent in the place of the message that was tidied last. */
let original = Buffer.allocUnsafeSlow(mostTidied)

/**
 * Tidies the message that begins at `start`. If it is canonical then, it is written in place of what the
 * client has sent, and added to `items`. Otherwise returns `undefined`.
 */
function addTidied(items: ScannedItems, { bytes, start, limits }: Given): Tidied | undefined {
  const tidied = tidy(bytes, start)
  // A number may have become longer.
  if (tidied === undefined || start + tidied.length > tidied.end) return undefined
  const { end, length } = tidied
  if (original.length < end - start) original = Buffer.allocUnsafeSlow(2 * (end - start))
  bytes.copy(original, 0, start, end)
  copyTidied(bytes, start, length)
  places.beginAgain()
  if (scanObject(bytes, start, places, limits) === start + length) {
    bytes.fill(space, start + length, end)
    items.addScanned(start, start + length)
    return tidied
  }
  original.copy(bytes, start, 0, end - start)
  return undefined
}

/**
 * Adds the value that was respelled last to `items`. If there is room for it in place of what the client has
 * sent, it is written there, because the short way needs all messages in one buffer. Returns true if the
 * short way is open to the message.
 */
function addRespelled(
  items: ScannedItems,
  { bytes, start, limits }: Given,
  { end, length, hasNonNumber }: { end: number; length: number; hasNonNumber: boolean },
): boolean {
  const isObject = bytes[skipSpace(bytes, start)] === openBrace
  if (isObject && !hasNonNumber && length <= end - start) {
    copyRespelled(bytes, start)
    bytes.fill(space, start + length, end)
    places.beginAgain()
    if (scanObject(bytes, start, places, limits) === start + length) {
      items.addScanned(start, start + length)
      return true
    }
  }
  // Of a value that is no object, nobody needs the text.
  items.addRespelled(isObject ? respelledText() : 'null', hasNonNumber)
  return false
}

/**
 * Scans the body of a batch. Finds the places of its messages in one pass, and reads the rest of the body.
 * A message that isn't in canonical form (as JSON.stringify writes it) is tidied or respelled.
 */
export function scanBatch(bytes: Buffer, limits: Limits, work: RequestWork): Scanned {
  if (!isUtf8(bytes)) return refuse('not_utf8')
  const found = findList(bytes, startOf(bytes), limits, work)
  if (found === undefined) return scanRespelled(bytes, limits, work)
  return found.ok ? withRest(bytes, found, limits, work) : found
}

function refuse(fault: BodyFault): Refused {
  return { ok: false, fault }
}

/** Reads the members of a batch beside its list of messages. */
function withRest(
  bytes: Buffer,
  { start, end, scan, long, others, bodyEnd }: FoundList,
  { maxDepth }: Limits,
  work: RequestWork,
): Scanned {
  const { items } = scan
  // The answer will say that there are too many messages, whatever else is in the body.
  if (items.length > maxBatchMessages) {
    return { ok: true, body: { writeKey: keyIn(bytes) }, items, lostDigits: 0 }
  }
  if (!work.reads({ bytes: bytes.length - (end - start), long })) return refuse('too_dense')
  if (skipSpace(bytes, bodyEnd) !== bytes.length) return refuse('not_json')
  const rest = readMembers(bytes, others, maxDepth)
  if (rest === undefined) return refuse('not_json')
  return { ok: true, body: rest.body, items, lostDigits: scan.lostDigits + rest.lostDigits }
}

/**
 * Reads members of a batch. Returns `undefined` if they aren't JSON. Their objects stay text, because V8
 * makes a hidden class for each new order of keys.
 */
function readMembers(
  bytes: Buffer,
  members: readonly Member[],
  maxDepth: number,
): Pick<ScannedBody, 'body' | 'lostDigits'> | undefined {
  let lostDigits = 0
  const body: { [field: string]: unknown } = {}
  for (const { keyStart, keyEnd, start, end } of members) {
    const name = nameAt(bytes, keyStart, keyEnd)
    const respelled = respell(bytes, start, { maxDepth: maxDepth - 1 })
    if (name === undefined || respelled === undefined) return undefined
    if (skipSpace(bytes, respelled.end) !== end) return undefined
    lostDigits += respelled.lostDigits
    if (shared.has(name)) body[name] = valueOf(respelledText())
  }
  return { body, lostDigits }
}

/** The members that a batch has for all of its messages. */
const shared: ReadonlySet<string> = new Set(['writeKey', 'sentAt', 'context', 'integrations'])

/** Returns the name that a key spells, or `undefined` if the key isn't JSON. */
function nameAt(bytes: Buffer, start: number, end: number): string | undefined {
  if (isPlain(bytes, start + 1, end - 1)) return bytes.toString('latin1', start + 1, end - 1)
  const respelled = respell(bytes, start, { maxDepth: 0 })
  return respelled?.end === end ? String(valueOf(respelledText())) : undefined
}

/** Returns true if all bytes between `start` and `end` stand for themselves in a string. */
function isPlain(bytes: Buffer, start: number, end: number): boolean {
  let at = start
  while (at < end && plain[bytes[at] ?? 0] === 1) at++
  return at === end
}

/**
 * Scans a batch whose list couldn't be found, because the body isn't a JSON object with exactly one list
 * `batch`, or because a key is spelled with an escape. Respells the body first. Then
 * numbers that lost digits are counted only roughly, because a list may have been respelled before.
 */
function scanRespelled(bytes: Buffer, limits: Limits, work: RequestWork): Scanned {
  // No honest body comes to this point, so its long texts are no exception.
  const weight = { bytes: bytes.length, long: 0, slow: 0 }
  if (!work.respells(weight)) return refuse('too_dense')
  const respelled = respell(bytes, startOf(bytes), { maxDepth: limits.maxDepth + 2, nonNumbers: 'kept' })
  if (respelled === undefined || skipSpace(bytes, respelled.end) !== bytes.length) return refuse('not_json')
  const { lostDigits } = respelled
  const text = respelledText()
  if (!text.startsWith('{')) return refuse(respelled.hasNonNumber ? 'not_json' : 'not_an_object')
  const canonical = Buffer.from(text)
  const found = findList(canonical, 0, limits, work)
  if (found === undefined) return withoutList(text, { weight, hasNonNumber: respelled.hasNonNumber }, work)
  const scanned = found.ok ? withRest(canonical, found, limits, work) : found
  return scanned.ok ? { ...scanned, lostDigits } : scanned
}

/** Reads a body that has no list `batch`. `text`: its respelled text. */
function withoutList(
  text: string,
  { weight, hasNonNumber }: { weight: Weight; hasNonNumber: boolean },
  work: RequestWork,
): Scanned {
  if (!work.reads(weight)) return refuse('too_dense')
  if (hasNonNumber) return refuse('not_json')
  const body = { ...outlineOf(text), batch: memberOf(text, 'batch') }
  return { ok: true, body, items: new ScannedItems(nothing, places), lostDigits: 0 }
}

const nothing = Buffer.alloc(0)

type FoundList = {
  readonly ok: true
  readonly start: number
  readonly end: number
  readonly scan: ItemScan
  /** The bytes of long texts outside of the list. */
  long: number
  /** The other members. */
  readonly others: readonly Member[]
  /** The place after the body. */
  bodyEnd: number
}

/** The places of a member: those of its key, that of its value, and that of the sign after it. */
type Member = {
  readonly keyStart: number
  readonly keyEnd: number
  readonly start: number
  readonly end: number
}

/**
 * Weighs a body, up to `most` bytes outside of long texts. If the work isn't limited, its weight makes no
 * difference.
 */
function weightOf(bytes: Buffer, work: RequestWork, most: number): Weight {
  return work.isLimited ? weigh(bytes, startOf(bytes), most) : { bytes: bytes.length, long: 0, slow: 0 }
}

/**
 * Finds the list `batch` among the members of the body, and scans the list. All other members are only
 * skipped. Returns `undefined` if there isn't exactly one such list.
 */
function findList(
  bytes: Buffer,
  from: number,
  limits: Limits,
  work: RequestWork,
): FoundList | Refused | undefined {
  let found: FoundList | undefined
  const others: Member[] = []
  let long = 0
  let at = work.skipSpace(bytes, from)
  if (bytes[at] !== openBrace) return undefined
  do {
    const keyStart = work.skipSpace(bytes, at + 1)
    if (bytes[keyStart] !== quote) return undefined
    const keyEnd = skipString(bytes, keyStart)
    const colonAt = work.skipSpace(bytes, keyEnd)
    // A key with an escape may be `batch` in another spelling.
    if (bytes[colonAt] !== colon || mayBeSpelled(bytes, keyStart, keyEnd)) return undefined
    const start = work.skipSpace(bytes, colonAt + 1)
    const isList = isAt(bytes, keyStart, keyEnd, batchKey)
    let end: number
    if (isList) {
      if (found !== undefined || bytes[start] !== openBracket) return undefined
      const scan = new ItemScan(bytes, limits, work)
      end = scan.list(start)
      if (end === invalid) return refuse(scan.fault)
      found = { ok: true, start, end, scan, long, others, bodyEnd: end }
      if (scan.items.length > maxBatchMessages) return found
    } else {
      const weight = weigh(bytes, start, work.mostRest)
      end = start + weight.bytes
      long += weight.long
    }
    // What isn't in the list is read afterwards.
    const restBytes = end - from - long - (found === undefined ? 0 : found.end - found.start)
    if (restBytes >= work.mostRest) return refuse('too_dense')
    at = work.skipSpace(bytes, end)
    if (!isList) others.push({ keyStart, keyEnd, start, end: at })
  } while (bytes[at] === comma)
  if (bytes[at] !== closeBrace || found === undefined) return undefined
  found.long = long
  found.bodyEnd = at + 1
  return found
}

/** The longest spelling of `batch`, in which each letter is an escape. */
const mostSpelled = 2 + 5 * '\\u0062'.length

/** Returns true if a key has an escape and may be `batch`. */
function mayBeSpelled(bytes: Buffer, start: number, end: number): boolean {
  if (end - start > mostSpelled) return false
  for (let at = start; at < end; at++) if (bytes[at] === backslash) return true
  return false
}

/**
 * No message that is small enough is spelled with more bytes than this, not even with an escape for each
 * character. In a dense body, a longer one isn't read: to read it costs more than all else.
 */
const mostSpelledBytes = 4 * maxMessageBytes

/** The limit on the commas of a list that no message needs. */
const mostStrayCommas = 100

/** The scan of the list `batch` of one body. */
class ItemScan {
  readonly items: ScannedItems
  lostDigits = 0
  /** The reason why the list can't be read, if it can't. */
  fault: BodyFault = 'not_json'
  readonly #bytes: Buffer
  readonly #limits: Limits
  readonly #work: RequestWork
  /** The number of messages that were tidied, and weren't canonical then. */
  #inVain = 0

  constructor(bytes: Buffer, limits: Limits, work: RequestWork) {
    this.#bytes = bytes
    this.#limits = limits
    this.#work = work
    places.reset(bytes)
    this.items = new ScannedItems(bytes, places)
  }

  /**
   * Scans the list that begins at `start`. Returns the place after the list, or `invalid`. If there are more
   * messages than a batch may have, stops after the first that is too many.
   *
   * A comma too many or too few between messages is overlooked. Some clients of phones join the messages that
   * they have stored as texts, and what was damaged on the way is not in a message.
   */
  list(start: number): number {
    const bytes = this.#bytes
    const work = this.#work
    let commas = 0
    let at = work.skipSpace(bytes, start + 1)
    for (;;) {
      for (; bytes[at] === comma; at = work.skipSpace(bytes, at + 1)) {
        if (++commas > this.items.length + mostStrayCommas) return invalid
      }
      if (bytes[at] === closeBracket) return at + 1
      if (this.items.length === maxBatchMessages) {
        this.items.addRespelled('null', false)
        return at
      }
      const end = this.#item(at)
      if (end === invalid) return invalid
      at = work.skipSpace(bytes, end)
      const next = bytes[at]
      if (next !== comma && next !== closeBracket && next !== openBrace) {
        return work.isUsedUp ? this.#refuse() : invalid
      }
    }
  }

  #item(start: number): number {
    const work = this.#work
    places.begin()
    let weight: Weight | undefined
    if (work.isLookedAt) {
      weight = weigh(this.#bytes, start, work.mostScanned)
      const isTooLarge = weight.bytes > mostSpelledBytes
      if (!(isTooLarge ? work.skips(weight) : work.scans(weight))) return this.#refuse()
      if (isTooLarge) {
        this.items.addTooLarge()
        return start + weight.bytes
      }
    }
    const end = scanObject(this.#bytes, start, places, this.#limits)
    if (end !== invalid) {
      const isWeighed = work.isLookedAt || !work.isLimited
      if (!isWeighed && !work.scans({ bytes: end - start, long: 0, slow: 0 })) return this.#refuse()
      this.items.addScanned(start, end)
      return end
    }
    return this.#respell(start, weight)
  }

  #refuse(): typeof invalid {
    this.fault = 'too_dense'
    return invalid
  }

  /** `weighed`: the weight of the message, if it is known. */
  #respell(start: number, weighed: Weight | undefined): number {
    const work = this.#work
    let tidies = this.#inVain < mostInVain
    let weight = weighed
    if (work.isLimited) {
      weight ??= weigh(this.#bytes, start, work.mostRespelled)
      if (!work.respells(weight) || (!work.isLookedAt && !work.scans(weight))) return this.#refuse()
      tidies &&= weight.bytes <= mostTidied
    }
    const given = { bytes: this.#bytes, start, limits: this.#limits }
    const tidied = tidies ? addTidied(this.items, given) : undefined
    if (tidied !== undefined) {
      if (weight !== undefined) work.tidied(weight, tidied)
      return tidied.end
    }
    if (weight !== undefined && tidies && !work.tidiesInVain(weight)) return this.#refuse()
    this.#inVain++
    const respelled = respell(this.#bytes, start, { maxDepth: this.#limits.maxDepth, nonNumbers: 'null' })
    if (respelled === undefined) return invalid
    if (!work.unescapes(respelled.escapes)) return this.#refuse()
    this.lostDigits += respelled.lostDigits
    if (work.isLookedAt && respelled.length > maxMessageBytes) this.items.addTooLarge()
    else addRespelled(this.items, given, respelled)
    return respelled.end
  }
}
