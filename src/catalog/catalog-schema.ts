import { Type, type Static } from 'typebox'
import { messageKinds } from '../message/message-schemas.ts'
import { timestampPattern } from '../message/timestamp.ts'
import { autoPauseExpected, autoPausePattern } from './auto-pause.ts'
import { idPattern } from './entry-id.ts'
import { loginSchema } from './features/hook-login.ts'
import { tlsSchema } from './features/hook-tls.ts'
import { signingKeysSchema } from './features/signing-keys.ts'
import { timeoutExpected, timeoutPattern } from './features/request-timeout.ts'
import { batchDefaults, batchLimits, batchWaitExpected, batchWaitPattern } from './features/batch.ts'
import { maxHeaderBytes, maxHeaders, maxUrlCharacters } from './hook-rules.ts'
import {
  labelKeyExpected,
  labelKeyPattern,
  labelValueExpected,
  labelValuePattern,
  maxLabels,
} from './labels.ts'

/** The kinds of messages that a filter can name. A `delete` passes every filter. */
const filteredKinds = messageKinds.filter((kind) => kind !== 'delete')

const id = (description: string) =>
  Type.String({
    pattern: idPattern,
    description: `${description} It has 1 to 100 of the characters A-Z a-z 0-9 . _ - and begins with a letter or a digit.`,
  })

const name = Type.Optional(
  Type.String({ minLength: 1, maxLength: 200, description: 'The name for people. Absent: the id.' }),
)

const labels = Type.Optional(
  Type.Record(
    Type.String({ pattern: labelKeyPattern }),
    Type.String({ pattern: labelValuePattern, description: `The value of a label: ${labelValueExpected}.` }),
    {
      additionalProperties: false,
      maxProperties: maxLabels,
      description: `Words of yours by which entries are chosen, such as the customer that one belongs to: at most ${maxLabels}. A name has ${labelKeyExpected}. A value has ${labelValueExpected}. Labels change nothing about deliveries.`,
      examples: [{ tenant: 'acme' }],
    },
  ),
)

const source = Type.Object(
  {
    id: id('The id, which records have in the header source-id. It is unique among the sources.'),
    name,
    kind: Type.Optional(
      Type.Enum(['events', 'audiences'], {
        default: 'events',
        description:
          'What the records of the source are. events: Segment messages. audiences: changes of audiences and computed traits.',
      }),
    ),
    enabled: Type.Optional(
      Type.Boolean({ default: true, description: 'false: the records of the source go to no destination.' }),
    ),
    writeKeys: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[\\x21-\\x7e]{1,200}$',
          description: 'A write key: 1 to 200 visible ASCII characters.',
        }),
        {
          maxItems: 100,
          description:
            'The keys that clients of the gateway send: 1 to 200 visible ASCII characters each. No two sources may have the same key.',
        },
      ),
    ),
    serverKeys: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: 200,
          description: 'A server key. ${CATALOG_X} stands for the value of a variable.',
          examples: ['${CATALOG_SHOP_SERVER_KEY}'],
        }),
        {
          maxItems: 20,
          description:
            'The secret keys of servers that send deletions and audience changes to the gateway. A key has 16 to 200 visible ASCII characters. Several sources may have the same key.',
        },
      ),
    ),
    maxPerSecond: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          'The most messages per second that one gateway process accepts from the source. Absent: no limit.',
        examples: [1_000],
      }),
    ),
    labels,
  },
  { additionalProperties: false, description: 'Where records come from.' },
)

const hook = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: maxUrlCharacters,
      description:
        'The full http or https URL, without user name, password and fragment. ${CATALOG_X} stands for the value of a variable.',
      examples: ['https://example.com/hook'],
    }),
    id: Type.Optional(
      id(
        'The name of the hook in logs and metrics, unique within the destination. Absent: the first 8 hex characters of the SHA-1 of the URL (of its text with ${CATALOG_X}, if it has a variable).',
      ),
    ),
    headers: Type.Optional(
      Type.Record(
        Type.String(),
        Type.String({
          description:
            'The value: visible Latin-1 characters, with spaces and tabs only inside. ${CATALOG_X} stands for the value of a variable.',
        }),
        {
          maxProperties: maxHeaders,
          description: `Headers that each request to this URL gets, with Latin-1 values: at most ${maxHeaders}, with at most ${maxHeaderBytes} bytes together.`,
          examples: [{ 'X-Team': 'crm' }],
        },
      ),
    ),
    login: Type.Optional(loginSchema),
    tls: Type.Optional(tlsSchema),
  },
  { additionalProperties: false, description: 'A URL to which messages are posted.' },
)

const destination = Type.Object(
  {
    id: id('The id, which is unique among the destinations.'),
    name,
    state: Type.Optional(
      Type.Enum(['on', 'off', 'paused'], {
        default: 'on',
        description:
          'off: the destination gets no messages. paused: its messages wait in its queue, for up to 30 days, and are delivered in order when it is on again.',
      }),
    ),
    sources: Type.Array(id('The id of a source of this catalog.'), {
      uniqueItems: true,
      description: 'The sources whose messages the destination gets. []: none yet.',
      examples: [['shop']],
    }),
    filter: Type.Optional(
      Type.Object(
        {
          types: Type.Optional(
            Type.Array(Type.Enum(filteredKinds, { description: 'A type of messages.' }), {
              minItems: 1,
              uniqueItems: true,
              description: 'The types of messages that the destination gets. Absent: all.',
              examples: [['identify', 'track']],
            }),
          ),
          events: Type.Optional(
            Type.Array(Type.String({ minLength: 1, maxLength: 500, description: 'The name of an event.' }), {
              minItems: 1,
              maxItems: 200,
              uniqueItems: true,
              description:
                'The names of the track events that the destination gets, spelled as in the messages. Absent: all. Messages of other types are not affected.',
              examples: [['Order Completed']],
            }),
          ),
          historical: Type.Optional(
            Type.Boolean({
              default: true,
              description:
                'false: the destination gets no messages from the past. These are messages whose timestamp is more than 24 hours before the time at which they came (receivedAt), such as those of an import.',
            }),
          ),
        },
        {
          additionalProperties: false,
          minProperties: 1,
          description:
            'The messages that the destination gets from sources of the kind events. The filter also applies to notices. Deletes and the Identifies of audiences pass every filter. Absent: all messages.',
          examples: [{ types: ['track'], events: ['Order Completed'] }],
        },
      ),
    ),
    sharedSecret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description:
          'The secret with which each request is signed (X-Signature, the hex HMAC-SHA1 of the body). Absent: requests are not signed. ${CATALOG_X} stands for the value of a variable.',
        examples: ['${CATALOG_CRM_SECRET}'],
      }),
    ),
    nextSharedSecret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description:
          'The secret that will replace sharedSecret. Until it does, webhook-signature has two signatures, one made with each secret, and X-Signature is made with sharedSecret. Needs signing.standardWebhooks or sharedSecretEndsAt.',
        examples: ['${CATALOG_CRM_NEXT_SECRET}'],
      }),
    ),
    sharedSecretEndsAt: Type.Optional(
      Type.String({
        pattern: timestampPattern,
        description:
          'The time from which requests are signed with nextSharedSecret only (ISO 8601). A time without a zone is in UTC. A date alone means midnight.',
        examples: ['2026-09-30T12:00:00Z'],
      }),
    ),
    signing: Type.Optional(
      Type.Object(
        {
          standardWebhooks: Type.Optional(
            Type.Boolean({
              default: false,
              description:
                'true: requests also have webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks). If the secret begins with whsec_, the key is the rest of it, decoded from base64. Otherwise, the key is the UTF-8 bytes of the secret.',
            }),
          ),
          ed25519: Type.Optional(signingKeysSchema),
        },
        {
          additionalProperties: false,
          description: 'How requests are signed in addition to X-Signature.',
          examples: [{ standardWebhooks: true }],
        },
      ),
    ),
    strategy: Type.Optional(
      Type.Enum(['all', 'failover'], {
        default: 'all',
        description:
          'The order of the requests. all: Sluice posts to all hooks at once, and one success is enough. failover: Sluice posts to one hook after the other, in the order of the catalog, until one accepts the message.',
      }),
    ),
    maxInFlight: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1024,
        default: 64,
        description:
          'The most deliveries in flight at once in each process. Each of them may have a request to every hook. Sluice learns how many requests at once each URL takes, and makes no more: this is only the ceiling. If the field is given, a failing URL also has at most this many requests at once. If it is absent, a failing URL may have more, so that each message is tried.',
      }),
    ),
    rateLimit: Type.Optional(
      Type.Object(
        {
          perSecond: Type.Number({
            exclusiveMinimum: 0,
            maximum: 100_000,
            description:
              'The most attempts per second of all workers together. 0.5: one attempt in two seconds.',
          }),
          burst: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 1_000_000,
              description:
                'The most attempts at once after an idle time. Absent: as many as perSecond allows in one second.',
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            'The limit on the rate of attempts. Messages over the limit wait in the lane of the destination. Absent: no limit.',
          examples: [{ perSecond: 50 }],
        },
      ),
    ),
    timeout: Type.Optional(
      Type.String({
        pattern: timeoutPattern,
        description: `The time within which the head of an answer has to come: ${timeoutExpected}. Absent, or longer than the setting delivery.timeout: the setting applies.`,
        examples: ['2s'],
      }),
    ),
    autoPause: Type.Optional(
      Type.String({
        pattern: autoPausePattern,
        description: `The time for which all URLs must fail before Sluice pauses the destination: ${autoPauseExpected}. off: Sluice never pauses it. Absent: the setting notices.autoPause applies.`,
        examples: ['120h', 'off'],
      }),
    ),
    batch: Type.Optional(
      Type.Object(
        {
          maxMessages: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: batchLimits.maxMessages,
              default: batchDefaults.maxMessages,
              description: 'The most messages of a request.',
            }),
          ),
          maxBytes: Type.Optional(
            Type.Integer({
              minimum: 1_024,
              maximum: batchLimits.maxBytes,
              default: batchDefaults.maxBytes,
              description: "The most bytes of a request's body. A larger message is sent alone.",
            }),
          ),
          maxWait: Type.Optional(
            Type.String({
              pattern: batchWaitPattern,
              default: batchDefaults.maxWait,
              description: `The longest time that a message waits for others: ${batchWaitExpected}. What has waited in the queue of the destination waits no longer.`,
              examples: ['50ms', '2s'],
            }),
          ),
          format: Type.Optional(
            Type.Enum(['json', 'ndjson'], {
              default: 'json',
              description:
                'How the messages are written. json: an array (application/json). ndjson: a line for each message (application/x-ndjson).',
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            'How messages are sent together, in one request that is signed as a whole. {}: with the defaults. Absent: each message has a request of its own. rateLimit and maxInFlight count requests, and so batches.',
          examples: [{ maxMessages: 100, maxWait: '200ms' }],
        },
      ),
    ),
    labels,
    hooks: Type.Array(hook, {
      minItems: 1,
      maxItems: 5,
      description: 'The URLs to which messages are posted.',
      examples: [[{ url: 'https://example.com/hook' }]],
    }),
  },
  { additionalProperties: false, description: 'Where messages are delivered.' },
)

const count = (what: string) =>
  Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10_000_000,
      description: `The number of ${what}. If the file has another number of them, Sluice refuses it.`,
      examples: [5],
    }),
  )

const expected = Type.Object(
  { destinations: count('destinations'), sources: count('sources') },
  {
    additionalProperties: false,
    minProperties: 1,
    description:
      'The numbers of entries of this file. Sluice refuses a file that was cut off, because it has fewer. A file that lacks more than one, and more than a tenth, of the destinations (or sources) of the catalog in force is refused unless it has their new number here.',
    examples: [{ destinations: 5 }],
  },
)

/**
 * The schema of the catalog file that operators write. `schemas/catalog.schema.json` is generated from this
 * schema.
 */
export const catalogSchema = Type.Object(
  {
    sources: Type.Array(source, { description: 'All sources. []: none.' }),
    destinations: Type.Array(destination, { description: 'All destinations. []: none.' }),
    expect: Type.Optional(expected),
  },
  {
    additionalProperties: false,
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sluice catalog',
    description: 'The sources that Sluice reads and the destinations that it delivers to.',
  },
)

/**
 * The content of a catalog file that is valid by `catalogSchema`. `parseCatalog` also checks the rules that
 * concern several keys.
 */
export type CatalogDefinition = Static<typeof catalogSchema>
