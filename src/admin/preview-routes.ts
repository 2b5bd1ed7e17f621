import type { AdminRoute } from './admin-route.ts'

// Routes that try a filter and mappings before a destination has it.

const ofRule = {
  filter: {
    type: 'object',
    description: 'The `filter` of a destination, as in the catalog.',
    additionalProperties: true,
  },
  mappings: {
    type: 'array',
    items: { type: 'object', additionalProperties: true },
    description: 'The `mappings` of a destination, as in the catalog.',
  },
}
const requestProperties = {
  method: { type: 'string' },
  path: { type: 'string', description: 'What is added to the path of the URL.' },
  headers: {
    type: 'array',
    items: {
      title: 'PreviewedHeader',
      type: 'object',
      required: ['name', 'value'],
      properties: { name: { type: 'string' }, value: { type: 'string' } },
    },
    description: 'The headers that the message decides.',
  },
  body: { type: 'string', description: 'The body, byte for byte.' },
  isAlone: {
    type: 'boolean',
    description:
      'It is true if the message would have a request of its own also if the destination had a `batch`, because its mapping makes more than a body of JSON.',
  },
}
const mappingProperties = {
  place: { type: 'integer', minimum: 0, description: 'Its place in the list of mappings, from 0.' },
  name: { type: ['string', 'null'], description: 'Its name in the catalog.' },
}
const orNull = (title: string, properties: object): object => ({
  anyOf: [{ title, type: 'object', required: Object.keys(properties), properties }, { type: 'null' }],
})
const resultProperties = {
  messageId: { type: ['string', 'null'], description: 'It is null if the message was refused.' },
  message: {
    type: ['string', 'null'],
    description: 'The body that is sent without a mapping. It is null if the message was refused.',
  },
  result: {
    type: 'string',
    enum: ['passes', 'excluded', 'missing_field', 'not_sampled', 'failed', 'mapping_failed', 'refused'],
    description:
      '`passes`: the destination gets the message. `excluded`: it does not. `missing_field`: it does not, because the message lacks a field of the condition, or it has another type. `not_sampled`: the user is not in the sample. `failed`: the message becomes a dead letter, because its condition can not be evaluated. `mapping_failed`: it becomes a dead letter, because the mapping makes no request of it. `refused`: no destination gets the message, because it has a fault.',
  },
  detail: {
    type: ['string', 'null'],
    description: 'Why, without anything of the message. It is null if there is nothing to say.',
  },
  mapping: {
    ...orNull('PreviewedMapping', mappingProperties),
    description:
      'The mapping that is for the message, or whose condition can not be evaluated. It is null if none is, or if the filter keeps the message away.',
  },
  request: {
    ...orNull('PreviewedRequest', requestProperties),
    description: 'The request that the destination would get. It is null if it would get none.',
  },
}
const answer = {
  schema: {
    type: 'object',
    required: ['results'],
    properties: {
      results: {
        type: 'array',
        items: {
          title: 'Previewed',
          type: 'object',
          required: Object.keys(resultProperties),
          properties: resultProperties,
        },
      },
    },
  },
  example: {
    results: [
      {
        messageId: 'order-4711',
        message:
          '{"type":"track","userId":"u1","event":"Order Completed","messageId":"order-4711","timestamp":"2026-07-29T09:30:00.000Z","context":{},"properties":{"total":30},"version":1}',
        result: 'passes',
        detail: null,
        mapping: { place: 0, name: null },
        request: {
          method: 'POST',
          path: '',
          headers: [{ name: 'Content-Type', value: 'application/json' }],
          body: '{"text":"Order Completed: 30"}',
          isAlone: false,
        },
      },
    ],
  },
}
const condition = 'event == "Order Completed" && properties.total > 20'

export const previewRoutes: readonly AdminRoute[] = [
  {
    call: 'preview',
    method: 'POST',
    path: '/v1/preview',
    right: 'read',
    scope: 'token',
    summary: 'Try a filter and mappings on messages',
    description:
      'Says for each message of the request what a destination with this filter and these mappings would do with it. Nothing is sent or stored, and Kafka is not needed. A filter or a mapping with a fault is answered with 422, which names the fault, and so is one that takes more than two seconds for all messages.',
    body: {
      schema: {
        type: 'object',
        required: ['messages'],
        additionalProperties: false,
        properties: {
          ...ofRule,
          messages: {
            type: 'array',
            minItems: 1,
            maxItems: 100,
            items: { type: 'object', additionalProperties: true },
            description: 'Messages as clients send them.',
          },
        },
      },
      example: {
        filter: { condition },
        mappings: [{ body: { text: { '@template': '{{event}}: {{properties.total}}' } } }],
        messages: [
          {
            type: 'track',
            userId: 'u1',
            event: 'Order Completed',
            properties: { total: 30 },
            messageId: 'order-4711',
          },
        ],
      },
    },
    status: 200,
    answer,
    problems: ['answer_too_large', 'busy', 'faulty'],
  },
  {
    call: 'preview_source',
    method: 'POST',
    path: '/v1/sources/{source}/preview',
    right: 'read',
    showsContent: true,
    scope: 'within',
    summary: 'Try a filter and mappings on the last events of a source',
    description:
      'Reads the last events of the source, as `GET /v1/sources/{source}/events` does, and says for each what a destination with this filter and these mappings would do with it. Nothing is sent. The call is in the audit trail.',
    params: {
      source: {
        schema: { type: 'string', minLength: 1, maxLength: 100 },
        description: 'The id of a source.',
        example: 'shop',
      },
    },
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: {
          ...ofRule,
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: 100,
            description: 'The most events, 1 to 100; default 20.',
          },
        },
      },
      example: { filter: { condition }, limit: 50 },
    },
    status: 200,
    answer,
    problems: ['not_found', 'conflict', 'answer_too_large', 'busy', 'faulty'],
  },
]
