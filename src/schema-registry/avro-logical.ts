import { AvroFault, type Cursor } from './avro-cursor.ts'
import type { AvroLogical } from './avro-schema.ts'

/** A type to which a logical type may be added. */
type Annotated =
  | { readonly kind: string; readonly logical?: AvroLogical }
  | { readonly kind: 'fixed'; readonly size: number; readonly logical?: AvroLogical }

/**
 * Returns the reader for the values of a logical type. Returns `undefined` if there is none, or if its name
 * doesn't fit the underlying type. As Avro's specification demands, the values are then read as values of the
 * underlying type. Moments, dates and times become texts in ISO 8601, as in messages. A decimal becomes a
 * number if a number can hold all of its digits. Otherwise it becomes a text.
 */
export function logicalReader(type: Annotated): ((cursor: Cursor) => unknown) | undefined {
  if (type.logical === undefined) return undefined
  const { name } = type.logical
  const scale = usableScale(type.logical.scale)
  switch (type.kind) {
    case 'int':
      if (name === 'date') return (cursor) => dateText(cursor.int())
      if (name === 'time-millis') return (cursor) => timeText(cursor.int(), 3)
      return undefined
    case 'long':
      return longReader(name)
    case 'bytes':
      if (name !== 'decimal' || scale === undefined) return undefined
      return (cursor) => decimal(cursor.bytes(), scale)
    default:
      return 'size' in type ? fixedReader(name, scale, type.size) : undefined
  }
}

function usableScale(scale: unknown): number | undefined {
  return typeof scale === 'number' && scale >= 0 && scale <= maxScale ? Math.trunc(scale) : undefined
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
