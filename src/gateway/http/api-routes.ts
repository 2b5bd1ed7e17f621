import { type TSchema, Type } from 'typebox'
import { propertyChange } from '../../message/audience-change.ts'
import { MAX_MESSAGE_ID_CHARACTERS } from '../../message/message-schemas.ts'
import type { ProblemCode } from '../calls/answer.ts'
import { maxBatchBytes, maxBatchMessages, maxMessageBytes } from '../messages/request-limits.ts'
import type { CallName } from '../calls/gateway-events.ts'
import { rejectedReasons } from '../messages/reasons.ts'
import { maxRejectedNamed } from '../calls/message-outcomes.ts'

/**
 * A call of the gateway. The server's routes and the OpenAPI document are made from the list of these calls.
 * The schemas show what clients should send. The gateway accepts more than that (docs/gateway.md).
 */
export type ApiRoute = {
  readonly call: CallName
  /**
   * The paths of the call. A request to any of them has the same effect. Clients should use the first path.
   */
  readonly paths: readonly [string, ...string[]]
  readonly summary: string
  readonly description: string
  /** The kind of key that the call needs. */
  readonly key: 'write' | 'server' | 'none'
  readonly body: TSchema
  readonly answer: TSchema
  /** The problems with which the call may be answered. */
  readonly problems: readonly ProblemCode[]
}

const text = (description: string) => Type.String({ description })
const object = (description: string) => Type.Optional(Type.Object({}, { description }))
const time = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

const shared = {
  writeKey: Type.Optional(text('The write key, where it is not in the header Authorization.')),
  context: object('Device, library, campaign and the like.'),
  integrations: object('Destinations by name: false leaves one out; All: false leaves out all not named.'),
  sentAt: time("When the request was sent, by the client's clock, which is corrected by it."),
}

const message = {
  userId: Type.Optional(text('Who did it. This or anonymousId is needed.')),
  anonymousId: Type.Optional(text('Who did it, while the userId is unknown.')),
  messageId: Type.Optional(
    Type.String({
      maxLength: MAX_MESSAGE_ID_CHARACTERS,
      description: 'Of the client: a repeat within a source is recognised by it. Absent: it gets one.',
    }),
  ),
  timestamp: time('When it happened. Absent: when it was received.'),
  ...shared,
}

const traits = object('Traits of the user or group.')
const properties = object('Properties of the event, page or screen.')

const kinds = {
  identify: { ...message, traits },
  track: { ...message, event: text('The name of the event.'), properties },
  page: { ...message, name: Type.Optional(text('The name of the page.')), properties },
  screen: { ...message, name: Type.Optional(text('The name of the screen.')), properties },
  group: { ...message, groupId: text('The group that the user belongs to.'), traits },
  alias: { ...message, userId: text('The new id.'), previousId: text('The id that was used so far.') },
}

const batch = Type.Object(
  {
    batch: Type.Array(
      Type.Object(
        {
          type: Type.Enum(Object.keys(kinds)),
          ...message,
        },
        { description: 'A message of any kind, with the fields of its kind.' },
      ),
      {
        maxItems: maxBatchMessages,
        description: `The messages, each of at most ${maxMessageBytes} bytes.`,
      },
    ),
    ...shared,
  },
  { description: `At most ${maxBatchBytes} bytes. context and integrations are merged into each message.` },
)

const done = Type.Object({ success: Type.Literal(true) }, { description: 'All of it is taken.' })

/** The answer to tracking calls. Segment's clients read only its field `success`. */
const taken = Type.Object(
  {
    success: Type.Literal(true),
    rejected: Type.Optional(
      Type.Array(
        Type.Object({
          index: Type.Integer({ minimum: 0, description: 'Its place in the batch, from 0.' }),
          messageId: Type.Optional(
            text('As it was sent. Absent: it had none, or one that is no text of a lawful length.'),
          ),
          reason: Type.Enum([...rejectedReasons], { description: 'What is wrong with it.' }),
        }),
        { maxItems: maxRejectedNamed, description: 'The first messages that were left out.' },
      ),
    ),
    rejectedCount: Type.Optional(
      Type.Integer({ minimum: 1, description: 'How many messages were left out. Absent: none.' }),
    ),
  },
  { description: 'Kafka has all messages but those that were left out: to send these again is no use.' },
)

/** The problems with which a request to any call may be answered. */
const ofAny = ['request_too_slow', 'head_too_large', 'internal_error'] as const
const read = ['malformed_json', 'invalid_body', 'payload_too_large', 'incomplete_body', ...ofAny] as const
/** The problems of calls with a write key, which anybody may have. */
const tracked = [...read, 'too_dense', 'refused_too_often'] as const
const written = ['rate_limited', 'overloaded', 'kafka_unavailable'] as const

function trackingRoute(call: keyof typeof kinds, shortPath: string, summary: string): ApiRoute {
  return {
    call,
    paths: [`/v1/${call}`, shortPath],
    summary,
    description: `One message of at most ${maxMessageBytes} bytes. One that is not valid is answered 200 too: it is left out, named in the answer, and counted.`,
    key: 'write',
    body: Type.Object(kinds[call]),
    answer: taken,
    problems: [...tracked, 'unknown_write_key', ...written],
  }
}

export const apiRoutes: readonly ApiRoute[] = [
  trackingRoute('identify', '/v1/i', 'Who a user is'),
  trackingRoute('track', '/v1/t', 'What a user did'),
  trackingRoute('page', '/v1/p', 'Which page a user saw'),
  trackingRoute('screen', '/v1/s', 'Which screen a user saw'),
  trackingRoute('group', '/v1/g', 'Which group a user belongs to'),
  trackingRoute('alias', '/v1/a', 'Two ids of one user'),
  {
    call: 'batch',
    paths: ['/v1/batch', '/v1/import', '/v1/b'],
    summary: 'Many messages of any kind',
    description:
      'A message that is not valid is left out, named in the answer, and counted by reason; the others are taken. An empty batch is answered 200.',
    key: 'write',
    body: batch,
    answer: taken,
    problems: [...tracked, 'too_many_messages', 'unknown_write_key', ...written],
  },
  {
    call: 'metrics',
    paths: ['/v1/m'],
    summary: "What the browser's library measures of itself",
    description: 'Is thrown away.',
    key: 'none',
    body: Type.Object({}),
    answer: done,
    problems: ['payload_too_large', 'incomplete_body', 'overloaded', ...ofAny],
  },
  {
    call: 'deletions',
    paths: ['/v1/deletions'],
    summary: 'Deletes a user',
    description: 'The destinations of the affected sources get a delete. Needs a server key of each of them.',
    key: 'server',
    body: Type.Object({
      userId: text('Whose data is to be deleted.'),
      sources: Type.Optional(
        Type.Array(text('The id of a source.'), {
          description: 'The affected sources. Absent: all that the key is a server key of.',
        }),
      ),
      requestId: Type.Optional(
        text('Names the request, 1 to 80 visible ASCII characters. Absent: it gets one.'),
      ),
    }),
    answer: Type.Object({ success: Type.Literal(true), requestId: Type.String() }),
    problems: [...read, 'unknown_server_key', 'source_not_allowed', 'overloaded', 'kafka_unavailable'],
  },
  {
    call: 'audience_changes',
    paths: ['/v1/audience-changes'],
    summary: 'Changes of audiences and computed traits',
    description:
      'Each change becomes an Identify where the property really changes. All are taken or none. Needs a server key of the space.',
    key: 'server',
    body: Type.Object({
      source: Type.Optional(
        text('The id of the space: a source of the kind audiences. Absent: the only one of the key.'),
      ),
      changes: Type.Array(propertyChange, {
        maxItems: maxBatchMessages,
        description: 'changedAt may be left out: then it is when the request was received.',
      }),
    }),
    answer: done,
    problems: [...read, 'too_many_messages', 'unknown_server_key', 'source_not_allowed', ...written],
  },
]

/** A route that a browser requests with GET. `{name}` in the path is a parameter. */
export type BrowserRoute = {
  readonly call: CallName
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly parameters: readonly {
    readonly name: string
    readonly in: 'path' | 'query'
    readonly schema: TSchema
  }[]
  readonly content: { readonly type: string; readonly schema: TSchema }
  readonly problems: readonly ProblemCode[]
}

export const browserRoutes = {
  settings: {
    call: 'settings',
    path: '/v1/projects/{writeKey}/settings',
    summary: "What the browser's library asks for at its start",
    description:
      "The settings that Segment's CDN has: analytics.js takes them where its CDN is this gateway.",
    parameters: [{ name: 'writeKey', in: 'path', schema: text('Of the source.') }],
    content: {
      type: 'application/json',
      schema: Type.Object({
        integrations: Type.Object({
          'Segment.io': Type.Object({
            apiKey: text('The write key.'),
            apiHost: Type.Optional(text('Where messages are sent, without the protocol.')),
            protocol: Type.Optional(Type.Enum(['http', 'https'])),
          }),
        }),
      }),
    },
    problems: ['not_found', ...ofAny],
  },
  pixel: {
    call: 'pixel',
    path: '/v1/pixel/{call}',
    summary: 'A message that an image sends',
    description:
      'For pages and mails without a script. It is answered with an image whatever becomes of the message, since a browser would show anything else as broken.',
    parameters: [
      { name: 'call', in: 'path', schema: Type.Enum(Object.keys(kinds)) },
      {
        name: 'data',
        in: 'query',
        schema: text('The message with its writeKey as JSON, in base64 or base64url.'),
      },
    ],
    content: { type: 'image/gif', schema: Type.String({ contentEncoding: 'binary' }) },
    problems: [...ofAny],
  },
} as const satisfies Record<string, BrowserRoute>
