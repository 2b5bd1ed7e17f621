import { SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import avro from 'avsc'
import { parseJson } from '../message/json.ts'
import { createAvroReader } from './avro.ts'
import { avroOptions } from './avro-options.ts'
import type { PayloadReader } from './frame.ts'
import { createJsonReader, JsonSchemaCompiler, referredAs } from './json-schema.ts'
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

type RegistryArguments = ConstructorParameters<typeof SchemaRegistry>
type Middleware = NonNullable<RegistryArguments[0]['middlewares']>[number]
type RegistryOptions = NonNullable<RegistryArguments[1]>

/** Creates a source that asks a registry (Confluent's API) through `@kafkajs/confluent-schema-registry`. */
export function createSchemaSource({ url, ...connection }: SchemaSourceSettings): SchemaSource {
  return {
    async ask(schemaId, signal) {
      const compiler = new JsonSchemaCompiler()
      const exchange = new Exchange(connection, signal)
      // Each lookup needs a registry object of its own. A shared object would keep each schema forever, and
      // would refuse a second JSON Schema with the same name.
      const registry = new SchemaRegistry(
        { host: url, middlewares: [exchange.middleware] },
        optionsOf(compiler),
      )
      try {
        await registry.getSchema(schemaId)
      } catch (error) {
        return exchange.trouble ?? { kind: 'unusable', why: messageOf(error) }
      }
      const entry = registry.cache.getSchema(schemaId)
      try {
        if (entry?.type === SchemaType.AVRO && avro.Type.isType(entry.schema)) {
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `isType` has checked it
          return { kind: 'found', read: createAvroReader(entry.schema as unknown as avro.Type) }
        }
      } catch (error) {
        return { kind: 'unusable', why: messageOf(error) }
      }
      if (entry?.type === SchemaType.JSON && compiler.validate !== undefined) {
        return { kind: 'found', read: createJsonReader(compiler.validate) }
      }
      return {
        kind: 'unusable',
        why: `it is of the type ${entry?.type ?? 'unknown'}; Avro and JSON are read`,
      }
    },
  }
}

function optionsOf(compiler: JsonSchemaCompiler): RegistryOptions {
  const options = {
    [SchemaType.AVRO]: avroOptions(),
    [SchemaType.JSON]: { ajvInstance: compiler },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library calls only two methods of it
  return options as unknown as RegistryOptions
}

/** An error of Sluice's own. The library passes it on unchanged. */
class RegistryTrouble extends Error {}

/**
 * The requests of one lookup: first for the schema, and then for the schemas to which it refers. This class
 * replaces the library's own transport, which has four faults. The library's transport crashes the process if
 * an answer with a bad status is the JSON `null`. It never ends if a body is cut off. It has no deadline for
 * a whole request. It can't distinguish a registry that lacks the schema from a URL at which there is no
 * registry.
 */
class Exchange {
  readonly #connection: RegistryConnection
  readonly #signal: AbortSignal
  #requests = 0
  /** The names of the references that were requested so far. */
  readonly #names = new Set<string>()
  #trouble: SchemaAnswer | undefined

  constructor(connection: RegistryConnection, signal: AbortSignal) {
    this.#connection = connection
    this.#signal = signal
  }

  get trouble(): SchemaAnswer | undefined {
    return this.#trouble
  }

  /**
   * A middleware for the library. The library calls the last middleware in its list first. This middleware is
   * the last, and it doesn't call the others.
   */
  readonly middleware: Middleware = () => ({
    response: async (_next, _renew, request) => {
      this.#requests++
      const body = await this.#get(request.url())
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library calls only `data`
      return { data: () => body } as unknown as Awaited<ReturnType<typeof _next>>
    },
  })

  async #get(url: string): Promise<object> {
    const answer = await askRegistry(url, this.#connection, this.#signal)
    if (answer.ok && answer.status === 200 && isSchema(answer.body)) return this.#named(answer.body, url)
    this.#trouble = answer.ok ? this.#judge(answer) : { kind: 'failed', why: answer.why }
    throw new RegistryTrouble()
  }

  /**
   * Adds to a schema the name by which another schema refers to it. The library doesn't pass this name to the
   * compiler of JSON Schemas, but the library's request for the schema has it as the query parameter `name`.
   * Two schemas may refer to different versions of a third schema. In this case, the registry uses the first
   * version for both references, and so does the compiler. avsc would refuse the second version, so avsc gets
   * an empty schema in place of it.
   */
  #named(body: RegisteredSchema, url: string): RegisteredSchema {
    const name = new URL(url).searchParams.get('name')
    if (name === null) return body
    if (body.schemaType === 'JSON') return withName(body, name)
    const isRepeated = this.#names.has(name)
    this.#names.add(name)
    return isRepeated ? { schema: '"null"' } : body
  }

  #judge({ status, body }: { status: number; body: unknown }): SchemaAnswer {
    if (status === 404 && saysNotFound(body)) {
      if (this.#requests === 1) return { kind: 'unknown' }
      return { kind: 'unusable', why: 'the registry lacks a schema that it refers to' }
    }
    if (status === 401 || status === 403)
      return failed(`it answers ${status}: look at registry.username and registry.password`)
    if (status === 404 || status < 400)
      return failed(`it answers ${status}, but not as a schema registry does: look at registry.url`)
    return failed(`it answers ${status}`)
  }
}

function failed(why: string): SchemaAnswer {
  return { kind: 'failed', why }
}

type RegisteredSchema = { schema: string; schemaType?: unknown }

function isSchema(body: unknown): body is RegisteredSchema {
  return typeof body === 'object' && body !== null && 'schema' in body && typeof body.schema === 'string'
}

function withName(body: RegisteredSchema, name: string): RegisteredSchema {
  const parsed = parseJson(body.schema)
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return body
  return { ...body, schema: JSON.stringify({ ...parsed.value, [referredAs]: name }) }
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

const maxMessageCharacters = 300

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, maxMessageCharacters)
}
