export type HeaderValue = Buffer | string | null

/**
 * The headers of a record, as the Kafka client returns them. A value can be null. If a header is repeated,
 * its value is a list.
 */
export type ReceivedHeaders = Readonly<Record<string, HeaderValue | HeaderValue[] | undefined>> | undefined

/** The place of the record from which another record was made. */
export type OriginPlace = { topic: string; partition: number; offset: number }

/**
 * Returns the value of a header. If the header is repeated, returns the first value. Null counts as absent.
 */
export function headerValue(headers: ReceivedHeaders, name: string): Buffer | string | undefined {
  const value = headers?.[name]
  const first = Array.isArray(value) ? value[0] : value
  return first ?? undefined
}

/**
 * Returns the value of a header as UTF-8 text. If the header is repeated, returns the first value. Null
 * counts as absent.
 */
export function headerText(headers: ReceivedHeaders, name: string): string | undefined {
  return headerValue(headers, name)?.toString()
}

/**
 * The `source-id` that was decoded last. Consecutive records mostly have the same source, so its id doesn't
 * have to be decoded for each record.
 */
let lastSourceId = ''

/**
 * Returns the id of a record's source, from the header `source-id`. If the header is repeated, the first
 * value counts. A first value that is null or empty counts as a missing header, whatever follows. All parts
 * of Sluice use this function, so they agree about the source.
 */
export function sourceIdOf(headers: ReceivedHeaders): string | undefined {
  const value = headerValue(headers, 'source-id')
  if (value === undefined || value.length === 0) return undefined
  if (typeof value === 'string') return value
  if (!isAscii(value, lastSourceId)) lastSourceId = value.toString()
  return lastSourceId
}

/** Returns true if the bytes are the characters of the text, and all of them are ASCII. */
function isAscii(bytes: Buffer, text: string): boolean {
  if (bytes.length !== text.length) return false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte > 0x7f || byte !== text.charCodeAt(at)) return false
  }
  return true
}

/** Reads the value of a header `origin`, which has the form topic/partition/offset. */
export function parseOrigin(text: string): OriginPlace | undefined {
  const match = /^(.+)\/(\d+)\/(\d+)$/.exec(text)
  const partition = parseWholeNumber(match?.[2] ?? '')
  const offset = parseWholeNumber(match?.[3] ?? '')
  if (partition === undefined || offset === undefined) return undefined
  return { topic: match?.[1] ?? '', partition, offset }
}

/** Reads digits as a safe integer. Returns `undefined` for any other text. */
export function parseWholeNumber(text: string): number | undefined {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}

/** A property of one user, and the version of its value. */
export type PropertyHeader = {
  readonly userId: string
  readonly spaceId: string
  readonly property: string
  /**
   * The version since which the property has this value. Compare such texts only for equality, not for order.
   */
  readonly since: string
}
