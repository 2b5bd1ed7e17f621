import type { MessageLimits } from '../../message/limits.ts'
import { RawObject } from '../../message/message-outline.ts'
import { measureStructure, type Measured } from '../../message/depth-and-keys.ts'
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
type Member = {
  readonly start: number
  readonly end: number
  /** The position in the text at which the member begins, in bytes. */
  readonly byteStart: number
  readonly bytes: number
  readonly keys: number
}

/**
 * An object that a batch has for all of its messages (`context` or `integrations`). The object is checked and
 * turned into JSON only once, and the JSON is copied into each message. So the work for a batch grows only
 * with the bytes that it has and the bytes that are written for it.
 */
export class SharedObject {
  readonly #value: JsonObject
  readonly #written: WrittenObject
  #members: ReadonlyMap<string, Member> | undefined
  #asBytes: SharedBytes | undefined
  /**
   * The reason why the object, and so every message of the batch, can't be written. `undefined`: it can be
   * written.
   */
  readonly fault: Extract<Measured, { ok: false }>['fault'] | undefined

  /**
   * `value` must have at least one field. `maxDepth` is the limit for a whole message, in which `value` is at
   * the second level of nesting.
   */
  constructor(value: JsonObject, { maxDepth, maxKeys }: MessageLimits) {
    const weighed = measureStructure(value, { maxDepth: maxDepth - 1, maxKeys })
    const text = weighed.ok ? JSON.stringify(value) : '{}'
    this.#value = value
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
    this.#asBytes ??= new SharedBytes(
      this.#written.text,
      [...this.#allMembers].map(([name, { byteStart, bytes }]) => {
        return { name, start: byteStart, end: byteStart + bytes }
      }),
    )
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
    this.#members ??= membersOf(this.#value)
    return this.#members
  }
}

function membersIn(own: JsonObject | RawObject): readonly { readonly name: string; readonly text: string }[] {
  if (own instanceof RawObject) return own.members()
  return Object.entries(own).map(([name, value]) => ({ name, text: memberText(name, value) }))
}

function membersOf(value: JsonObject): ReadonlyMap<string, Member> {
  const members = new Map<string, Member>()
  let start = 1
  let byteStart = 1
  for (const [name, field] of Object.entries(value)) {
    const text = memberText(name, field)
    const end = start + text.length
    const bytes = Buffer.byteLength(text)
    members.set(name, { start, end, byteStart, bytes, keys: 1 + keysOf(field) })
    start = end + 1
    byteStart += bytes + 1
  }
  return members
}

function memberText(name: string, value: unknown): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`
}

function keysOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const weighed = measureStructure(value, { maxDepth: Infinity, maxKeys: Infinity })
  return weighed.ok ? weighed.keys : 0
}
