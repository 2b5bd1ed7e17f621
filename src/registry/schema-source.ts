import { SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import avro from 'avsc'
import { parseJson } from '../message/json.ts'
import { createAvroReader } from './avro.ts'
import { logicalTypes } from './avro-logical.ts'
import type { PayloadReader } from './frame.ts'
import { createJsonReader, JsonSchemaCompiler, referredAs } from './json-schema.ts'
import { askRegistry, type RegistryConnection } from './registry-request.ts'

/** What a registry says of a schema id. */
export type SchemaAnswer =
  | { readonly kind: 'found'; readonly read: PayloadReader }
  /** It has no such schema. */
  | { readonly kind: 'unknown' }
  /** It has one that can't be read with: asking again changes nothing. */
  | { readonly kind: 'unusable'; readonly why: string }
  /** It can't be asked, or doesn't answer as a registry: asking again may help. */
  | { readonly kind: 'failed'; readonly why: string }

export type SchemaSource = {
  /** Asks once, within the timeout for each request that it takes. Never rejects. */
  ask(schemaId: number, signal: AbortSignal): Promise<SchemaAnswer>
}

export type SchemaSourceSettings = RegistryConnection & {
  /** Of the API: `http://registry:8081`, `http://registry:8080/apis/ccompat/v7`. */
  readonly url: string
}

type RegistryArguments = ConstructorParameters<typeof SchemaRegistry>
type Middleware = NonNullable<RegistryArguments[0]['middlewares']>[number]
type RegistryOptions = NonNullable<RegistryArguments[1]>

/** Asks a registry of Confluent's API, by way of its library. */
export function createSchemaSource({ url, ...connection }: SchemaSourceSettings): SchemaSource {
  return {
    async ask(schemaId, signal) {
      const compiler = new JsonSchemaCompiler()
      const exchange = new Exchange(connection, signal)
      // Made for this one: it would keep each schema for ever, and refuse the second JSON Schema of a name.
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
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- just asked
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
    // `always`: that a union's branches could be mistaken for each other is nothing that our reader minds.
    [SchemaType.AVRO]: { logicalTypes, wrapUnions: 'always', omitRecordMethods: true },
    [SchemaType.JSON]: { ajvInstance: compiler },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it declares a whole Ajv, of which it calls two methods
  return options as unknown as RegistryOptions
}

/** Ours, which the library passes on as it is. */
class RegistryTrouble extends Error {}

/**
 * The requests of one lookup: the schema, and then those that it refers to. Takes the place of the library's
 * own transport, which takes down the process with it when an answer with a bad status is the JSON `null`,
 * never ends when a body is cut off, has no deadline for the whole, and can't tell a registry that has no
 * such schema from a URL that leads nowhere.
 */
class Exchange {
  readonly #connection: RegistryConnection
  readonly #signal: AbortSignal
  #requests = 0
  #trouble: SchemaAnswer | undefined

  constructor(connection: RegistryConnection, signal: AbortSignal) {
    this.#connection = connection
    this.#signal = signal
  }

  get trouble(): SchemaAnswer | undefined {
    return this.#trouble
  }

  /** The last in the list is the outermost: it doesn't call those within. */
  readonly middleware: Middleware = () => ({
    response: async (_next, _renew, request) => {
      this.#requests++
      const body = await this.#get(request.url())
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library asks a response for nothing else
      return { data: () => body } as unknown as Awaited<ReturnType<typeof _next>>
    },
  })

  async #get(url: string): Promise<object> {
    const answer = await askRegistry(url, this.#connection, this.#signal)
    if (answer.ok && answer.status === 200 && isSchema(answer.body)) return withName(answer.body, url)
    this.#trouble = answer.ok ? this.#judge(answer) : { kind: 'failed', why: answer.why }
    throw new RegistryTrouble()
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

function isSchema(body: unknown): body is { schema: string } {
  return typeof body === 'object' && body !== null && 'schema' in body && typeof body.schema === 'string'
}

/** The library tells the compiler of no name; it asks for what is referred to with the name in the query. */
function withName(body: { schema: string; schemaType?: unknown }, url: string): object {
  const name = new URL(url).searchParams.get('name')
  if (name === null || body.schemaType !== 'JSON') return body
  const parsed = parseJson(body.schema)
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return body
  return { ...body, schema: JSON.stringify({ ...parsed.value, [referredAs]: name }) }
}

/**
 * 40401 to 40403: no such subject, version, schema. A path that isn't there is 404, without a code of its
 * own.
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
