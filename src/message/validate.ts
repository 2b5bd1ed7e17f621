import {
  kindChecks,
  fieldRulesOf,
  MAX_MESSAGE_ID_CHARACTERS,
  messageKinds,
  type Message,
  type MessageKind,
} from './message-schemas.ts'
import type { RefusalReason } from './dead-letter-reasons.ts'
import { parseTimestamp } from './timestamp.ts'

/**
 * The refusal of a message. `detail` tells the producer in one sentence what is wrong and what to do. It
 * never quotes the message.
 */
export type Refusal = { ok: false; reason: RefusalReason; detail: string }

/**
 * The result of a check. `timestampMs` is the message's `timestamp` in milliseconds since 1970. It is
 * `undefined` if the message has no timestamp.
 */
export type Validated = { ok: true; message: Message; timestampMs: number | undefined } | Refusal

/** Checks one parsed message against the event schema and the calendar. Changes nothing and never throws. */
export function validate(message: unknown): Validated {
  if (!isObject(message)) return refuse('not_an_object', 'Send a message as one JSON object.')
  const kind = message['type']
  if (!isKind(kind)) return refuse('unknown_type', `Set type to one of ${messageKinds.join(', ')}.`)
  if (!isMessage(kind, message)) return findFault(kind, message)

  if (isAbsent(message.timestamp)) return { ok: true, message, timestampMs: undefined }
  const timestampMs = parseTimestamp(message.timestamp)
  return timestampMs === undefined ? badTimestamp() : { ok: true, message, timestampMs }
}

/**
 * Returns true for null, for an empty string, and for a field that isn't present. All three have the same
 * meaning.
 */
export function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === ''
}

export function refuse(reason: RefusalReason, detail: string): Refusal {
  return { ok: false, reason, detail }
}

type JsonObject = { [field: string]: unknown }

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const kinds: ReadonlySet<unknown> = new Set(messageKinds)

function isKind(value: unknown): value is MessageKind {
  return kinds.has(value)
}

function isMessage(kind: MessageKind, message: JsonObject): message is JsonObject & Message {
  return kindChecks[kind].Check(message)
}

/**
 * Returns the field that breaks the rules of a kind: first those that are missing, and then the others in the
 * order of the schema.
 */
function faultyField(kind: MessageKind, message: JsonObject): string | undefined {
  const { required, fields, someOf } = fieldRulesOf(kind)
  return (
    required.find((field) => message[field] === undefined) ??
    fields.find(([field, check]) => message[field] !== undefined && !check.Check(message[field]))?.[0] ??
    someOf.find((names) => names.every((name) => isAbsent(message[name])))?.[0]
  )
}

/** Turns the first fault of a message into a refusal. */
function findFault(kind: MessageKind, message: JsonObject): Refusal {
  const field = faultyField(kind, message)
  switch (field) {
    case 'userId':
    case 'anonymousId':
    case 'User ID':
      return isAbsent(message[field]) ? noUser(kind) : idNotString(field)
    case 'previousId':
    case 'Previous ID':
      return isAbsent(message[field])
        ? refuse('no_previous_id', 'Set previousId: an alias message needs the id that was used so far.')
        : idNotString(field)
    case 'groupId':
      return isAbsent(message[field])
        ? refuse('group_id_not_defined', 'Set groupId: a group message needs it.')
        : idNotString(field)
    case 'event':
      return isAbsent(message[field])
        ? refuse('event_not_defined', 'Set event to the name of the event: a track message needs it.')
        : refuse('event_not_string', 'Send event as a string.')
    case 'properties':
      return refuse('properties_not_object', 'Send properties as an object, or leave it out.')
    case 'traits':
      return refuse('traits_not_object', 'Send traits as an object, or leave it out.')
    case 'context':
      return refuse('context_not_object', 'Send context as an object, or leave it out.')
    case 'integrations':
      return refuse('integrations_not_object', 'Send integrations as an object, or leave it out.')
    case 'messageId':
      return typeof message[field] === 'string'
        ? refuse(
            'message_id_too_long',
            `Send a messageId of at most ${MAX_MESSAGE_ID_CHARACTERS} characters.`,
          )
        : refuse('message_id_not_string', 'Send messageId as a string, or leave it out.')
    case 'timestamp':
      return badTimestamp()
    default:
      throw new Error(`the event schema checks a field that has no refusal reason: ${field}`)
  }
}

function noUser(kind: MessageKind): Refusal {
  const needed = kind === 'alias' || kind === 'delete' ? 'userId' : 'userId or anonymousId'
  return refuse(
    'no_user_anon_id',
    `Set ${needed} to a string that isn't empty: ${article(kind)} message needs it.`,
  )
}

function idNotString(field: string): Refusal {
  return refuse('id_not_string', `Send ${field} as a string.`)
}

function badTimestamp(): Refusal {
  return refuse(
    'bad_timestamp',
    'Send timestamp as ISO 8601, such as 2009-11-10T23:00:00.000Z, or leave it out.',
  )
}

function article(kind: MessageKind): string {
  return kind === 'identify' || kind === 'alias' ? `an ${kind}` : `a ${kind}`
}
