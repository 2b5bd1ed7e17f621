import { parseJson } from '../message/json/json.ts'
import { isJsonObject, type JsonObject } from './json-value.ts'
import { typeName } from './limits.ts'

/**
 * A message as conditions and mappings see it. Its body is parsed when something asks for it first, and only
 * once. It never changes.
 */
export class MessageView {
  readonly #body: Uint8Array
  #value: JsonObject | undefined
  #fields: Readonly<Record<string, unknown>> | undefined

  /** `body`: the canonical body of the message. */
  constructor(body: Uint8Array) {
    this.#body = body
  }

  /** The message as data. Nobody may change it. */
  get value(): JsonObject {
    this.#value ??= parsed(this.#text)
    return this.#value
  }

  /** The message as conditions see it: its fields by their names in `conditionFields`. */
  get fields(): Readonly<Record<string, unknown>> {
    this.#fields ??= fieldsOf(this.#needsMaps ? mapped(this.value) : this.value)
    return this.#fields
  }

  get #text(): string {
    const { buffer, byteOffset, length } = this.#body
    return Buffer.from(buffer, byteOffset, length).toString()
  }

  /**
   * The library finds the type of an object by its `constructor`. So an object with such a key has to be a
   * `Map`, and for simplicity then all objects of the message are.
   */
  get #needsMaps(): boolean {
    const { buffer, byteOffset, length } = this.#body
    return Buffer.from(buffer, byteOffset, length).includes('"constructor":')
  }
}

/**
 * JSON.parse alone can read a key of this message as one of an earlier message, perhaps of another customer.
 */
function parsed(text: string): JsonObject {
  const read = parseJson(text)
  return read.ok && isJsonObject(read.value) ? read.value : {}
}

function mapped(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(mapped)
  if (!isJsonObject(value)) return value
  return new Map(Object.entries(value).map(([name, member]) => [name, mapped(member)]))
}

const noFields: JsonObject = {}

/**
 * All messages have the same fields in the same order, so that V8 makes one hidden class for them. A field
 * that a message lacks is `undefined`, which the library takes for absent. An object that it lacks is empty,
 * so that `has(properties.plan)` is false for each message without this field.
 */
function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  const field = (name: string): unknown => {
    if (message instanceof Map) return message.get(name)
    return isJsonObject(message) && Object.hasOwn(message, name) ? message[name] : undefined
  }
  const object = (name: string): unknown => field(name) ?? noFields
  return {
    [typeName]: field('type'),
    event: field('event'),
    name: field('name'),
    userId: field('userId'),
    anonymousId: field('anonymousId'),
    groupId: field('groupId'),
    previousId: field('previousId'),
    messageId: field('messageId'),
    timestamp: field('timestamp'),
    receivedAt: field('receivedAt'),
    sentAt: field('sentAt'),
    properties: object('properties'),
    traits: object('traits'),
    context: object('context'),
    integrations: object('integrations'),
    message,
  }
}
