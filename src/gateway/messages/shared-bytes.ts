import type { FieldPlaces } from '../../message/field-places.ts'
import type { MessageWriter } from './message-writer.ts'
import { closeBrace, comma, quote } from '../../message/json/json-bytes.ts'
import { skipString, skipValue } from '../../message/json/json-skip.ts'
import { hashBetween } from '../../message/json/member-order.ts'

/**
 * The place of a member in the bytes of a shared object, from the beginning of its key to the end of its
 * value. `keyEnd`: the place after its key.
 */
type Member = { readonly start: number; readonly keyEnd: number; readonly end: number }
type Replaced = { readonly member: Member; readonly own: number }

/**
 * The bytes of an object that a batch has for all of its messages. This class merges the object with the own
 * object of a message that was scanned. If a message was parsed, `SharedObject.with` does this. Call
 * `measure` and then `write` for each message, before you call `measure` for the next message.
 */
export class SharedBytes {
  readonly #text: Buffer
  readonly #byHash = new Map<number, Member>()
  readonly #replaced: Replaced[] = []
  /** False if two keys of the object have the same hash. In that case, this class can't merge the object. */
  readonly isUsable: boolean

  /** `text`: the object as JSON.stringify writes it. */
  constructor(text: string) {
    const bytes = Buffer.from(text)
    this.#text = bytes
    let count = 0
    for (let at = 1; bytes[at] === quote; count++) {
      const keyEnd = skipString(bytes, at)
      const end = skipValue(bytes, keyEnd + 1)
      this.#byHash.set(hashBetween(bytes, at + 1, keyEnd - 1), { start: at, keyEnd, end })
      at = end + 1
    }
    this.isUsable = this.#byHash.size === count
  }

  /**
   * Merges this object with the message's own object in `field`, if the message has one. Returns the length
   * of the merged object in bytes, and remembers which members are replaced.
   */
  measure(bytes: Buffer, places: FieldPlaces, field: number): number {
    this.#replaced.length = 0
    let length = this.#text.length
    if (!places.isObject(field)) return length
    const end = places.endOfMembers(field)
    for (let own = places.firstMember(field); own < end; own++) {
      const start = places.startOfMember(own)
      const ownBytes = places.endOfMember(own) - start
      const member = this.#byHash.get(places.hashOfMember(own))
      if (member !== undefined && this.#isKeyOf(member, bytes, start)) {
        this.#replaced.push({ member, own })
        length += ownBytes - (member.end - member.start)
      } else length += ownBytes + 1
    }
    return length
  }

  /** Writes the merged object that was measured last. */
  write(to: MessageWriter, bytes: Buffer, places: FieldPlaces, field: number): void {
    const text = this.#text
    let from = 0
    for (const { member, own } of this.#inPlace()) {
      to.bytes(text, from, member.start)
      to.bytes(bytes, places.startOfMember(own), places.endOfMember(own))
      from = member.end
    }
    to.bytes(text, from, text.length - 1)
    if (places.isObject(field)) this.#writeAdded(to, bytes, places, field)
    to.byte(closeBrace)
  }

  /**
   * Writes the message's own members that don't replace a shared member. Neighbouring members are copied
   * together.
   */
  #writeAdded(to: MessageWriter, bytes: Buffer, places: FieldPlaces, field: number): void {
    const writeRun = (first: number, end: number): void => {
      if (first === end) return
      to.byte(comma)
      to.bytes(bytes, places.startOfMember(first), places.endOfMember(end - 1))
    }
    let first = places.firstMember(field)
    for (const { own } of this.#replaced) {
      writeRun(first, own)
      first = own + 1
    }
    writeRun(first, places.endOfMembers(field))
  }

  #inPlace(): readonly Replaced[] {
    const replaced = this.#replaced
    return replaced.length < 2
      ? replaced
      : replaced.toSorted((one, other) => one.member.start - other.member.start)
  }

  /** Keys are compared as JSON spells them, with their quotation marks. */
  #isKeyOf({ start, keyEnd }: Member, bytes: Buffer, ownStart: number): boolean {
    const text = this.#text
    for (let at = start; at < keyEnd; at++) if (bytes[ownStart + at - start] !== text[at]) return false
    return true
  }
}
