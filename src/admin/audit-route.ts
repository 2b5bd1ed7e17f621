import type { AdminRoute } from './admin-route.ts'
import { limited } from './limited.ts'
import { ofReplay } from './replay-routes.ts'

const time = { type: 'string', minLength: 10, maxLength: 40 } as const
const count = { type: 'integer', minimum: 0 }

const auditSchema = {
  type: 'object',
  required: ['entries', 'cursor', 'completeSince'],
  properties: {
    entries: {
      type: 'array',
      items: {
        title: 'AuditEntry',
        type: 'object',
        required: ['at', 'lastAt', 'count', 'by', 'action', 'replay', 'destination', 'records', 'detail'],
        properties: {
          at: { type: 'string', format: 'date-time' },
          lastAt: { type: 'string', format: 'date-time' },
          count: {
            ...count,
            description:
              'How often it was done from `at` to `lastAt`: the same by the same on the same within an hour is one entry.',
          },
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
              'catalog_changed',
              'destination_tested',
              'user_searched',
              'content_read',
              'tokens_changed',
              'signed_in',
              'signed_out',
              'sessions_ended',
              'links_changed',
            ],
          },
          replay: { anyOf: [{ type: 'string' }, { type: 'null' }] },
          destination: {
            anyOf: [{ type: 'string' }, { type: 'null' }],
            description:
              'The destination that was resumed or tested, or whose messages were tried at once or given up.',
          },
          records: { anyOf: [count, { type: 'null' }] },
          detail: { type: 'string' },
        },
      },
    },
    cursor: {
      anyOf: [{ type: 'string' }, { type: 'null' }],
      description: 'The beginning of the next page; null after the last one.',
    },
    completeSince: {
      anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }],
      description:
        'Earlier entries may be missing, because only 20,000 are in memory. null: all of the 90 days are there.',
    },
  },
}

export const auditRoute: AdminRoute = {
  call: 'list_audit',
  method: 'GET',
  path: '/v1/audit',
  right: 'admin',
  scope: 'within',
  summary: 'Who did what, newest first',
  description:
    'Of the last 90 days, the command line and the workers too. To get the next page, repeat the request with the `cursor` of this page.',
  query: {
    ...limited,
    replay: { ...ofReplay.replay, description: 'Only of this replay.' },
    from: {
      schema: time,
      description: 'The beginning of the time range, included. ISO 8601; without a zone it is UTC.',
      example: '2026-07-23T00:00:00Z',
    },
    to: {
      schema: time,
      description: 'The end of that time range, excluded.',
      example: '2026-07-24T00:00:00Z',
    },
    cursor: {
      schema: { type: 'string', pattern: '^[0-9]{1,15}$' },
      description: 'The beginning of the page, from the answer before.',
      example: '4711',
    },
  },
  status: 200,
  answer: {
    schema: auditSchema,
    example: {
      entries: [
        {
          at: '2026-07-23T15:15:00.000Z',
          lastAt: '2026-07-23T15:15:00.000Z',
          count: 1,
          by: 'ann',
          action: 'created',
          replay: ofReplay.replay.example,
          destination: null,
          records: 27_778,
          detail: 'dead letters of destination erp',
        },
      ],
      cursor: '4711',
      completeSince: null,
    },
  },
  problems: [],
}
