import { SchemaRegistry } from '@kafkajs/confluent-schema-registry'
import { parseJson } from '../message/json/json.ts'
import { createAvroReader } from './avro.ts'
import { parseAvroSchema } from './avro-schema.ts'
import type { PayloadReader } from './frame.ts'
import { compileJsonSchema, createJsonReader } from './json-schema.ts'
import { askRegistry, type RegistryConnection } from './registry-request.ts'

/** The answer of a registry about a schema id. */
export type SchemaAnswer =
  | { readonly kind: 'found'; readonly read: PayloadReader }
  /** The registry has no such schema. */
  | { readonly kind: 'unknown' }
  /** The registry has the schema, but Sluice can't read values with it. Asking again changes nothing. */
  | { readonly kind: 'unusable'; readonly why: string }
  /**
   * The registry can't be asked, or the answer isn't an answer of a registry. Asking again may help.
   * `afterMs`: the wait that it has asked for.
   */
  | { readonly kind: 'failed'; readonly why: string; readonly afterMs?: number }

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

type Middleware = NonNullable<ConstructorParameters<typeof SchemaRegistry>[0]['middlewares']>[number]

/** Creates a source that asks a registry (Confluent's API) through `@kafkajs/confluent-schema-registry`. */
export function createSchemaSource({ url, ...connection }: SchemaSourceSettings): SchemaSource {
  const host = url.replace(/\/+$/, '')
  return {
    async ask(schemaId, signal) {
      const lookup = new Lookup(host, connection, signal)
      try {
        // Each lookup needs a registry object of its own. A shared object would keep each schema forever.
        await new SchemaRegistry({ host, middlewares: [lookup.middleware] }).getSchema(schemaId)
        return { kind: 'found', read: lookup.reader() }
      } catch (error) {
        return error instanceof RegistryTrouble ? error.answer : unusable(messageOf(error))
      }
    },
  }
}

/** The reason why a lookup has ended without a schema. The library passes it on unchanged. */
class RegistryTrouble extends Error {
  readonly answer: SchemaAnswer

  constructor(answer: SchemaAnswer) {
    super(answer.kind)
    this.answer = answer
  }
}

/**
 * The requests of one lookup. The library decides what to ask for: first the schema, and then the schemas to
 * which it refers, and those to which these refer. This class sends the requests and keeps the schemas. The
 * library's own transport never ends if a body is cut off, has no deadline for a whole request, and can't
 * distinguish a registry that lacks the schema from a URL at which there is no registry. Its parsers refuse
 * names that Java writes, so the library gets an empty schema in place of each schema.
 */
class Lookup {
  readonly #host: string
  readonly #connection: RegistryConnection
  readonly #signal: AbortSignal
  #schema: RegisteredSchema | undefined
  /**
   * The schemas to which the schema refers, by the name in the list of references. Two schemas may refer to
   * different versions of a third. Then the version that is asked for first counts for both, as in the
   * registry itself.
   */
  readonly #referenced = new Map<string, RegisteredSchema>()

  constructor(host: string, connection: RegistryConnection, signal: AbortSignal) {
    this.#host = host
    this.#connection = connection
    this.#signal = signal
  }

  /**
   * A middleware for the library. The library calls the last middleware in its list first. This middleware is
   * the last, and it doesn't call the others.
   */
  readonly middleware: Middleware = () => ({
    response: async (_next, _renew, request) => {
      const { id, name, subject, version } = request.params()
      const references =
        id === undefined
          ? await this.#keepReferenced(textOf(name), textOf(subject), textOf(version))
          : (this.#schema = await this.#get(`/schemas/ids/${textOf(id)}`)).references
      const answer = { schema: emptySchema, references }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library calls only `data`
      return { data: () => answer } as unknown as Awaited<ReturnType<typeof _next>>
    },
  })

  /** Returns the reader of the values of the schema. Throws if the schema can't be used. */
  reader(): PayloadReader {
    if (this.#schema === undefined) throw new Error('the library has not asked for it')
    // A schema comes after those to which it refers.
    const referenced = [...this.#referenced].toReversed()
    const schema = parse(this.#schema)
    if (this.#schema.schemaType === 'JSON')
      return createJsonReader(
        compileJsonSchema(
          schema,
          referenced.map(([name, each]) => ({ name, schema: parse(each) })),
        ),
      )
    return createAvroReader(
      parseAvroSchema(
        schema,
        referenced.map(([, each]) => parse(each)),
      ),
    )
  }

  /** Asks for a schema to which another one refers, and returns the schemas to which this one refers. */
  async #keepReferenced(name: string, subject: string, version: string): Promise<readonly Reference[]> {
    if (this.#referenced.has(name)) return []
    if (this.#referenced.size >= mostReferences)
      throw new RegistryTrouble(unusable(`it refers to over ${mostReferences} schemas`))
    const path = `/subjects/${encodeURIComponent(subject)}/versions/${encodeURIComponent(version)}`
    const schema = await this.#get(path)
    this.#referenced.set(name, schema)
    return schema.references
  }

  /** Gets a schema that Sluice can read, with the schemas to which it refers. */
  async #get(path: string): Promise<RegisteredSchema> {
    const answer = await askRegistry(this.#host + path, this.#connection, this.#signal)
    if (!answer.ok || answer.status !== 200 || !isRegistered(answer.body))
      throw new RegistryTrouble(answer.ok ? this.#judge(answer) : failed(answer.why))
    const { schema, schemaType = 'AVRO', references = [] } = answer.body
    const why = faultOf(schemaType, references)
    if (why !== undefined) throw new RegistryTrouble(unusable(why))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `faultOf` has checked it
    return { schema, schemaType, references: references as readonly Reference[] }
  }

  #judge({ status, body, afterMs }: { status: number; body: unknown; afterMs: number }): SchemaAnswer {
    if (status === 404 && saysNotFound(body)) {
      return this.#schema === undefined
        ? { kind: 'unknown' }
        : unusable('the registry lacks a schema that it refers to')
    }
    const refusal = status === 400 || status === 422 ? refusalOf(body) : undefined
    if (refusal !== undefined) return unusable(`the registry answers ${status}: ${refusal}`)
    if (status === 401 || status === 403)
      return failed(`it answers ${status}: look at registry.username and registry.password`)
    if (status === 404 || status < 400)
      return failed(`it answers ${status}, but not as a schema registry does: look at registry.url`)
    return { ...failed(`it answers ${status}`), ...(afterMs > 0 && { afterMs }) }
  }
}

function unusable(why: string): SchemaAnswer {
  return { kind: 'unusable', why }
}

function failed(why: string): SchemaAnswer {
  return { kind: 'failed', why }
}

/** Returns a parameter of the library's request, which is a number or a text, as a text. */
function textOf(parameter: unknown): string {
  return typeof parameter === 'string' || typeof parameter === 'number' ? String(parameter) : ''
}

/** The schema that the library gets in place of each schema: Avro's type for nothing. */
const emptySchema = '"null"'

/** A schema as the registry has it: as a text, with its kind and its references. */
type RegisteredSchema = {
  readonly schema: string
  readonly schemaType: unknown
  readonly references: readonly Reference[]
}

function isRegistered(body: unknown): body is { schema: string; schemaType?: unknown; references?: unknown } {
  return typeof body === 'object' && body !== null && 'schema' in body && typeof body.schema === 'string'
}

/** Returns why a schema can't be used, as far as its text need not be read for it. */
function faultOf(schemaType: unknown, references: unknown): string | undefined {
  if (schemaType !== 'AVRO' && schemaType !== 'JSON')
    return `it is of the type ${String(schemaType)}; Avro and JSON are read`
  if (!Array.isArray(references)) return 'its references are no list'
  return references.every(isReference) ? undefined : 'a reference of it lacks a name, a subject or a version'
}

type Reference = { readonly name: string; readonly subject: string; readonly version: string | number }

function isReference(value: unknown): value is Reference {
  if (typeof value !== 'object' || value === null) return false
  const { name, subject, version }: { name?: unknown; subject?: unknown; version?: unknown } = value
  const isVersion = typeof version === 'number' || typeof version === 'string'
  return typeof name === 'string' && typeof subject === 'string' && isVersion
}

function parse({ schema }: Pick<RegisteredSchema, 'schema'>): unknown {
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
