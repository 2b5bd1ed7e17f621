import type { AdminRoute } from './admin-route.ts'
import { limited } from './limited.ts'
import { ofReplay } from './replay-routes.ts'

const count = { type: 'integer', minimum: 0 }

const auditSchema = {
  type: 'object',
  required: ['entries'],
  properties: {
    entries: {
      type: 'array',
      items: {
        type: 'object',
        required: ['at', 'by', 'action', 'replay', 'destination', 'records', 'detail'],
        properties: {
          at: { type: 'string', format: 'date-time' },
          by: {
            type: 'string',
            description: 'The name of a token, a user of the command line, or a worker.',
          },
          action: {
            enum: [
              'created',
              'begun',
              'taken_over',
              'stopped',
              'resumed',
              'done',
              'destination_resumed',
              'destination_retried',
              'destination_dropped',
            ],
          },
          replay: { anyOf: [{ type: 'string' }, { type: 'null' }] },
          destination: {
            anyOf: [{ type: 'string' }, { type: 'null' }],
            description:
              'The destination that was resumed, or whose messages were tried at once or given up.',
          },
          records: { anyOf: [count, { type: 'null' }] },
          detail: { type: 'string' },
        },
      },
    },
  },
}

export const auditRoute: AdminRoute = {
  call: 'list_audit',
  method: 'GET',
  path: '/v1/audit',
  right: 'admin',
  summary: 'Who did what, newest first',
  description: 'Of the last 90 days, the command line and the workers too.',
  query: { ...limited, replay: { ...ofReplay.replay, description: 'Only of this replay.' } },
  status: 200,
  answer: {
    schema: auditSchema,
    example: {
      entries: [
        {
          at: '2026-07-23T15:15:00.000Z',
          by: 'ann',
          action: 'created',
          replay: ofReplay.replay.example,
          destination: null,
          records: 27_778,
          detail: 'dead letters of destination erp',
        },
      ],
    },
  },
  problems: [],
}
