import avro, { type Type, type types } from 'avsc'
import { AvroFault, Cursor, mismatch } from './avro-cursor.ts'
import { logicalReader, NamedType } from './avro-logical.ts'
import { isNullByDefault } from './avro-options.ts'
import { type PayloadReader, refuseFramed } from './frame.ts'

/** A function that reads one value. It throws an AvroFault if the value is faulty. */
type Read = (cursor: Cursor) => unknown

/**
 * Creates a reader of Avro's binary encoding. avsc must have made the type with `avroOptions`. The values
 * that the reader reads become JSON:
 *
 * - A null in a field whose default is null is left out, because this is how Avro expresses an absent
 *   optional field. All other nulls stay: in fields without this default, in arrays and in maps.
 * - A union becomes its value, without the name of the branch.
 * - A long beyond 2^53 becomes text, because most receivers would read such a number inexactly.
 * - Bytes and fixed become base64, and an enum becomes its symbol. `logicalReader` describes logical types.
 * - NaN, infinities and strings that aren't UTF-8 are refused.
 *
 * avsc's own decoder would hang on a value that announces an array of 2^50 items, treat `__proto__` as the
 * prototype, refuse large longs and name the branches of some unions.
 */
export function createAvroReader(type: Type): PayloadReader {
  const read = readerOf(type, new Map())
  return (payload) => {
    try {
      const cursor = new Cursor(payload)
      const value = read(cursor)
      if (cursor.left > 0) throw mismatch('bytes are left over')
      return { ok: true, value: Buffer.from(JSON.stringify(value)) }
    } catch (error) {
      if (error instanceof AvroFault) return refuseFramed(error.reason, error.message)
      // The value is nested so deeply that the stack was exhausted.
      if (error instanceof RangeError) return refuseFramed('schema_mismatch', 'it is nested too deeply')
      throw error
    }
  }
}

function readerOf(type: Type, made: Map<Type, Read>): Read {
  const known = made.get(type)
  if (known !== undefined) return known
  // A record type can contain itself. The reader of the inner record then calls the reader that is set below.
  const later: { read: Read } = { read: () => undefined }
  made.set(type, (cursor) => later.read(cursor))
  later.read = makeReader(type, made)
  return later.read
}

function makeReader(type: Type, made: Map<Type, Read>): Read {
  const { RecordType, WrappedUnionType, UnwrappedUnionType, MapType, ArrayType, EnumType, FixedType } =
    avro.types
  if (type instanceof NamedType) return logicalReader(type) ?? readerOf(type.underlyingType, made)
  if (type instanceof RecordType) return recordReader(type, made)
  if (type instanceof WrappedUnionType || type instanceof UnwrappedUnionType) return unionReader(type, made)
  if (type instanceof MapType) return mapReader(readerOf(type.valuesType, made))
  if (type instanceof ArrayType) return arrayReader(readerOf(type.itemsType, made))
  if (type instanceof EnumType) return enumReader(type)
  if (type instanceof FixedType) {
    const { size } = type
    return (cursor) => cursor.fixed(size).toString('base64')
  }
  switch (type.typeName) {
    case 'null':
      return () => null
    case 'boolean':
      return (cursor) => cursor.boolean()
    case 'int':
      return (cursor) => cursor.int()
    case 'long':
      return (cursor) => exactly(cursor.long())
    case 'float':
      return (cursor) => cursor.float()
    case 'double':
      return (cursor) => cursor.double()
    case 'bytes':
      return (cursor) => cursor.bytes().toString('base64')
    case 'string':
      return (cursor) => cursor.text()
    default:
      throw new Error(`its type ${type.typeName} is not known`)
  }
}

function recordReader({ fields }: types.RecordType, made: Map<Type, Read>): Read {
  const members = fields.map((field) => ({
    name: field.name,
    read: readerOf(field.type, made),
    isOptional: isNullByDefault(field),
  }))
  return (cursor) => {
    const record = {}
    cursor.countFields(members.length)
    for (const { name, read, isOptional } of members) {
      const value = read(cursor)
      if (value !== null || !isOptional) put(record, name, value)
    }
    return record
  }
}

function unionReader({ types: branches }: { readonly types: readonly Type[] }, made: Map<Type, Read>): Read {
  const readers = branches.map((branch) => readerOf(branch, made))
  return (cursor) => {
    const read = readers[cursor.integer()]
    if (read === undefined) throw mismatch('a union has no such branch')
    return read(cursor)
  }
}

function mapReader(read: Read): Read {
  return (cursor) => {
    const map = {}
    for (let left = cursor.blockLength(); left > 0; left = cursor.blockLength()) {
      for (; left > 0; left--) {
        const key = cursor.text()
        put(map, key, read(cursor))
      }
    }
    return map
  }
}

function arrayReader(read: Read): Read {
  return (cursor) => {
    const items: unknown[] = []
    for (let left = cursor.blockLength(); left > 0; left = cursor.blockLength()) {
      for (; left > 0; left--) items.push(read(cursor))
    }
    return items
  }
}

function enumReader({ symbols }: types.EnumType): Read {
  return (cursor) => {
    const symbol = symbols[cursor.integer()]
    if (symbol === undefined) throw mismatch('an enum has no such symbol')
    return symbol
  }
}

/**
 * Sets a field. An assignment to `__proto__` would set the prototype, so a field of this name is defined as a
 * property.
 */
function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function exactly(value: number | bigint): number | string {
  return typeof value === 'bigint' ? String(value) : value
}
