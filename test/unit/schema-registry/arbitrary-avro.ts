import * as fc from 'fast-check'

type Schema = string | object

/** A schema, a value in avsc's form, and the JSON that it stands for. */
export type AvroCase = { schema: Schema; value: unknown; json: unknown }

/**
 * A type before its names are given. Names come later, because each named type of a schema needs a different
 * one.
 */
type Shape =
  | { kind: 'null' | 'boolean' | 'int' | 'long' | 'double' | 'string' | 'bytes' }
  | { kind: 'enum' | 'fixed'; size: number }
  | { kind: 'array' | 'map'; of: Shape }
  | { kind: 'union'; branches: Shape[] }
  | { kind: 'record'; fields: { of: Shape; isOptional: boolean }[] }

const { shape } = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ kind: fc.constantFrom('null', 'boolean', 'int', 'long', 'double', 'string', 'bytes') }),
    fc.record({ kind: fc.constantFrom('enum', 'fixed'), size: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constantFrom('array', 'map'), of: tie('shape') }),
    fc.record({
      kind: fc.constant('union'),
      branches: fc.array(tie('shape'), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({
      kind: fc.constant('record'),
      fields: fc.array(fc.record({ of: tie('shape'), isOptional: fc.boolean() }), { maxLength: 4 }),
    }),
  ),
}))

type Built = { schema: Schema; branch: string; values: fc.Arbitrary<{ value: unknown; json: unknown }> }

const keys = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', '', '0'))

/** Returns a type whose values are the same in JSON. */
function same(schema: string, values: fc.Arbitrary<unknown>): Built {
  return { schema, branch: schema, values: values.map((value) => ({ value, json: value })) }
}

/** Returns the type for a shape. The same shape always gives the same schema. */
function build(of: Shape, names: { count: number }): Built {
  switch (of.kind) {
    case 'null':
      return same('null', fc.constant(null))
    case 'boolean':
      return same('boolean', fc.boolean())
    case 'int':
      return same('int', fc.integer())
    case 'long':
      // avsc writes these numbers without a rounding error.
      return same('long', fc.integer({ min: -(2 ** 52), max: 2 ** 52 }))
    case 'double':
      return same(
        'double',
        fc
          .double({ noNaN: true, noDefaultInfinity: true })
          .map((number) => (Object.is(number, -0) ? 0 : number)),
      )
    case 'string':
      return same('string', fc.string({ unit: 'grapheme' }))
    case 'bytes': {
      const values = fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes))
      return {
        schema: 'bytes',
        branch: 'bytes',
        values: values.map((value) => ({ value, json: value.toString('base64') })),
      }
    }
    case 'enum': {
      const branch = `T${names.count++}`
      const symbols = Array.from({ length: of.size }, (_, index) => `S${index}`)
      const values = fc.constantFrom(...symbols).map((value) => ({ value, json: value }))
      return { schema: { type: 'enum', name: branch, symbols }, branch, values }
    }
    case 'fixed': {
      const branch = `T${names.count++}`
      const values = fc
        .uint8Array({ minLength: of.size, maxLength: of.size })
        .map((bytes) => Buffer.from(bytes))
        .map((value) => ({ value, json: value.toString('base64') }))
      return { schema: { type: 'fixed', name: branch, size: of.size }, branch, values }
    }
    case 'array': {
      const { schema, values } = build(of.of, names)
      return {
        schema: { type: 'array', items: schema },
        branch: 'array',
        values: fc
          .array(values, { maxLength: 4 })
          .map((items) => ({ value: items.map(({ value }) => value), json: items.map(({ json }) => json) })),
      }
    }
    case 'map': {
      const { schema, values } = build(of.of, names)
      return {
        schema: { type: 'map', values: schema },
        branch: 'map',
        values: fc
          .uniqueArray(fc.tuple(keys, values), { maxLength: 4, selector: ([key]) => key })
          .map((entries) => ({
            value: objectOf(entries.map(([key, { value }]) => [key, value])),
            json: objectOf(entries.map(([key, { json }]) => [key, json])),
          })),
      }
    }
    case 'union': {
      const branches = new Map<string, Built>()
      // A union holds no other union, and no branch twice.
      for (const branch of of.branches) {
        if (branch.kind === 'union') continue
        const built = build(branch, names)
        if (!branches.has(built.branch)) branches.set(built.branch, built)
      }
      if (branches.size === 0) return build({ kind: 'union', branches: [{ kind: 'null' }] }, names)
      const all = [...branches.values()]
      return {
        schema: all.map(({ schema }) => schema),
        branch: 'union',
        values: fc.oneof(
          ...all.map(({ branch, values }) =>
            values.map(({ value, json }) => ({
              value: branch === 'null' ? null : { [branch]: value },
              json,
            })),
          ),
        ),
      }
    }
    case 'record': {
      const branch = `T${names.count++}`
      const fields = of.fields.map(({ of: inner, isOptional }, index) => {
        const name = `f${index}`
        const built = build(isOptional ? optional(inner) : inner, names)
        return { name, isOptional, ...built }
      })
      const schema = {
        type: 'record',
        name: branch,
        fields: fields.map(({ name, isOptional, schema: type }) => ({
          name,
          type,
          ...(isOptional && { default: null }),
        })),
      }
      const values = fc.tuple(...fields.map(({ values: each }) => each)).map((members) => ({
        value: objectOf(members.map(({ value }, index) => [`f${index}`, value])),
        json: objectOf(
          members.flatMap(({ json }, index) =>
            json === null && fields[index]?.isOptional ? [] : [[`f${index}`, json] as const],
          ),
        ),
      }))
      return { schema: schema, branch, values }
    }
  }
}

function optional(of: Shape): Shape {
  const branches = of.kind === 'union' ? of.branches : [of]
  return { kind: 'union', branches: [{ kind: 'null' }, ...branches] }
}

/** Returns an object with these entries as its own properties, whatever they are called. */
function objectOf(entries: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(entries)
}

export const arbitraryAvro: fc.Arbitrary<AvroCase> = shape.chain((of) => {
  const { schema, values } = build(of, { count: 0 })
  return values.map(({ value, json }) => ({ schema, value, json }))
})
