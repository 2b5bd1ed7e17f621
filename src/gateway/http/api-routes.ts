import { type TSchema, Type } from 'typebox'
import { propertyChange } from '../../message/audience-change.ts'
import { MAX_MESSAGE_ID_CHARACTERS } from '../../message/message-schemas.ts'
import type { ProblemCode } from '../calls/answer.ts'
import { maxBatchBytes, maxBatchMessages, maxMessageBytes } from '../messages/request-limits.ts'
import type { CallName } from '../calls/gateway-events.ts'
import { rejectedReasons } from '../messages/left-out-reasons.ts'
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
  readonly problems: readonly ProblemCode[]
}

const text = (description: string) => Type.String({ description })
const object = (description: string) => Type.Optional(Type.Object({}, { description }))
const time = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

const shared = {
  writeKey: Type.Optional(text('The write key, if the header Authorization does not have it.')),
  context: object('Facts about the device, the library, the campaign and the like.'),
  integrations: object(
    'Names destinations. false leaves out a destination; All: false leaves out all destinations that are not named.',
  ),
  sentAt: time(
    'The time when the client sent the request, by its own clock. The gateway corrects the timestamps by the error of this clock.',
  ),
}

const message = {
  userId: Type.Optional(text('The id of the user who did this. A message needs a userId or an anonymousId.')),
  anonymousId: Type.Optional(text('An id for the user while the userId is unknown.')),
  messageId: Type.Optional(
    Type.String({
      maxLength: MAX_MESSAGE_ID_CHARACTERS,
      description:
        'The id of the message, which the client chooses. If a source sends an id again, Sluice recognizes the repeat. A message without an id gets one.',
    }),
  ),
  timestamp: time(
    'The time when this happened. If it is absent, the time when the request was received is taken.',
  ),
  ...shared,
}

const traits = object('The traits of the user or the group.')
const properties = object('The properties of the event, the page or the screen.')

const kinds = {
  identify: { ...message, traits },
  track: { ...message, event: text('The name of the event.'), properties },
  page: { ...message, name: Type.Optional(text('The name of the page.')), properties },
  screen: { ...message, name: Type.Optional(text('The name of the screen.')), properties },
  group: { ...message, groupId: text('The id of the group that the user belongs to.'), traits },
  alias: {
    ...message,
    userId: text('The new id of the user.'),
    previousId: text('The id that the user had so far.'),
  },
}

const batch = Type.Object(
  {
    batch: Type.Array(
      Type.Object(
        {
          type: Type.Enum(Object.keys(kinds)),
          ...message,
        },
        { description: 'A message of any kind. It has the fields of its kind.' },
      ),
      {
        maxItems: maxBatchMessages,
        description: `The messages. Each of them may have at most ${maxMessageBytes} bytes.`,
      },
    ),
    ...shared,
  },
  {
    description: `A batch may have at most ${maxBatchBytes} bytes. Its context and its integrations are merged into each message.`,
  },
)

const done = Type.Object(
  { success: Type.Literal(true) },
  { description: 'The gateway has taken the whole request.' },
)

const leftOut = {
  rejected: Type.Optional(
    Type.Array(
      Type.Object({
        index: Type.Integer({
          minimum: 0,
          description: 'The place of the message in the batch, counted from 0.',
        }),
        messageId: Type.Optional(
          text(
            'The messageId as the client sent it. It is absent if the message had none, or one that is not a text or is too long.',
          ),
        ),
        reason: Type.Enum([...rejectedReasons], {
          description: 'The reason why the message was left out.',
        }),
      }),
      { maxItems: maxRejectedNamed, description: 'The first messages that were left out.' },
    ),
  ),
  rejectedCount: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'The number of messages that were left out. It is absent if none was left out.',
    }),
  ),
}

/** The answer to a batch. Segment's clients read only its field `success`. */
const taken = Type.Object(
  { success: Type.Literal(true), ...leftOut },
  {
    description:
      'Kafka has all messages except those that were left out. Do not send these again: they would be left out again.',
  },
)

/** The answer to a single call. */
const takenOrLeftOut = Type.Object(
  {
    success: Type.Boolean({ description: 'False if the message was left out.' }),
    message: Type.Optional(text('What is wrong with the message, if it was left out, and what to do.')),
    ...leftOut,
  },
  {
    description:
      'If success is true, Kafka has the message. Otherwise it was left out. Do not send it again as it is: it would be left out again.',
  },
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
    description: `Takes one message of at most ${maxMessageBytes} bytes. A message that is not valid is answered 200 too. It is left out, named in the answer, and counted.`,
    key: 'write',
    body: Type.Object(kinds[call]),
    answer: takenOrLeftOut,
    problems: [...tracked, 'unknown_write_key', ...written],
  }
}

/** The path of batches whose times are kept as the client gave them. */
export const importPath = '/v1/import'

export const apiRoutes: readonly ApiRoute[] = [
  trackingRoute('identify', '/v1/i', 'Who a user is'),
  trackingRoute('track', '/v1/t', 'What a user did'),
  trackingRoute('page', '/v1/p', 'Which page a user saw'),
  trackingRoute('screen', '/v1/s', 'Which screen a user saw'),
  trackingRoute('group', '/v1/g', 'Which group a user belongs to'),
  trackingRoute('alias', '/v1/a', 'Two ids of one user'),
  {
    call: 'batch',
    paths: ['/v1/batch', importPath, '/v1/b'],
    summary: 'Many messages of any kind',
    description:
      'Takes many messages. A message that is not valid is left out, named in the answer, and counted by its reason. The other messages are taken. An empty batch is answered 200.',
    key: 'write',
    body: batch,
    answer: taken,
    problems: [...tracked, 'too_many_messages', 'unknown_write_key', ...written],
  },
  {
    call: 'metrics',
    paths: ['/v1/m'],
    summary: "What the browser's library measures of itself",
    description: 'The gateway reads the body and drops it.',
    key: 'none',
    body: Type.Object({}),
    answer: done,
    problems: ['payload_too_large', 'incomplete_body', 'overloaded', ...ofAny],
  },
  {
    call: 'deletions',
    paths: ['/v1/deletions'],
    summary: 'Deletes a user',
    description:
      'The destinations of the affected sources get a delete. The call needs a server key of each of these sources.',
    key: 'server',
    body: Type.Object({
      userId: text('The id of the user whose data is to be deleted.'),
      sources: Type.Optional(
        Type.Array(text('The id of a source.'), {
          description:
            'The affected sources. If they are absent, all sources of the server key are affected.',
        }),
      ),
      requestId: Type.Optional(
        text('The id of the request: 1 to 80 visible ASCII characters. A request without an id gets one.'),
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
      'A change becomes an Identify if the value of the property is really another one. Either all changes are taken, or none. The call needs a server key of the space.',
    key: 'server',
    body: Type.Object({
      source: Type.Optional(
        text(
          'The id of the space, which is a source of the kind audiences. It may be absent if the server key has only one space.',
        ),
      ),
      changes: Type.Array(propertyChange, {
        maxItems: maxBatchMessages,
        description:
          'The changes. If a change has no changedAt, the time when the request was received is taken.',
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
      "Returns the settings that Segment's CDN would return. analytics.js asks for them if its CDN is set to this gateway.",
    parameters: [{ name: 'writeKey', in: 'path', schema: text('The write key of the source.') }],
    content: {
      type: 'application/json',
      schema: Type.Object({
        integrations: Type.Object({
          'Segment.io': Type.Object({
            apiKey: text('The write key of the source.'),
            apiHost: Type.Optional(
              text('The host and the path to which messages are sent, without the protocol.'),
            ),
            protocol: Type.Optional(Type.Enum(['http', 'https'])),
          }),
        }),
      }),
    },
    problems: ['not_found', ...ofAny],
  },
  signingKeys: {
    call: 'signing_keys',
    path: '/v1/signing-keys/{destination}',
    summary: 'The public keys by which a receiver verifies requests',
    description:
      'Returns a set of JSON Web Keys (RFC 7517) with the public keys of Ed25519 of a destination (signing.ed25519 in the catalog). A request has a signature (v1a) by each of them. Anybody may ask: public keys are no secrets.',
    parameters: [{ name: 'destination', in: 'path', schema: text('The id of the destination.') }],
    content: {
      type: 'application/json',
      schema: Type.Object({
        keys: Type.Array(
          Type.Object({
            kty: Type.Literal('OKP'),
            crv: Type.Literal('Ed25519'),
            x: text('The public key in base64url.'),
            kid: text('The thumbprint of the key (RFC 7638).'),
            use: Type.Literal('sig'),
            alg: Type.Literal('EdDSA'),
            whpk: text('The public key in the format of Standard Webhooks.'),
          }),
        ),
      }),
    },
    problems: ['not_found', ...ofAny],
  },
  pixel: {
    call: 'pixel',
    path: '/v1/pixel/{call}',
    summary: 'A message that an image sends',
    description:
      'For pages and mails without a script. The answer is always an image, whatever becomes of the message, because a browser would show anything else as a broken image.',
    parameters: [
      { name: 'call', in: 'path', schema: Type.Enum(Object.keys(kinds)) },
      {
        name: 'data',
        in: 'query',
        schema: text('The message as JSON, with its writeKey, encoded in base64 or base64url.'),
      },
    ],
    content: { type: 'image/gif', schema: Type.String({ contentEncoding: 'binary' }) },
    problems: [...ofAny],
  },
} as const satisfies Record<string, BrowserRoute>
