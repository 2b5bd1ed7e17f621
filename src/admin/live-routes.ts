import type { AdminRoute } from './admin-route.ts'

// The route by which a browser sees what happens.

const name = { type: 'string', minLength: 1, maxLength: 1_000 } as const

export const liveRoute: AdminRoute = {
  call: 'live',
  method: 'GET',
  path: '/v1/live',
  right: 'read',
  scope: 'within',
  isStream: true,
  summary: 'See what happens, as it does',
  description:
    'Server-sent events, twice a second. `attempt`: a record of the delivery log, as `POST /v1/log/search` has it. `skipped`: a view is told at most 5 attempts a second, after a first 60, and there were more; `{count}` says how many. `destination`: how the destination of the view is, as `GET /v1/destinations/{destination}/health` has it, first and then when it has changed, so there is no need to ask. `health`: `{destination, condition, since}` of a destination whose condition has changed. `replay`: a replay that has gone on, as `GET /v1/replays/{replay}` has it. `ready` comes first, and all that happens from then on is shown (without Kafka, it comes after 5 s): if its `isComplete` is false, what came after `Last-Event-ID` is not known any more. `end` comes last, with a `reason`: `slow`, `session` or `stopping`. A comment comes every 15 s.',
  query: {
    destination: { schema: name, description: 'Only what concerns this destination.', example: 'erp' },
    source: { schema: name, description: 'Only attempts of messages of this source.', example: 'shop' },
    message: { schema: name, description: 'Only attempts of this message.', example: 'order-4711' },
  },
  headers: {
    'Last-Event-ID': {
      schema: { type: 'string', maxLength: 100 },
      description: 'The `id` of the last event that was seen. Browsers send it when they come back.',
      example: '9f86d081884c.1207',
    },
  },
  status: 200,
  answer: { schema: { type: 'string' }, example: {} },
  problems: [],
}
