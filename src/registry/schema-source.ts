import { parseJson } from '../message/json.ts'
import { createAvroReader } from './avro.ts'
import { parseAvroSchema } from './avro-schema.ts'
import type { PayloadReader } from './frame.ts'
import { compileJsonSchema, createJsonReader, type ReferencedSchema } from './json-schema.ts'
import { askRegistry, type RegistryConnection } from './registry-request.ts'

/** The answer of a registry about a schema id. */
export type SchemaAnswer =
  | { readonly kind: 'found'; readonly read: PayloadReader }
  /** The registry has no such schema. */
  | { readonly kind: 'unknown' }
  /** The registry has the schema, but Sluice can't read values with it. Asking again changes nothing. */
  | { readonly kind: 'unusable'; readonly why: string }
  /** The registry can't be asked, or the answer isn't an answer of a registry. Asking again may help. */
  | { readonly kind: 'failed'; readonly why: string }

export type SchemaSource = {
  /**
   * Looks up a schema once. This may take several requests, and the timeout applies to each of them. Never
   * rejects.
   */
  ask(schemaId: number, signal: AbortSignal): Promise<SchemaAnswer>
}

export type SchemaSourceSettings = RegistryConnection & {
  /** The URL of the API, such as `http://registry:8081` or `http://registry:8080/apis/ccompat/v7`. */
  readonly url: string
}

/**
 * The most schemas to which a schema may refer, directly and through others. Without a limit, a lookup might
 * never end.
 */
const mostReferences = 1_000

/** Creates a source that asks a registry with Confluent's API. */
export function createSchemaSource({ url, ...connection }: SchemaSourceSettings): SchemaSource {
  return {
    async ask(schemaId, signal) {
      const lookup = new Lookup(url.replace(/\/+$/, ''), connection, signal)
      try {
        return { kind: 'found', read: await lookup.reader(schemaId) }
      } catch (error) {
        return error instanceof RegistryTrouble ? error.answer : unusable(messageOf(error))
      }
    },
  }
}

/** The reason why a lookup has ended without a schema. */
class RegistryTrouble extends Error {
  readonly answer: SchemaAnswer

  constructor(answer: SchemaAnswer) {
    super(answer.kind)
    this.answer = answer
  }
}

/** The requests of one lookup: first for the schema, and then for the schemas to which it refers. */
class Lookup {
  readonly #url: string
  readonly #connection: RegistryConnection
  readonly #signal: AbortSignal
  /** The names of the references that were met so far. */
  readonly #names = new Set<string>()
  readonly #referenced: ReferencedSchema[] = []

  constructor(url: string, connection: RegistryConnection, signal: AbortSignal) {
    this.#url = url
    this.#connection = connection
    this.#signal = signal
  }

  /** Returns the reader of the values of a schema. Throws if there is none. */
  async reader(schemaId: number): Promise<PayloadReader> {
    const registered = await this.#get(`/schemas/ids/${schemaId}`)
    const { schemaType = 'AVRO' } = registered
    if (schemaType !== 'AVRO' && schemaType !== 'JSON')
      throw new Error(`it is of the type ${String(schemaType)}; Avro and JSON are read`)
    const schema = parse(registered)
    await this.#collect(registered)
    if (schemaType === 'JSON') return createJsonReader(compileJsonSchema(schema, this.#referenced))
    return createAvroReader(
      parseAvroSchema(
        schema,
        this.#referenced.map((each) => each.schema),
      ),
    )
  }

  /**
   * Gets the schemas to which a schema refers, and first the schemas to which these refer. Two schemas may
   * refer to different versions of a third. Then the version that is met first counts for both, as in the
   * registry itself.
   */
  async #collect({ references = [] }: RegisteredSchema): Promise<void> {
    if (!Array.isArray(references)) throw new Error('its references are no list')
    for (const reference of references) {
      if (!isReference(reference)) throw new Error('a reference of it lacks a name, a subject or a version')
      const { name, subject, version } = reference
      if (this.#names.has(name)) continue
      this.#names.add(name)
      if (this.#names.size > mostReferences) throw new Error(`it refers to over ${mostReferences} schemas`)
      const path = `/subjects/${encodeURIComponent(subject)}/versions/${encodeURIComponent(version)}`
      const referenced = await this.#get(path)
      await this.#collect(referenced)
      this.#referenced.push({ name, schema: parse(referenced) })
    }
  }

  async #get(path: string): Promise<RegisteredSchema> {
    const answer = await askRegistry(this.#url + path, this.#connection, this.#signal)
    if (answer.ok && answer.status === 200 && isRegistered(answer.body)) return answer.body
    throw new RegistryTrouble(answer.ok ? this.#judge(answer) : failed(answer.why))
  }

  #judge({ status, body }: { status: number; body: unknown }): SchemaAnswer {
    if (status === 404 && saysNotFound(body)) {
      return this.#names.size === 0
        ? { kind: 'unknown' }
        : unusable('the registry lacks a schema that it refers to')
    }
    const refusal = status === 400 || status === 422 ? refusalOf(body) : undefined
    if (refusal !== undefined) return unusable(`the registry answers ${status}: ${refusal}`)
    if (status === 401 || status === 403)
      return failed(`it answers ${status}: look at registry.username and registry.password`)
    if (status === 404 || status < 400)
      return failed(`it answers ${status}, but not as a schema registry does: look at registry.url`)
    return failed(`it answers ${status}`)
  }
}

function unusable(why: string): SchemaAnswer {
  return { kind: 'unusable', why }
}

function failed(why: string): SchemaAnswer {
  return { kind: 'failed', why }
}

/** A schema as the registry has it: as a text, with its kind and its references. */
type RegisteredSchema = {
  readonly schema: string
  readonly schemaType?: unknown
  readonly references?: unknown
}

function isRegistered(body: unknown): body is RegisteredSchema {
  return typeof body === 'object' && body !== null && 'schema' in body && typeof body.schema === 'string'
}

type Reference = { readonly name: string; readonly subject: string; readonly version: string | number }

function isReference(value: unknown): value is Reference {
  if (typeof value !== 'object' || value === null) return false
  const { name, subject, version }: { name?: unknown; subject?: unknown; version?: unknown } = value
  const isVersion = typeof version === 'number' || typeof version === 'string'
  return typeof name === 'string' && typeof subject === 'string' && isVersion
}

function parse({ schema }: RegisteredSchema): unknown {
  const parsed = parseJson(schema)
  if (!parsed.ok) throw new Error('it is not JSON')
  return parsed.value
}

/**
 * Returns true if the body has a code from 40400 to 40499. For example, 40401 to 40403 mean that there is no
 * such subject, version or schema. The body of a 404 for a path that doesn't exist has no such code.
 */
function saysNotFound(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || !('error_code' in body)) return false
  const code = body.error_code
  return typeof code === 'number' && code >= 40_400 && code < 40_500
}

/**
 * Returns the message with which a registry says that it can't give a schema which it has. For example,
 * Apicurio stores namespaces that it refuses to read. Returns `undefined` if the answer isn't a registry's.
 */
function refusalOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('error_code' in body)) return undefined
  const message: unknown = 'message' in body ? body.message : undefined
  return typeof message === 'string' ? message.slice(0, maxMessageCharacters) : undefined
}

const maxMessageCharacters = 300

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, maxMessageCharacters)
}
