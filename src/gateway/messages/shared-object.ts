import { measureStructure, type Measured } from '../../message/depth-and-keys.ts'
import { eachMember } from '../../message/json/json-walk.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { isIndex, RawMembers, RawObject } from '../../message/message-outline.ts'
import { isJsonObject, type JsonObject } from './body.ts'
import { SharedBytes } from './shared-bytes.ts'

/** An object written as JSON. */
export type WrittenObject = {
  readonly text: string
  /** The length of the text in UTF-8, in bytes. */
  readonly bytes: number
  /**
   * The number of keys, including the keys of nested objects. If an object of a batch was merged with a
   * message's own object, this counts only the keys from the batch.
   */
  readonly keys: number
}

/**
 * A member in the text of a shared object. Its place goes from the beginning of its key to the end of its
 * value.
 */
type Member = { readonly start: number; readonly end: number; readonly bytes: number; readonly keys: number }

/**
 * An object that a batch has for all of its messages (`context` or `integrations`). The object is checked
 * only once, and its JSON is copied into each message. So the work for a batch grows only with the bytes that
 * it has and the bytes that are written for it. No values are made of the object, because V8 makes a hidden
 * class for each new order of keys.
 */
export class SharedObject {
  readonly #written: WrittenObject
  #members: ReadonlyMap<string, Member> | undefined
  #asBytes: SharedBytes | undefined
  /**
   * The reason why the object, and so every message of the batch, can't be written. `undefined`: it can be
   * written.
   */
  readonly fault: Extract<Measured, { ok: false }>['fault'] | undefined

  /**
   * `object` must have at least one field. `maxDepth` is the limit for a whole message, in which `object` is
   * at the second level of nesting.
   */
  constructor(object: RawObject, { maxDepth, maxKeys }: MessageLimits) {
    const weighed = measureStructure(object, { maxDepth: maxDepth - 1, maxKeys })
    const text = weighed.ok ? object.text : '{}'
    this.#written = { text, bytes: Buffer.byteLength(text), keys: weighed.ok ? weighed.keys : 0 }
    this.fault = weighed.ok ? undefined : weighed.fault
  }

  get bytes(): number {
    return this.#written.bytes
  }

  /** The number of keys, including the keys of nested objects. */
  get keys(): number {
    return this.#written.keys
  }

  /** The object in the form in which it can be merged with the bytes of a scanned message. */
  get asBytes(): SharedBytes {
    this.#asBytes ??= new SharedBytes(this.#written.text)
    return this.#asBytes
  }

  /**
   * Returns the object merged with `own`, the message's own object. If both have a field, the field of `own`
   * is used. The cost depends only on the size of `own`, because the text is joined from slices, which
   * JavaScript copies only when the text is sent.
   */
  with(own: unknown): WrittenObject {
    if (!isJsonObject(own)) return this.#written
    const replaced: { member: Member; text: string }[] = []
    let added = ''
    for (const { name, text } of membersIn(own)) {
      const member = this.#memberOf(name)
      if (member === undefined) added += `,${text}`
      else replaced.push({ member, text })
    }
    return this.#join(
      replaced.sort((one, other) => one.member.start - other.member.start),
      added,
    )
  }

  #join(replaced: readonly { member: Member; text: string }[], added: string): WrittenObject {
    const shared = this.#written
    let { bytes, keys } = shared
    let text = ''
    let from = 0
    for (const { member, text: own } of replaced) {
      text += shared.text.slice(from, member.start) + own
      from = member.end
      bytes += Buffer.byteLength(own) - member.bytes
      keys -= member.keys
    }
    text += `${shared.text.slice(from, -1)}${added}}`
    return { text, bytes: bytes + Buffer.byteLength(added), keys }
  }

  #memberOf(name: string): Member | undefined {
    return this.#allMembers.get(name)
  }

  get #allMembers(): ReadonlyMap<string, Member> {
    this.#members ??= membersOf(this.#written.text)
    return this.#members
  }
}

function membersIn(own: JsonObject | RawObject): readonly { readonly name: string; readonly text: string }[] {
  if (own instanceof RawObject) return own.members()
  return Object.entries(own).map(([name, value]) => {
    return { name, text: `${JSON.stringify(name)}:${JSON.stringify(value)}` }
  })
}

function membersOf(object: string): ReadonlyMap<string, Member> {
  const members = new Map<string, Member>()
  let start = 1
  for (const { name, text } of new RawObject(object).members()) {
    const end = start + text.length
    members.set(name, { start, end, bytes: Buffer.byteLength(text), keys: keysOf(text) })
    start = end + 1
  }
  return members
}

function keysOf(member: string): number {
  const weighed = measureStructure(new RawMembers(member), { maxDepth: Infinity, maxKeys: Infinity })
  return weighed.ok ? weighed.keys : 0
}

/**
 * Returns the object with the member `ip`, as `{ ip, ...object }` would have it: after the keys that are
 * indexes, and with the value of the object if the object has an `ip`.
 */
export function withIp({ text }: RawObject, ip: string): RawObject {
  const given = `"ip":${JSON.stringify(ip)}`
  // Most contexts have no `ip` and no index, so their members need not be looked at.
  if (text.length > 2 && !text.includes('"ip":') && !startsWithDigit.test(text)) {
    return new RawObject(`{${given},${text.slice(1)}`)
  }
  let from = 1
  let [ownStart, ownEnd] = [0, 0]
  eachMember(text, 1, (start, valueStart, end) => {
    const name = text.slice(start + 1, valueStart - 2)
    if (name === 'ip') [ownStart, ownEnd] = [start, end]
    else if (isIndex(name)) from = end + 1
    return name === 'ip'
  })
  const hasOwn = ownEnd > 0
  const parts = [
    text.slice(1, from - 1),
    hasOwn ? text.slice(ownStart, ownEnd) : given,
    ...(hasOwn ? [text.slice(from, ownStart - 1), text.slice(ownEnd + 1, -1)] : [text.slice(from, -1)]),
  ]
  return new RawObject(`{${parts.filter((part) => part !== '').join(',')}}`)
}

const startsWithDigit = /^\{"\d/
