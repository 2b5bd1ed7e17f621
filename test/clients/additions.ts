import { fieldOf, isObject, type JsonObject, type SentMessage } from './sent-message.ts'

/**
 * Fields that a message has to have when it arrives. If a field's value is `undefined`, the message must not
 * have the field.
 */
type Addition = { what: string; fields: (sent: SentMessage, arrived: JsonObject) => JsonObject }

const attributesOf: ReadonlyMap<string, string> = new Map([
  ['identify', 'traits'],
  ['group', 'traits'],
  ['track', 'properties'],
  ['page', 'properties'],
  ['screen', 'properties'],
])

/**
 * All differences between a message at the webhook and the message that the client sent. All other fields
 * have to be the same.
 */
const additions: readonly Addition[] = [
  {
    what: 'version, where it has none',
    fields: ({ message }) => ({ version: fieldOf(message, 'version') ?? 1 }),
  },
  {
    what: 'type, where a single call has none: that of its path',
    fields: ({ message, kind }) => ({ type: kind ?? fieldOf(message, 'type') }),
  },
  {
    what: 'messageId, where it has none: any',
    fields: ({ message }, arrived) => {
      const any = fieldOf(arrived, 'messageId')
      const isAny = typeof any === 'string' && any.length > 0
      return { messageId: fieldOf(message, 'messageId') ?? (isAny ? any : 'any') }
    },
  },
  {
    what: 'receivedAt: when the gateway had the request',
    fields: ({ exchange }, arrived) => {
      const receivedAt = fieldOf(arrived, 'receivedAt')
      const atMs = isCanonicalTime(receivedAt) ? Date.parse(receivedAt) : Number.NaN
      const isThen = atMs >= exchange.startedMs - clockSlackMs && atMs <= exchange.answer.atMs + clockSlackMs
      return { receivedAt: isThen ? receivedAt : 'a time between the request and its answer' }
    },
  },
  {
    what: 'timestamp, corrected if the clock is a second off: receivedAt − (sentAt − timestamp); receivedAt where it has none',
    fields: (sent, arrived) => ({ timestamp: correctedTime(sent, fieldOf(arrived, 'receivedAt')) }),
  },
  {
    what: 'originalTimestamp, where it has none: timestamp as it was sent',
    fields: ({ message }) => ({
      originalTimestamp: fieldOf(message, 'originalTimestamp') ?? fieldOf(message, 'timestamp'),
    }),
  },
  {
    what: 'sentAt, where it has none: that of the batch',
    fields: (sent) => ({ sentAt: sentAtOf(sent) }),
  },
  {
    what: 'context, also without a field: that of the batch, field by field, where it has none of its own; ip: the address of its client, where neither has one',
    fields: ({ message, shared }) => ({
      context: { ip: clientAddress, ...asFields(shared.context), ...asFields(fieldOf(message, 'context')) },
    }),
  },
  {
    what: 'properties or traits, where its kind has them and it has none: no fields',
    fields: ({ message, kind }) => {
      const field = attributesOf.get(String(kind ?? fieldOf(message, 'type')))
      return field === undefined ? {} : { [field]: fieldOf(message, field) ?? {} }
    },
  },
  {
    what: 'integrations: those of the batch, field by field, where it has none of its own',
    fields: ({ message, shared }) => {
      const own = fieldOf(message, 'integrations')
      return {
        integrations: isObject(shared.integrations) ? { ...shared.integrations, ...asFields(own) } : own,
      }
    },
  },
  {
    what: 'the ids of an alias under the names of the webhook page too',
    fields: ({ message, kind }) =>
      (kind ?? fieldOf(message, 'type')) === 'alias'
        ? { 'User ID': fieldOf(message, 'userId'), 'Previous ID': fieldOf(message, 'previousId') }
        : {},
  },
  {
    what: 'the write key is taken out',
    fields: () => ({ writeKey: undefined }),
  },
]

/** The address of all clients, because the programs of these tests run on this machine. */
const clientAddress = '127.0.0.1'

/**
 * The tolerance for times, in milliseconds. All times come from this machine's clock, but they aren't read at
 * the same moment.
 */
const clockSlackMs = 5

/** Returns the fields that arrived with a wrong value, in words. Returns an empty list if all are right. */
export function faultsOf(sent: SentMessage, arrived: JsonObject): string[] {
  const added = additions.flatMap(({ fields }) => Object.entries(fields(sent, arrived)))
  const due = Object.fromEntries([...Object.entries(sent.message), ...added])
  return [...differences(due, arrived, [])]
}

function* differences(due: unknown, arrived: unknown, path: readonly string[]): Generator<string> {
  if (isObject(due) && isObject(arrived)) {
    for (const name of new Set([...Object.keys(due), ...Object.keys(arrived)])) {
      yield* differences(fieldOf(due, name), fieldOf(arrived, name), [...path, name])
    }
  } else if (Array.isArray(due) && Array.isArray(arrived) && due.length === arrived.length) {
    for (const [index, item] of due.entries()) {
      yield* differences(item, arrived[index], [...path, String(index)])
    }
  } else if (due !== arrived) {
    yield `${path.join('.')} is ${show(arrived)} and has to be ${show(due)}`
  }
}

/**
 * Returns the `timestamp` that has to arrive. Rudder's client writes the time of the call into
 * `originalTimestamp`. It writes `timestamp` only if the caller gave a time.
 */
function correctedTime(sent: SentMessage, receivedAt: unknown): unknown {
  const own = fieldOf(sent.message, 'timestamp') ?? fieldOf(sent.message, 'originalTimestamp')
  if (own === undefined) return receivedAt
  const sentAt = sentAtOf(sent)
  const differenceMs = sentAt === undefined ? 0 : timeOf(receivedAt) - timeOf(sentAt)
  // A smaller difference may be the time that the request was under way.
  const skewMs = Math.abs(differenceMs) < 1_000 ? 0 : differenceMs
  const atMs = timeOf(own) + skewMs
  return Number.isNaN(atMs) ? 'a time' : new Date(atMs).toISOString()
}

function sentAtOf({ message, shared }: SentMessage): unknown {
  return fieldOf(message, 'sentAt') ?? shared.sentAt
}

/** Returns a time in epoch milliseconds. Cuts off fractions of a millisecond. */
function timeOf(text: unknown): number {
  return Date.parse(String(text))
}

function isCanonicalTime(value: unknown): value is string {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)
}

function asFields(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
