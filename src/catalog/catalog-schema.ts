import { Type, type Static } from 'typebox'
import { messageKinds } from '../message/message-schemas.ts'
import { timestampPattern } from '../message/timestamp.ts'
import { autoPauseExpected, autoPausePattern } from './auto-pause.ts'
import { maxHeaderBytes, maxHeaders, maxUrlCharacters } from './hook-rules.ts'

/** The kinds of messages that a filter can name. A `delete` passes every filter. */
const filteredKinds = messageKinds.filter((kind) => kind !== 'delete')

const id = (description: string) =>
  Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$',
    description: `${description} 1 to 100 of A-Z a-z 0-9 . _ -, the first a letter or a digit.`,
  })

const name = Type.Optional(
  Type.String({ minLength: 1, maxLength: 200, description: 'A name for people. Default: the id.' }),
)

const source = Type.Object(
  {
    id: id('The source-id header of its records, unique among the sources.'),
    name,
    kind: Type.Optional(
      Type.Enum(['events', 'audiences'], {
        default: 'events',
        description: 'What its records are: Segment messages, or changes of audiences and computed traits.',
      }),
    ),
    enabled: Type.Optional(
      Type.Boolean({ default: true, description: 'false: its records go to no destination.' }),
    ),
    writeKeys: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[\\x21-\\x7e]{1,200}$',
          description: 'A write key: 1 to 200 visible ASCII characters.',
        }),
        {
          maxItems: 100,
          description: 'Keys that clients of the gateway send. No two sources may share one.',
        },
      ),
    ),
    serverKeys: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: 200,
          description: 'A server key. ${CATALOG_X} reads a variable.',
          examples: ['${CATALOG_SHOP_SERVER_KEY}'],
        }),
        {
          maxItems: 20,
          description:
            'Secret keys of servers that send deletions and audience changes to the gateway, each 16 to 200 visible ASCII characters. Sources may share one.',
        },
      ),
    ),
    maxPerSecond: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Most messages a second that a gateway process takes of it. Absent: no limit.',
        examples: [1_000],
      }),
    ),
  },
  { additionalProperties: false, description: 'Where records come from.' },
)

const hook = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: maxUrlCharacters,
      description: 'The full http or https URL, without user name, password and fragment.',
      examples: ['https://example.com/hook'],
    }),
    id: Type.Optional(
      id(
        'Names this hook in logs and metrics, unique within the destination. Default: the first 8 hex characters of the SHA-1 of the URL.',
      ),
    ),
    headers: Type.Optional(
      Type.Record(
        Type.String(),
        Type.String({
          description: 'The value: visible Latin-1, spaces and tabs inside. ${CATALOG_X} reads a variable.',
        }),
        {
          maxProperties: maxHeaders,
          description: `Added to each request to this URL: at most ${maxHeaders}, together at most ${maxHeaderBytes} bytes.`,
          examples: [{ 'X-Team': 'crm' }],
        },
      ),
    ),
  },
  { additionalProperties: false, description: 'One URL that is posted to.' },
)

const destination = Type.Object(
  {
    id: id('Unique among the destinations.'),
    name,
    state: Type.Optional(
      Type.Enum(['on', 'off', 'paused'], {
        default: 'on',
        description:
          'off: nothing is routed to it. paused: messages are parked, and delivered when it is on again.',
      }),
    ),
    sources: Type.Array(id('The id of a source of this catalog.'), {
      uniqueItems: true,
      description: 'The sources that it is connected to; [] for none yet.',
      examples: [['shop']],
    }),
    filter: Type.Optional(
      Type.Object(
        {
          types: Type.Optional(
            Type.Array(Type.Enum(filteredKinds, { description: 'A type of messages.' }), {
              minItems: 1,
              uniqueItems: true,
              description: 'The types of messages that it gets. Absent: all.',
              examples: [['identify', 'track']],
            }),
          ),
          events: Type.Optional(
            Type.Array(Type.String({ minLength: 1, maxLength: 500, description: 'The name of an event.' }), {
              minItems: 1,
              maxItems: 200,
              uniqueItems: true,
              description:
                'The names of the track events that it gets, spelled as the messages spell them. Absent: all. Other types than track are not affected.',
              examples: [['Order Completed']],
            }),
          ),
        },
        {
          additionalProperties: false,
          minProperties: 1,
          description:
            'Which messages of its event sources it gets, notices included. Deletes and the Identifies of audiences always pass. Absent: all.',
          examples: [{ types: ['track'], events: ['Order Completed'] }],
        },
      ),
    ),
    sharedSecret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description:
          'Signs each request (X-Signature: hex HMAC-SHA1 of the body). Absent: not signed. ${CATALOG_X} reads a variable.',
        examples: ['${CATALOG_CRM_SECRET}'],
      }),
    ),
    nextSharedSecret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description:
          'The secret that is to replace sharedSecret. Until it is written there, webhook-signature carries the signatures of both, X-Signature that of sharedSecret. Only with signing.standardWebhooks or sharedSecretEndsAt.',
        examples: ['${CATALOG_CRM_NEXT_SECRET}'],
      }),
    ),
    sharedSecretEndsAt: Type.Optional(
      Type.String({
        pattern: timestampPattern,
        description:
          'The time from which sharedSecret signs no more, and nextSharedSecret signs alone: ISO 8601; without a zone it is UTC, a date alone is its midnight.',
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
                'true: adds webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks) to X-Signature. The key is what follows whsec_ in the secret, decoded from base64, or else the UTF-8 bytes of the secret.',
            }),
          ),
        },
        {
          additionalProperties: false,
          description: 'How requests are signed beside X-Signature.',
          examples: [{ standardWebhooks: true }],
        },
      ),
    ),
    strategy: Type.Optional(
      Type.Enum(['all', 'failover'], {
        default: 'all',
        description:
          'all: post to every hook at once, one success is enough. failover: one after the other, in this order.',
      }),
    ),
    maxInFlight: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1024,
        default: 64,
        description:
          'Most deliveries in flight at once in each process, 1 to 1024; each may have a request to every hook. Given, it holds for a URL that fails as well; not given, one that fails may have more: a try for each message.',
      }),
    ),
    rateLimit: Type.Optional(
      Type.Object(
        {
          perSecond: Type.Number({
            exclusiveMinimum: 0,
            maximum: 100_000,
            description: 'Attempts a second, over all workers together; 0.5 is one in two seconds.',
          }),
          burst: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 1_000_000,
              description: 'How many at once after a pause; without it, as many as in a second.',
            }),
          ),
        },
        {
          additionalProperties: false,
          description: 'Most attempts in a time; what is more waits in the lane. Absent: no limit.',
          examples: [{ perSecond: 50 }],
        },
      ),
    ),
    autoPause: Type.Optional(
      Type.String({
        pattern: autoPausePattern,
        description: `How long all of its URLs must fail before Sluice pauses it: off, or ${autoPauseExpected}. Absent: as notices.autoPause says.`,
        examples: ['120h', 'off'],
      }),
    ),
    hooks: Type.Array(hook, {
      minItems: 1,
      maxItems: 5,
      description: 'The URLs that are posted to, 1 to 5.',
      examples: [[{ url: 'https://example.com/hook' }]],
    }),
  },
  { additionalProperties: false, description: 'Where messages are delivered.' },
)

/**
 * The schema of the catalog file that operators write. `schemas/catalog.schema.json` is generated from this
 * schema.
 */
export const catalogSchema = Type.Object(
  {
    sources: Type.Array(source, { description: 'All sources; [] for none.' }),
    destinations: Type.Array(destination, { description: 'All destinations; [] for none.' }),
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
