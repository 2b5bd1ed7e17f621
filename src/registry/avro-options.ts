import type { Schema, Type } from 'avsc'
import { logicalTypes } from './avro-logical.ts'

/**
 * The alias that marks a field whose default is null. Sluice never reads with another schema than the
 * writer's, so aliases have no other use here.
 */
const nullByDefault = 'null by default'

/** Returns true if a field's default is null. The options of `avroOptions` must have been used. */
export function isNullByDefault({ aliases }: { readonly aliases: readonly string[] }): boolean {
  return aliases.includes(nullByDefault)
}

type AvroOptions = NonNullable<Parameters<typeof Type.forSchema>[1]> & { readonly registry: TypeTable }
type TypeTable = Record<string, Type>

/**
 * Returns the options with which avsc reads one schema and the schemas to which it refers. avsc refuses some
 * schemas that Avro allows. Sluice doesn't need the parts that avsc would refuse, and these options hide them
 * from avsc. avsc changes the schema that it reads.
 */
export function avroOptions(): AvroOptions {
  return {
    logicalTypes,
    registry: createTypeTable(),
    typeHook: hideDefaults,
    // With `always`, avsc accepts a union whose branches look alike in JSON. Sluice's reader never has to
    // distinguish such branches.
    wrapUnions: 'always',
    omitRecordMethods: true,
  }
}

/**
 * Creates avsc's table of named types. For each logical type, avsc copies all names that the table lists. So
 * a schema with thousands of types would take many seconds. This table lists no names.
 */
function createTypeTable(): TypeTable {
  const types = new Map<string | symbol, unknown>()
  return new Proxy<TypeTable>(
    {},
    {
      get: (_target, name) => types.get(name),
      set: (_target, name, type) => types.set(name, type) === types,
    },
  )
}

/**
 * Removes the defaults from the fields of a record before avsc reads them. avsc refuses two kinds of defaults
 * that Avro allows: a default that belongs to a later branch of a union, and a long beyond 2^53. Sluice only
 * has to know which fields are null by default.
 */
function hideDefaults(schema: Schema): undefined {
  if (typeof schema !== 'object' || !('fields' in schema) || !Array.isArray(schema.fields)) return
  for (const field of schema.fields) {
    if (typeof field !== 'object' || field === null) continue
    field.aliases = field.default === null ? [nullByDefault] : []
    delete field.default
  }
}
