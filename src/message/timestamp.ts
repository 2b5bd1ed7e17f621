import { isDigit } from './json/canonical-number.ts'

const MINUTE_MS = 60_000
const FOUR_CENTURIES_MS = 146_097 * 24 * 60 * MINUTE_MS
const EARLIEST_MS = -62_167_219_200_000 // 0000-01-01T00:00:00.000Z
const LATEST_MS = 253_402_300_799_999 // 9999-12-31T23:59:59.999Z

/**
 * The spellings that `parseTimestamp` reads, as the pattern of a JSON Schema. They are the spellings of RFC
 * 3339, and other spellings that clients send: a zone without a colon or without minutes, a date without a
 * time, and a time without seconds or without a zone. The pattern also accepts days that a month doesn't
 * have.
 */
export const timestampPattern =
  '^\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])' +
  '(?:[Tt ](?:[01]\\d|2[0-3]):[0-5]\\d(?::(?:[0-5]\\d|60)(?:[.,]\\d+)?)?' +
  '(?:[Zz]|[+-](?:[01]\\d|2[0-3])(?::?[0-5]\\d)?)?)?$'

/**
 * Parses an ISO 8601 timestamp. Returns milliseconds since 1970, or `undefined` if the text isn't such a
 * timestamp. Cuts off fractions of a millisecond. Reads a text without a zone as UTC, a date without a time
 * as the start of the day, and second 60 (RFC 3339) as second 0 of the next minute. The result is always
 * within the years 0000 to 9999 in UTC, so that `formatTimestamp` can write it.
 */
export function parseTimestamp(text: string): number | undefined {
  const year = digits(text, 0, 4)
  const month = digits(text, 5, 7)
  const day = digits(text, 8, 10)
  if (text[4] !== '-' || text[7] !== '-' || !isDate(year, month, day)) return undefined
  if (text.length === 10) return utc(year, month, day, 0)

  const separator = text[10]
  if (separator !== 'T' && separator !== 't' && separator !== ' ') return undefined
  const hour = digits(text, 11, 13)
  const minute = digits(text, 14, 16)
  if (text[13] !== ':' || !(hour <= 23) || !(minute <= 59)) return undefined
  let timeMs = (hour * 60 + minute) * MINUTE_MS
  let at = 16
  if (text[at] === ':') {
    const second = digits(text, at + 1, at + 3)
    if (!(second <= 60)) return undefined
    timeMs += second * 1000
    at += 3
    if (text[at] === '.' || text[at] === ',') {
      const first = at + 1
      at = endOfDigits(text, first)
      if (at === first) return undefined
      timeMs += Number(text.slice(first, Math.min(at, first + 3)).padEnd(3, '0'))
    }
  }
  const offsetMinutes = zoneOffset(text, at)
  return offsetMinutes === undefined ? undefined : utc(year, month, day, timeMs - offsetMinutes * MINUTE_MS)
}

// A cache of the minutes that were written last, with their texts. The index of a minute is its number modulo
// `keptMinutes`. Messages come roughly in the order of their times, so most messages have the same minute as
// the message before. The same is true for their times of arrival.

const keptMinutes = 64
const writtenMinutes = new Float64Array(keptMinutes).fill(Number.NaN)
const minuteTexts: string[] = Array.from({ length: keptMinutes }, () => '')

const secondTexts = Array.from({ length: 60 }, (_, second) => `${String(second).padStart(2, '0')}.`)
const milliTexts = Array.from({ length: 1_000 }, (_, milli) => `${String(milli).padStart(3, '0')}Z`)

/**
 * Formats a time as `YYYY-MM-DDTHH:mm:ss.sssZ`. Returns `undefined` if the time isn't within the years 0000
 * to 9999.
 */
export function formatTimestamp(ms: number): string | undefined {
  if (!isWritable(ms)) return undefined
  const wholeMs = Math.trunc(ms)
  const minute = Math.floor(wholeMs / MINUTE_MS)
  const minuteMs = minute * MINUTE_MS
  const place = Math.abs(minute % keptMinutes)
  if (writtenMinutes[place] !== minute) {
    minuteTexts[place] = new Date(minuteMs).toISOString().slice(0, 17)
    writtenMinutes[place] = minute
  }
  const restMs = wholeMs - minuteMs
  return `${minuteTexts[place]}${secondTexts[Math.floor(restMs / 1_000)]}${milliTexts[restMs % 1_000]}`
}

/**
 * Returns true if a text has the spelling of `formatTimestamp`. `parseTimestamp` must have accepted the text.
 */
export function isCanonicalTimestamp(readable: string): boolean {
  return (
    readable.length === 24 &&
    readable[10] === 'T' &&
    readable[17] !== '6' &&
    readable[19] === '.' &&
    readable[23] === 'Z'
  )
}

/** Returns true if bytes[from, to) are the rest of a text that `formatTimestamp` has made, `ss.sssZ`. */
export function areCanonicalSeconds(bytes: Uint8Array, from: number, to: number): boolean {
  const tens = bytes[from] ?? 0
  return (
    to - from === 'ss.sssZ'.length &&
    tens >= zero &&
    tens < zero + 6 &&
    isDigit(bytes[from + 1]) &&
    bytes[from + 2] === point &&
    isDigit(bytes[from + 3]) &&
    isDigit(bytes[from + 4]) &&
    isDigit(bytes[from + 5]) &&
    bytes[from + 6] === letterZ
  )
}

const zero = 0x30
const point = 0x2e
const letterZ = 0x5a

/** Returns the number that text[from, to) spells, or NaN if these characters aren't all digits. */
function digits(text: string, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (!(digit >= 0 && digit <= 9)) return Number.NaN
    value = value * 10 + digit
  }
  return value
}

function endOfDigits(text: string, from: number): number {
  let at = from
  while (!Number.isNaN(digits(text, at, at + 1))) at += 1
  return at
}

/** Returns true if a date exists. If one of the numbers is NaN, returns false. */
function isDate(year: number, month: number, day: number): boolean {
  return year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month)
}

function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/**
 * Returns the offset of the zone in minutes east of UTC. The zone is the text from `at` on. If this text is
 * no zone, returns `undefined`.
 */
function zoneOffset(text: string, at: number): number | undefined {
  const sign = text[at]
  if (sign === undefined) return 0
  if (sign === 'Z' || sign === 'z') return text.length === at + 1 ? 0 : undefined
  if (sign !== '+' && sign !== '-') return undefined
  const hours = digits(text, at + 1, at + 3)
  const minutesAt = text[at + 3] === ':' ? at + 4 : at + 3
  const minutes = text.length === at + 3 ? 0 : digits(text, minutesAt, minutesAt + 2)
  const end = text.length === at + 3 ? at + 3 : minutesAt + 2
  if (text.length !== end || !(hours <= 23) || !(minutes <= 59)) return undefined
  return (sign === '-' ? -1 : 1) * (hours * 60 + minutes)
}

/**
 * Returns milliseconds since 1970, or `undefined` if the time isn't within the years 0000 to 9999. Computes
 * the same day 400 years later, and then subtracts the 400 years, because `Date.UTC` treats the years 0 to 99
 * as 1900 to 1999.
 */
function utc(year: number, month: number, day: number, timeMs: number): number | undefined {
  const ms = Date.UTC(year + 400, month - 1, day) - FOUR_CENTURIES_MS + timeMs
  return isWritable(ms) ? ms : undefined
}

function isWritable(ms: number): boolean {
  return ms >= EARLIEST_MS && ms <= LATEST_MS
}
