import avro, { type Schema } from 'avsc'
import { AvroFault, type Cursor } from './avro-cursor.ts'

/**
 * A logical type whose values become other JSON than the values of the underlying type. avsc builds it in
 * place of the underlying type. The bytes of a value are the same for both types.
 */
export class NamedType extends avro.types.LogicalType {
  readonly logicalName: string
  /** The number of digits after the point of a decimal. `undefined` if the schema has no usable scale. */
  readonly scale: number | undefined

  constructor(schema: Schema, options?: unknown) {
    super(schema, options)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- avsc passes a schema with a logicalType
    const { logicalType, scale = 0 } = schema as { logicalType: string; scale?: unknown }
    this.logicalName = logicalType
    this.scale = typeof scale === 'number' && scale >= 0 && scale <= maxScale ? Math.trunc(scale) : undefined
  }

  // avsc uses these methods only for the default values in a schema. The values of messages are read by
  // `logicalReader`.
  protected override _fromValue(value: unknown): unknown {
    return value
  }

  protected override _toValue(value: unknown): unknown {
    return value
  }

  protected override _resolve(): undefined {
    return undefined
  }
}

/**
 * The logical types for avsc. All other logical types are ignored, as Avro's specification demands: their
 * values are read as values of the underlying type.
 */
export const logicalTypes: Readonly<Record<string, typeof NamedType>> = Object.fromEntries(
  [
    'date',
    'decimal',
    'local-timestamp-micros',
    'local-timestamp-millis',
    'local-timestamp-nanos',
    'time-micros',
    'time-millis',
    'timestamp-micros',
    'timestamp-millis',
    'timestamp-nanos',
    'uuid',
  ].map((name) => [name, NamedType]),
)

/**
 * Returns the reader for the values of a logical type. Returns `undefined` if the name doesn't fit the
 * underlying type, because the logical type then has no meaning. Moments, dates and times become texts in ISO
 * 8601, as in messages. A decimal becomes a number if a number can hold all of its digits. Otherwise it
 * becomes a text.
 */
export function logicalReader(type: NamedType): ((cursor: Cursor) => unknown) | undefined {
  const { logicalName, scale, underlyingType } = type
  switch (underlyingType.typeName) {
    case 'int':
      if (logicalName === 'date') return (cursor) => dateText(cursor.int())
      if (logicalName === 'time-millis') return (cursor) => timeText(cursor.int(), 3)
      return undefined
    case 'long':
      return longReader(logicalName)
    case 'bytes':
      if (logicalName !== 'decimal' || scale === undefined) return undefined
      return (cursor) => decimal(cursor.bytes(), scale)
    default:
      return underlyingType instanceof avro.types.FixedType
        ? fixedReader(logicalName, scale, underlyingType.size)
        : undefined
  }
}

function longReader(logicalName: string): ((cursor: Cursor) => string) | undefined {
  switch (logicalName) {
    case 'time-micros':
      return (cursor) => timeText(cursor.long(), 6)
    case 'timestamp-millis':
      return (cursor) => `${momentText(cursor.long(), 3)}Z`
    case 'timestamp-micros':
      return (cursor) => `${momentText(cursor.long(), 6)}Z`
    case 'timestamp-nanos':
      return (cursor) => `${momentText(cursor.long(), 9)}Z`
    case 'local-timestamp-millis':
      return (cursor) => momentText(cursor.long(), 3)
    case 'local-timestamp-micros':
      return (cursor) => momentText(cursor.long(), 6)
    case 'local-timestamp-nanos':
      return (cursor) => momentText(cursor.long(), 9)
    default:
      return undefined
  }
}

function fixedReader(
  logicalName: string,
  scale: number | undefined,
  size: number,
): ((cursor: Cursor) => unknown) | undefined {
  if (logicalName === 'decimal' && scale !== undefined) return (cursor) => decimal(cursor.fixed(size), scale)
  if (logicalName === 'uuid' && size === uuidBytes) return (cursor) => uuidText(cursor.fixed(size))
  return undefined
}

const dayMs = 86_400_000
const uuidBytes = 16
/**
 * The most bytes of a decimal. A decimal of this size has more digits than any database supports. A limit is
 * needed because the time to format a decimal grows with the square of the number of its digits.
 */
const maxDecimalBytes = 128
const maxScale = 300
/**
 * The most digits of a decimal that becomes a number. `exactScale` is the highest scale of such a decimal.
 * Within these two limits, a double keeps all digits of a decimal.
 */
const exactDigits = 15
const exactScale = 22

/**
 * Formats a moment, such as `2009-11-10T23:00:00.000`. Digits after the milliseconds are written only if they
 * aren't all 0. `digits` is the precision of `value`: 3, 6 or 9 digits after the second.
 */
function momentText(value: number | bigint, digits: number): string {
  if (digits === 3 && typeof value === 'number') return isoText(value).slice(0, -1)
  const perMs = 10n ** BigInt(digits - 3)
  const units = BigInt(value)
  const finer = ((units % perMs) + perMs) % perMs
  const text = isoText(Number((units - finer) / perMs)).slice(0, -1)
  return finer === 0n ? text : text + String(finer).padStart(digits - 3, '0')
}

function timeText(value: number | bigint, digits: number): string {
  if (value < 0 || value >= dayMs * 10 ** (digits - 3)) throw outOfRange('a time of day is over 24 hours')
  return momentText(value, digits).slice('1970-01-01T'.length)
}

function dateText(days: number): string {
  return isoText(days * dayMs).slice(0, -'T00:00:00.000Z'.length)
}

function isoText(ms: number): string {
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) throw outOfRange('a date is too far from now')
  return date.toISOString()
}

/** Decodes a decimal, whose digits are a big-endian integer in two's complement. */
function decimal(bytes: Buffer, scale: number): number | string {
  if (bytes.length > maxDecimalBytes) throw outOfRange(`a decimal has more than ${maxDecimalBytes} bytes`)
  const unscaled =
    bytes.length === 0 ? 0n : BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex')}`))
  const sign = unscaled < 0n ? '-' : ''
  const digits = String(unscaled < 0n ? -unscaled : unscaled)
  const padded = digits.padStart(scale + 1, '0')
  const text = `${sign}${padded.slice(0, padded.length - scale)}${scale > 0 ? `.${padded.slice(-scale)}` : ''}`
  return digits.length <= exactDigits && scale <= exactScale ? Number(text) : text
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

function outOfRange(message: string): AvroFault {
  return new AvroFault('number_out_of_range', message)
}
