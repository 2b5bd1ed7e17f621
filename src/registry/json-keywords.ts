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
 * Returns a schema without each `nullable` that Ajv would refuse. `nullable` is a keyword of OpenAPI, so JSON
 * Schema ignores it. Ajv refuses it beside a schema without a `type`, for example beside a `$ref`.
 */
export function withoutNullable(schema: AnySchemaObject): AnySchemaObject {
  const [type, nullable]: unknown[] = [schema['type'], schema['nullable']]
  const isTaken = typeof nullable === 'boolean' && type !== undefined && ![type].flat().includes('null')
  const kept = Object.entries(schema).filter(([keyword]) => keyword !== 'nullable' || isTaken)
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, cleaned(keyword, value)]))
}

function cleaned(keyword: string, value: unknown): unknown {
  if (ofData.has(keyword) || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => cleaned('', item))
  if (!ofNames.has(keyword)) return withoutNullable(value)
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, cleaned('', inner)]))
}
