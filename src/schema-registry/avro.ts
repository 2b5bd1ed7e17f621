import { AvroFault, Cursor, mismatch } from './avro-cursor.ts'
import { logicalReader } from './avro-logical.ts'
import type { AvroField, AvroPrimitive, AvroType } from './avro-schema.ts'
import { type PayloadReader, refuseFramed } from './frame.ts'

/** A function that reads one value. It throws an AvroFault if the value is faulty. */
type Read = (cursor: Cursor) => unknown

/**
 * Creates a reader of Avro's binary encoding, for the values of a type. The values that the reader reads
 * become JSON:
 *
 * - A null in a field whose default is null is left out, because this is how Avro expresses an absent
 *   optional field. All other nulls stay: in fields without this default, in arrays and in maps.
 * - A union becomes its value, without the name of the branch.
 * - A long beyond 2^53 becomes text, because most receivers would read such a number inexactly.
 * - Bytes and fixed become base64, and an enum becomes its symbol. `logicalReader` describes logical types.
 * - NaN, infinities and strings that aren't UTF-8 are refused.
 */
export function createAvroReader(type: AvroType): PayloadReader {
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

function readerOf(type: AvroType, made: Map<AvroType, Read>): Read {
  const known = made.get(type)
  if (known !== undefined) return known
  // A record type can contain itself. The reader of the inner record then calls the reader that is set below.
  const later: { read: Read } = { read: () => undefined }
  made.set(type, (cursor) => later.read(cursor))
  later.read = makeReader(type, made)
  return later.read
}

function makeReader(type: AvroType, made: Map<AvroType, Read>): Read {
  switch (type.kind) {
    case 'record':
      return recordReader(type.fields, made)
    case 'union':
      return unionReader(type.branches, made)
    case 'map':
      return mapReader(readerOf(type.items, made))
    case 'array':
      return arrayReader(readerOf(type.items, made))
    case 'enum':
      return enumReader(type.symbols)
    case 'fixed': {
      const { size } = type
      return logicalReader(type) ?? ((cursor) => cursor.fixed(size).toString('base64'))
    }
    default:
      return logicalReader(type) ?? primitives[type.kind]
  }
}

const primitives: Readonly<Record<AvroPrimitive, Read>> = {
  null: () => null,
  boolean: (cursor) => cursor.boolean(),
  int: (cursor) => cursor.int(),
  long: (cursor) => exactly(cursor.long()),
  float: (cursor) => cursor.float(),
  double: (cursor) => cursor.double(),
  bytes: (cursor) => cursor.bytes().toString('base64'),
  string: (cursor) => cursor.text(),
}

function recordReader(fields: readonly AvroField[], made: Map<AvroType, Read>): Read {
  const members = fields.map(({ name, type, isNullByDefault }) => ({
    name,
    read: readerOf(type, made),
    isOptional: isNullByDefault,
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

function unionReader(branches: readonly AvroType[], made: Map<AvroType, Read>): Read {
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

function enumReader(symbols: readonly string[]): Read {
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
