/**
 * What a delivery carries from topic to topic while it waits: the headers of records in `retry.*` and
 * `dead-letters`. The message itself is the record's value and isn't touched.
 */

/** The record that a delivery began with. */
export type Origin = { topic: string; partition: number; offset: number }

export type Carried = {
  sourceId: string
  destinationId: string
  messageId: string
  /** The message's `type`. */
  kind: string
  /** The rung that the delivery takes next. */
  nextRung: number
  /** Requests rounds made so far; a record that only waited has none. */
  attempts: number
  /** When the origin record was appended, in epoch milliseconds. */
  firstSeenMs: number
  /** When the last try may be due; 0 until the first attempt. */
  expiresAtMs: number
  /** Hooks that failed for good: they are not tried again. */
  failedHooks: readonly string[]
  /** Hooks that asked for a wait, with the epoch milliseconds before which they aren't tried. */
  notBeforeMs: ReadonlyMap<string, number>
  lastOutcome: string
  origin: Origin
}

export type CarriedHeaders = Record<string, string>

/** Header values as the Kafka client gives them. */
export type ReceivedHeaders =
  | Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>>
  | undefined

export function encodeCarried(carried: Carried): CarriedHeaders {
  const { origin } = carried
  const headers: CarriedHeaders = {
    'source-id': carried.sourceId,
    'destination-id': carried.destinationId,
    'message-id': carried.messageId,
    'message-type': carried.kind,
    rung: String(carried.nextRung),
    attempts: String(carried.attempts),
    'first-seen': String(carried.firstSeenMs),
    'expires-at': String(carried.expiresAtMs),
    origin: `${origin.topic}/${origin.partition}/${origin.offset}`,
  }
  if (carried.failedHooks.length > 0) headers['failed-hooks'] = JSON.stringify(carried.failedHooks)
  if (carried.notBeforeMs.size > 0) headers['not-before'] = JSON.stringify([...carried.notBeforeMs])
  if (carried.lastOutcome !== '') headers['last-outcome'] = carried.lastOutcome
  return headers
}

export type Decoded = { ok: true; carried: Carried } | { ok: false; detail: string }

/** Reads what `encodeCarried` wrote. A record that somebody else put on a retry topic is told by its faults. */
export function decodeCarried(headers: ReceivedHeaders): Decoded {
  const faults: string[] = []
  const text = (name: string): string => {
    const value = headerText(headers, name)
    if (value === undefined) faults.push(`${name} is missing`)
    return value ?? ''
  }
  const count = (name: string): number => {
    const value = Number(text(name))
    if (!Number.isSafeInteger(value) || value < 0) faults.push(`${name} is not a whole number`)
    return value
  }
  const carried: Carried = {
    sourceId: text('source-id'),
    destinationId: text('destination-id'),
    messageId: text('message-id'),
    kind: text('message-type'),
    nextRung: count('rung'),
    attempts: count('attempts'),
    firstSeenMs: count('first-seen'),
    expiresAtMs: count('expires-at'),
    failedHooks: readJson(headers, 'failed-hooks', isStringList, [], faults),
    notBeforeMs: new Map(readJson(headers, 'not-before', isTimeList, [], faults)),
    lastOutcome: headerText(headers, 'last-outcome') ?? '',
    origin: readOrigin(text('origin'), faults),
  }
  return faults.length === 0 ? { ok: true, carried } : { ok: false, detail: `headers: ${faults.join(', ')}` }
}

/** The value of a header as UTF-8 text; the first one where it is repeated. */
export function headerText(headers: ReceivedHeaders, name: string): string | undefined {
  const value = headers?.[name]
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined ? undefined : first.toString()
}

function readJson<T>(
  headers: ReceivedHeaders,
  name: string,
  isValid: (value: unknown) => value is T,
  absent: T,
  faults: string[],
): T {
  const text = headerText(headers, name)
  if (text === undefined) return absent
  try {
    const value: unknown = JSON.parse(text)
    if (isValid(value)) return value
  } catch {
    // Told below, like a value of a wrong shape.
  }
  faults.push(`${name} can't be read`)
  return absent
}

function isStringList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function isTimeList(value: unknown): value is [string, number][] {
  return (
    Array.isArray(value) &&
    value.every((item) => Array.isArray(item) && typeof item[0] === 'string' && Number.isSafeInteger(item[1]))
  )
}

function readOrigin(text: string, faults: string[]): Origin {
  const match = /^(.+)\/(\d+)\/(\d+)$/.exec(text)
  if (match === null) {
    if (text !== '') faults.push("origin can't be read")
    return { topic: '', partition: 0, offset: 0 }
  }
  return { topic: match[1] ?? '', partition: Number(match[2]), offset: Number(match[3]) }
}
