import type { AdminRoute } from './admin-route.ts'

// Routes about destinations that Sluice has paused automatically.

const time = { type: 'string', format: 'date-time' }
const pausedProperties = {
  destination: { type: 'string' },
  since: { ...time, description: 'Since when all of its URLs have failed.' },
  pausedAt: time,
  lastOutcome: { type: 'string', description: 'The outcome of its last request.' },
}
const pausedSchema = {
  type: 'object',
  required: Object.keys(pausedProperties),
  properties: pausedProperties,
}
const resumedProperties = {
  ...pausedProperties,
  resumedAt: time,
  resumedBy: { type: 'string' },
  workersKnowWithinSeconds: {
    type: 'integer',
    minimum: 1,
    description: 'Replay what it missed after this time: a worker that does not know yet stops the replay.',
  },
}

const paused = {
  destination: 'crm',
  since: '2026-07-23T14:00:03.000Z',
  pausedAt: '2026-07-28T14:00:12.000Z',
  lastOutcome: 'status 503',
}

export const destinationRoutes: readonly AdminRoute[] = [
  {
    call: 'list_paused',
    method: 'GET',
    path: '/v1/destinations/paused',
    right: 'read',
    summary: 'List destinations that Sluice has paused',
    description:
      'All of their URLs have failed for `notices.autoPause`. Their messages become dead letters (`auto_paused`) until somebody resumes them. Those that the catalog pauses are not among them.',
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['destinations'],
        properties: { destinations: { type: 'array', items: pausedSchema } },
      },
      example: { destinations: [paused] },
    },
    problems: ['conflict'],
  },
  {
    call: 'resume_destination',
    method: 'POST',
    path: '/v1/destinations/{destination}/resume',
    right: 'operate',
    summary: 'Resume a destination that Sluice has paused',
    description:
      'New messages are sent to it again. What has become a dead letter meanwhile stays one until a replay: `reason` is `auto_paused`.',
    params: {
      destination: {
        schema: { type: 'string', minLength: 1, maxLength: 100 },
        description: 'The id of a destination.',
        example: 'crm',
      },
    },
    status: 200,
    answer: {
      schema: { type: 'object', required: Object.keys(resumedProperties), properties: resumedProperties },
      example: {
        ...paused,
        resumedAt: '2026-07-29T09:30:00.000Z',
        resumedBy: 'ann',
        workersKnowWithinSeconds: 16,
      },
    },
    problems: ['conflict'],
  },
]
