import type { MessageLimits } from '../message/limits.ts'
import { measureStructure, type Measured } from '../message/structure.ts'
import { isJsonObject, type JsonObject } from './body.ts'

/** An object in JSON. */
export type WrittenObject = {
  readonly text: string
  /** Of the text in UTF-8. */
  readonly bytes: number
  /** Keys, those of all its objects together, that the batch has put there. */
  readonly keys: number
}

/** Where a member stands in the text, from its key to its value, and what it counts for. */
type Member = { readonly start: number; readonly end: number; readonly bytes: number; readonly keys: number }

/**
 * What a batch says for all of its messages: looked at and written out once, and put into each of them as it
 * is written. So a batch costs what its bytes cost, and those that come out of it.
 */
export class SharedObject {
  readonly #value: JsonObject
  readonly #written: WrittenObject
  #members: ReadonlyMap<string, Member> | undefined
  /** What keeps every message that it belongs to from being written. */
  readonly fault: Extract<Measured, { ok: false }>['fault'] | undefined

  /** `value` has a field. Its own level is the second one of a message. */
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

  /**
   * With the fields of a message's own, which win. Costs what `own` costs: the text is joined of pieces, and
   * they are not copied before it is sent.
   */
  with(own: unknown): WrittenObject {
    if (!isJsonObject(own)) return this.#written
    const replaced: { member: Member; text: string }[] = []
    let added = ''
    for (const [name, value] of Object.entries(own)) {
      const text = memberText(name, value)
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
    this.#members ??= membersOf(this.#value)
    return this.#members.get(name)
  }
}

function membersOf(value: JsonObject): ReadonlyMap<string, Member> {
  const members = new Map<string, Member>()
  let start = 1
  for (const [name, field] of Object.entries(value)) {
    const text = memberText(name, field)
    const end = start + text.length
    members.set(name, { start, end, bytes: Buffer.byteLength(text), keys: 1 + keysOf(field) })
    start = end + 1
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
