import type { AdminRoute } from './admin-route.ts'

// Routes that try a filter before a destination has it.

const ofRule = {
  filter: {
    type: 'object',
    description: 'The `filter` of a destination, as in the catalog.',
    additionalProperties: true,
  },
}
const resultProperties = {
  messageId: { type: ['string', 'null'], description: 'It is null if the message was refused.' },
  result: {
    type: 'string',
    enum: ['passes', 'excluded', 'missing_field', 'not_sampled', 'failed', 'refused'],
    description:
      '`passes`: the destination gets the message. `excluded`: it does not. `missing_field`: it does not, because the message lacks a field of the condition, or it has another type. `not_sampled`: the user is not in the sample. `failed`: the message becomes a dead letter, because its condition can not be evaluated. `refused`: no destination gets the message, because it has a fault.',
  },
  detail: {
    type: ['string', 'null'],
    description: 'Why, without anything of the message. It is null if there is nothing to say.',
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
  example: { results: [{ messageId: 'order-4711', result: 'passes', detail: null }] },
}
const condition = 'event == "Order Completed" && properties.total > 20'

export const previewRoutes: readonly AdminRoute[] = [
  {
    call: 'preview',
    method: 'POST',
    path: '/v1/preview',
    right: 'read',
    scope: 'token',
    summary: 'Try a filter on messages',
    description:
      'Says for each message of the request what a destination with this filter would do with it. Nothing is sent or stored, and Kafka is not needed. A filter with a fault is answered with 422, which names the fault.',
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
        messages: [
          { type: 'track', userId: 'u1', event: 'Order Completed', properties: { total: 30 }, messageId: 'order-4711' },
        ],
      },
    },
    status: 200,
    answer,
    problems: ['faulty'],
  },
  {
    call: 'preview_source',
    method: 'POST',
    path: '/v1/sources/{source}/preview',
    right: 'read',
    showsContent: true,
    scope: 'within',
    summary: 'Try a filter on the last events of a source',
    description:
      'Reads the last events of the source, as `GET /v1/sources/{source}/events` does, and says for each what a destination with this filter would do with it. Nothing is sent. The call is in the audit trail.',
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
    problems: ['not_found', 'conflict', 'busy', 'faulty'],
  },
]
