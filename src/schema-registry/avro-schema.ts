import { isDeepStrictEqual } from 'node:util'

export type AvroPrimitive = 'null' | 'boolean' | 'int' | 'long' | 'float' | 'double' | 'bytes' | 'string'

/** The annotation of a type with a logical type. */
export type AvroLogical = {
  readonly name: string
  /** The number of digits after the point of a decimal, as the schema has it. It may be anything. */
  readonly scale: unknown
}

/** A type of a schema. A record may contain itself, so types may form cycles. */
export type AvroType =
  | { readonly kind: AvroPrimitive; readonly logical?: AvroLogical }
  | { readonly kind: 'fixed'; readonly size: number; readonly logical?: AvroLogical }
  | { readonly kind: 'enum'; readonly symbols: readonly string[] }
  | { readonly kind: 'array' | 'map'; readonly items: AvroType }
  | { readonly kind: 'union'; readonly branches: readonly AvroType[] }
  | { readonly kind: 'record'; readonly fields: readonly AvroField[] }

export type AvroField = {
  readonly name: string
  readonly type: AvroType
  /** True if the default is null, which is how Avro declares a field that may be absent. */
  readonly isNullByDefault: boolean
}

/**
 * Reads an Avro schema as the reader of its values needs it. `referenced` are the schemas to which it refers,
 * in any order. All of them are JSON values. Throws if the schema can't describe values.
 *
 * Nothing here depends on how a name is spelled, because names only say which type is meant. So every schema
 * of a producer can be read, even if its names, defaults, aliases or other attributes break Avro's rules:
 * Java, for one, checks no namespace. No name becomes code.
 */
export function parseAvroSchema(schema: unknown, referenced: readonly unknown[] = []): AvroType {
  const parser = new Parser()
  for (const each of [...referenced, schema]) parser.collect(each, noSpace)
  return parser.build(schema, noSpace)
}

/** The null namespace. */
const noSpace = ''

type Json = Readonly<Record<string, unknown>>

type Definition = {
  readonly json: Json
  /** The namespace in which the definition stands. */
  readonly space: string
  /** True if the schema defines the name again in another way. */
  isAmbiguous: boolean
}

class Parser {
  /** The definitions of the named types, by full name. A type may be defined after it is used. */
  readonly #definitions = new Map<string, Definition>()
  readonly #built = new Map<Json, AvroType>()

  /** Collects the named types that a schema defines. */
  collect(schema: unknown, space: string): void {
    if (Array.isArray(schema)) for (const branch of schema) this.collect(branch, space)
    if (!isJson(schema)) return
    const { type, items, values } = schema
    const inner = isNamed(schema) ? this.#define(schema, space) : space
    if (typeof type !== 'string') this.collect(type, space)
    else if (type === 'array') this.collect(items, space)
    else if (type === 'map') this.collect(values, space)
    else if (isRecord(type)) for (const field of fieldsOf(schema)) this.collect(field['type'], inner)
  }

  /** Returns the type that a schema describes. All definitions must have been collected. */
  build(schema: unknown, space: string): AvroType {
    if (typeof schema === 'string') return this.#named(schema, space)
    if (Array.isArray(schema))
      return { kind: 'union', branches: schema.map((branch) => this.build(branch, space)) }
    if (!isJson(schema)) throw new Error(`${shown(schema)} is no type of Avro`)
    const known = this.#built.get(schema)
    if (known !== undefined) return known
    const built = this.#object(schema, space)
    this.#built.set(schema, built)
    return built
  }

  #object(schema: Json, space: string): AvroType {
    const { type } = schema
    if (typeof type !== 'string') return this.build(type, space)
    if (isRecord(type)) return this.#record(schema, space)
    switch (type) {
      case 'array':
        return { kind: type, items: this.build(schema['items'], space) }
      case 'map':
        return { kind: type, items: this.build(schema['values'], space) }
      case 'enum':
        return { kind: type, symbols: symbolsOf(schema) }
      case 'fixed':
        return { kind: type, size: sizeOf(schema), ...logicalOf(schema) }
      default:
        return isPrimitive(type) ? { kind: type, ...logicalOf(schema) } : this.#named(type, space)
    }
  }

  /** Notes a definition. Returns the namespace that applies within it. */
  #define(json: Json, outer: string): string {
    const space = spaceWithin(json, outer)
    const { name } = json
    if (typeof name !== 'string') return space
    const fullName = qualified(name.slice(name.lastIndexOf('.') + 1), space)
    const known = this.#definitions.get(fullName)
    if (known === undefined) this.#definitions.set(fullName, { json, space: outer, isAmbiguous: false })
    else if (!isDeepStrictEqual(known.json, json)) known.isAmbiguous = true
    return space
  }

  #named(name: string, space: string): AvroType {
    if (isPrimitive(name)) return { kind: name }
    for (const candidate of fullNames(name, space)) {
      const definition = this.#definitions.get(candidate)
      if (definition?.isAmbiguous === true) throw new Error(`it defines ${shown(candidate)} in two ways`)
      if (definition !== undefined) return this.build(definition.json, definition.space)
    }
    throw new Error(`unknown type ${shown(name)}`)
  }

  #record(schema: Json, space: string): AvroType {
    const fields: AvroField[] = []
    const record: AvroType = { kind: 'record', fields }
    // The record is known before its fields are built, because they may contain it.
    this.#built.set(schema, record)
    const inner = spaceWithin(schema, space)
    const names = new Set<string>()
    for (const field of fieldsOf(schema)) {
      const { name, type } = field
      if (typeof name !== 'string') throw new Error('a record has a field without a name')
      if (names.has(name)) throw new Error(`a record has two fields ${shown(name)}`)
      names.add(name)
      fields.push({ name, type: this.build(type, inner), isNullByDefault: field['default'] === null })
    }
    return record
  }
}

/** Returns the namespace that applies within a named type. `outer` is the namespace around it. */
function spaceWithin({ name, namespace }: Json, outer: string): string {
  if (typeof name === 'string' && name.includes('.')) return name.slice(0, name.lastIndexOf('.'))
  return typeof namespace === 'string' ? namespace : outer
}

/**
 * Returns the full names that a reference may mean, the likeliest first. Java looks for them in this order.
 */
function fullNames(name: string, space: string): readonly string[] {
  if (name.lastIndexOf('.') > 0) return [name]
  const simple = name.replace('.', '')
  return name === simple ? [qualified(name, space), name] : [simple]
}

function qualified(name: string, space: string): string {
  return space === '' ? name : `${space}.${name}`
}

function fieldsOf({ fields }: Json): readonly Json[] {
  if (Array.isArray(fields) && fields.every(isJson)) return fields
  throw new Error('a record has no list of fields')
}

function symbolsOf({ symbols }: Json): readonly string[] {
  if (Array.isArray(symbols) && symbols.every((symbol) => typeof symbol === 'string')) return symbols
  throw new Error('an enum has no list of symbols')
}

function sizeOf({ size }: Json): number {
  if (typeof size === 'number' && Number.isSafeInteger(size) && size >= 0) return size
  throw new Error('a fixed has no size')
}

function logicalOf({ logicalType, scale = 0 }: Json): { logical?: AvroLogical } {
  return typeof logicalType === 'string' ? { logical: { name: logicalType, scale } } : {}
}

const primitives: ReadonlySet<string> = new Set<AvroPrimitive>([
  'null',
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'bytes',
  'string',
])

function isPrimitive(name: string): name is AvroPrimitive {
  return primitives.has(name)
}

function isRecord(type: string): boolean {
  return type === 'record' || type === 'error'
}

function isNamed({ type }: Json): boolean {
  return typeof type === 'string' && (isRecord(type) || type === 'enum' || type === 'fixed')
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const mostShown = 100

function shown(value: unknown): string {
  // oxlint-disable-next-line typescript/no-unnecessary-type-conversion -- JSON.stringify(undefined) is undefined
  return String(JSON.stringify(value)).slice(0, mostShown)
}
