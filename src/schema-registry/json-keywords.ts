import type { AnySchemaObject, FuncKeywordDefinition } from 'ajv'

// Keywords of JSON Schema for which Ajv doesn't do what JSON Schema says.

/**
 * Sluice's own implementation of `uniqueItems`. Ajv's implementation compares each item with every other
 * item, so an array of a megabyte would take minutes.
 */
export const uniqueItems: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  validate: (isWanted: boolean, items: readonly unknown[]) =>
    !isWanted || new Set(items.map((item) => JSON.stringify(item, withSortedKeys))).size === items.length,
  errors: false,
  error: { message: 'must NOT have duplicate items' },
}

function withSortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Sluice's own implementation of `multipleOf`. Ajv's implementation divides two floating-point numbers, so
 * for Ajv 19.99 is no multiple of 0.01.
 */
export const multipleOf: FuncKeywordDefinition = {
  keyword: 'multipleOf',
  type: 'number',
  schemaType: 'number',
  validate: (divisor: number, value: number) => Number.isFinite(value) && isMultiple(value, divisor),
  errors: false,
  error: { message: ({ schema }) => `must be multiple of ${schema}` },
}

/** Returns true if one number is a multiple of another one, as JSON spells both numbers. */
function isMultiple(value: number, divisor: number): boolean {
  const [one, other] = [decimalOf(value), decimalOf(divisor)]
  if (other.digits === 0n) return false
  const lowest = Math.min(one.exponent, other.exponent)
  const scaled = ({ digits, exponent }: Decimal): bigint => digits * 10n ** BigInt(exponent - lowest)
  return scaled(one) % scaled(other) === 0n
}

/** The number `digits` times 10 to the power of `exponent`. */
type Decimal = { readonly digits: bigint; readonly exponent: number }

function decimalOf(value: number): Decimal {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length }
}

/** The keywords whose values have no schemas in them. */
const ofData: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples'])
/** The keywords whose values have a schema for each name. */
const ofNames: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'definitions',
  '$defs',
  'dependentSchemas',
  'dependencies',
])

/**
 * Returns a schema in a form that Ajv takes. Producers and registries accept more than Ajv does.
 *
 * - `nullable` is a keyword of OpenAPI, so JSON Schema ignores it. Ajv refuses it beside a schema without a
 *   `type`, for example beside a `$ref`.
 * - In draft 4, `exclusiveMinimum` and `exclusiveMaximum` are booleans beside `minimum` and `maximum`, and
 *   `$id` is called `id`. In later drafts, `id` is an unknown keyword.
 * - In draft 3, `required` is a boolean of a property. Later drafts give it no meaning.
 * - A `$id` that is no text, or a `format` that is none, names nothing.
 */
export function asAjvTakes(schema: AnySchemaObject): AnySchemaObject {
  const draft: unknown = schema['$schema']
  return taken(schema, typeof draft === 'string' && draft.includes('/draft-04/') ? 'id' : '$id')
}

function taken(schema: AnySchemaObject, idKeyword: 'id' | '$id'): AnySchemaObject {
  const kept = Object.entries<unknown>(schema).flatMap(([keyword, value]) => {
    switch (keyword) {
      case idKeyword:
        return typeof value === 'string' ? [['$id', value]] : []
      case 'nullable':
        return isNullableTaken(schema) ? [[keyword, value]] : []
      case 'exclusiveMinimum':
      case 'exclusiveMaximum':
        if (typeof value !== 'boolean') return [[keyword, value]]
        return value ? [[keyword, schema[keyword === 'exclusiveMinimum' ? 'minimum' : 'maximum']]] : []
      case 'required':
        return typeof value === 'boolean' ? [] : [[keyword, value]]
      case 'format':
        return typeof value === 'string' ? [[keyword, value]] : []
      default:
        return [[keyword, cleaned(keyword, value, idKeyword)]]
    }
  })
  return Object.fromEntries(kept)
}

function isNullableTaken({ type, nullable }: AnySchemaObject): boolean {
  const types: unknown = type
  return typeof nullable === 'boolean' && types !== undefined && ![types].flat().includes('null')
}

function cleaned(keyword: string, value: unknown, idKeyword: 'id' | '$id'): unknown {
  if (ofData.has(keyword) || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => cleaned('', item, idKeyword))
  if (!ofNames.has(keyword)) return taken(value, idKeyword)
  const entries = Object.entries(value).map(([name, inner]) => [name, cleaned('', inner, idKeyword)])
  return Object.fromEntries(entries)
}
