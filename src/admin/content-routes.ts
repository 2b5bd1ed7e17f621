import type { AdminRoute } from './admin-route.ts'
import { ofMessage } from './log-routes.ts'

// Routes that show what messages contain. Each of their calls is written into the audit trail.

const time = { type: 'string', format: 'date-time' }
const orNull = (schema: object): object => ({ anyOf: [schema, { type: 'null' }] })

const origin = {
  type: 'object',
  required: ['topic', 'partition', 'offset'],
  properties: {
    topic: { type: 'string' },
    partition: { type: 'integer', minimum: 0 },
    offset: { type: 'integer', minimum: 0 },
  },
}
const note = {
  ...orNull({ type: 'string' }),
  description:
    'Why the body is not shown, or why the message was refused. It is null if there is nothing to say.',
}

const eventProperties = {
  origin,
  at: { ...orNull(time), description: 'When Kafka got the record.' },
  source: orNull({ type: 'string' }),
  body: {
    ...orNull({ type: 'string' }),
    description:
      'The body as it is sent, byte for byte. If the message was refused, it is as its producer wrote it.',
  },
  note,
}
const requestProperties = {
  destination: { type: 'string' },
  hook: { type: 'string' },
  method: { type: 'string' },
  origin: { type: 'string', description: 'The scheme, host and port of the URL.' },
  path: { type: 'string', description: 'What a mapping adds to the path of the URL.' },
  isBatched: {
    type: 'boolean',
    description:
      'Whether the message is sent in a batch. Then its body is one entry of the body of the request, and signatures are of the whole.',
  },
  headers: {
    type: 'array',
    items: {
      type: 'object',
      required: ['name', 'value'],
      properties: {
        name: { type: 'string' },
        value: {
          ...orNull({ type: 'string' }),
          description:
            'It is null for signatures, for times, for the number of the try, for the id of a batch, and for headers of the catalog, which may be secrets.',
        },
      },
    },
  },
  body: {
    ...orNull({ type: 'string' }),
    description:
      'What the mapping of the destination makes of the message, byte for byte. It is null if the message is sent as it is.',
  },
}
const sourceEventProperties = {
  origin,
  at: { ...time, description: 'When Kafka got the record.' },
  body: { ...orNull({ type: 'string' }), description: 'The value of the record, as its producer wrote it.' },
  note,
}

const count = { type: 'integer', minimum: 0 }
const foundEventProperties = {
  origin,
  at: { ...time, description: 'When Kafka got the record.' },
  source: orNull({ type: 'string' }),
  messageId: { type: 'string', description: 'It is empty if Sluice refuses the event, which has none.' },
  type: { type: 'string' },
  body: { type: 'string', description: 'The value of the record, as its producer wrote it.' },
}

function listOf(title: string, properties: object): object {
  return { type: 'array', items: { title, type: 'object', required: Object.keys(properties), properties } }
}

const body =
  '{"type":"track","userId":"u1","event":"Order Completed","messageId":"order-4711","timestamp":"2026-07-23T14:03:12.402Z","context":{},"properties":{"total":30},"version":1}'
const place = { topic: 'sluice.events', partition: 3, offset: 182_004 }

export const contentRoutes: readonly AdminRoute[] = [
  {
    call: 'show_content',
    method: 'GET',
    path: '/v1/log/messages/{message}/content',
    right: 'read',
    showsContent: true,
    scope: 'within',
    summary: 'What a message contains',
    description:
      'Reads the records of `events` that brought the message, as long as Kafka has them: the first ten, if it was sent several times. `requests` has what its destinations are sent, by the catalog as it is now. A message that was made from a change of an audience or from a deletion has no body here. The call is in the audit trail.',
    params: ofMessage,
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['messageId', 'events', 'requests'],
        properties: {
          messageId: { type: 'string' },
          events: listOf('MessageEvent', eventProperties),
          requests: listOf('MessageRequest', requestProperties),
        },
      },
      example: {
        messageId: 'order-4711',
        events: [{ origin: place, at: '2026-07-23T14:03:12.402Z', source: 'shop', body, note: null }],
        requests: [
          {
            destination: 'erp',
            hook: 'main',
            method: 'POST',
            origin: 'https://erp.example.com',
            path: '',
            isBatched: false,
            headers: [
              { name: 'User-Agent', value: 'Sluice/1.0' },
              { name: 'Content-Type', value: 'application/json' },
              { name: 'X-Api-Key', value: null },
              { name: 'X-Signature', value: null },
            ],
            body: null,
          },
        ],
      },
    },
    problems: ['not_found', 'answer_too_large', 'busy', 'log_unavailable'],
  },
  {
    call: 'list_source_events',
    method: 'GET',
    path: '/v1/sources/{source}/events',
    right: 'read',
    showsContent: true,
    scope: 'within',
    summary: 'Show the last events of a source',
    description:
      'Reads the topic of the events from its end backwards, for eight seconds and 200,000 records of all sources at most. The values are as their producers wrote them, before they are checked. There are at most 2 MB of them. The call is in the audit trail.',
    params: {
      source: {
        schema: { type: 'string', minLength: 1, maxLength: 100 },
        description: 'The id of a source.',
        example: 'shop',
      },
    },
    query: {
      limit: {
        schema: { type: 'string', pattern: '^([1-9][0-9]?|100)$' },
        documented: { schema: { type: 'integer', minimum: 1, maximum: 100 }, example: 20 },
        description: 'The most events of the answer, 1 to 100; default 20.',
        example: '20',
      },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['events', 'lookedAt', 'isAll'],
        properties: {
          events: {
            ...listOf('SourceEvent', sourceEventProperties),
            description: 'The newest is the first.',
          },
          lookedAt: {
            type: 'integer',
            minimum: 0,
            description: 'How many records were read, of all sources.',
          },
          isAll: {
            type: 'boolean',
            description: 'It is false if there may be earlier events of the source.',
          },
        },
      },
      example: {
        events: [{ origin: place, at: '2026-07-23T14:03:12.402Z', body, note: null }],
        lookedAt: 412,
        isAll: false,
      },
    },
    problems: ['not_found', 'conflict', 'busy'],
  },
  {
    call: 'search_events',
    method: 'POST',
    path: '/v1/events/search',
    right: 'read',
    showsContent: true,
    scope: 'within',
    summary: 'Find events by what they say',
    description:
      'Reads the topic of the events in a range of time, as `sluice log scan` does, so it also finds what no index has. An answer is a part of the search: it has read for six seconds or 100,000 records at most. To go on, send the `cursor` of the answer with the same question. To stop, ask no more. Each part is in the audit trail.',
    body: {
      schema: {
        title: 'EventSearch',
        type: 'object',
        additionalProperties: false,
        properties: {
          conditions: {
            type: 'array',
            minItems: 1,
            maxItems: 10,
            items: { type: 'string', minLength: 2, maxLength: 1_000 },
            description:
              'A field and its value, such as `properties.orderId=4711`. A name with a dot is in brackets: `properties["order.id"]=4711`. All of them must be met. A list meets one if one of its items does.',
          },
          text: {
            type: 'string',
            minLength: 1,
            maxLength: 1_000,
            description:
              'A text that the event has somewhere, as JSON writes it. Conditions or a text are needed.',
          },
          source: { type: 'string', minLength: 1, maxLength: 100 },
          from: {
            type: 'string',
            maxLength: 100,
            description:
              'The beginning of the time in which Kafka got the events, in ISO 8601. The default is an hour ago.',
          },
          to: { type: 'string', maxLength: 100, description: 'The end of this time. The default is now.' },
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: 100,
            description: 'The most events of an answer; default 50.',
          },
          cursor: { type: 'string', minLength: 1, maxLength: 32_768 },
        },
      },
      example: { conditions: ['properties.orderId=4711'], source: 'shop' },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['events', 'read', 'of', 'cursor'],
        properties: {
          events: listOf('FoundEvent', foundEventProperties),
          read: { ...count, description: 'How many records the search has read, in all of its parts.' },
          of: { ...count, description: 'How many records there are to read, as far as offsets tell.' },
          cursor: {
            type: ['string', 'null'],
            description: 'The `cursor` of the request for the next part. It is null if all was read.',
          },
        },
      },
      example: {
        events: [
          {
            origin: place,
            at: '2026-07-23T14:03:12.402Z',
            source: 'shop',
            messageId: 'order-4711',
            type: 'track',
            body,
          },
        ],
        read: 100_000,
        of: 240_112,
        cursor: 'WzI0MDExMiwxNzg0ODE2MDAwMDAwLDE3ODQ4MjMyMDAwMDAsW1sxODIwMDQsMTkwMDAwXV1d',
      },
    },
    problems: ['not_found', 'busy'],
  },
]
