import { logKinds, logOutcomes, logVerdicts } from '../delivery-log/log-record.ts'
import { groupings } from '../delivery-log/groups.ts'
import { deliveryStates } from '../delivery-log/delivery-state.ts'
import type { AdminRoute } from './admin-route.ts'

// Routes of the delivery log. A filter is sent in the body of a request and not in its URL. Proxies write
// URLs to their logs, and a filter may contain a user id.

const name = { type: 'string', minLength: 1, maxLength: 1_000 }
const given = { type: 'string', minLength: 10, maxLength: 40 }
const count = { type: 'integer', minimum: 0 }
const time = { type: 'string', format: 'date-time' }
const orNull = (schema: object): object => ({ anyOf: [schema, { type: 'null' }] })
const text = orNull({ type: 'string' })

const filterProperties = {
  from: {
    ...given,
    description:
      'The beginning of the time range, which is included, in ISO 8601. Without a zone, it is in UTC. The default is an hour ago.',
  },
  to: {
    ...given,
    description:
      'The end of the time range, which is excluded, in ISO 8601. Without a zone, it is in UTC. The default is now.',
  },
  destination: name,
  hook: { ...name, description: 'The id of a URL of a destination.' },
  source: name,
  messageId: name,
  user: {
    ...name,
    description:
      'The id of a user: the `userId`, or the `anonymousId` if there is none. The log has only a keyed hash of it, for which `sluice admin` needs `attempts.userKey`.',
  },
  value: {
    ...name,
    description:
      'The value of a field that `attempts.index` names, such as an order number. The log has only a keyed hash of it, as of users.',
  },
  kinds: { type: 'array', items: { enum: [...logKinds] }, minItems: 1, maxItems: logKinds.length },
  outcome: { enum: logOutcomes.slice(1) },
  status: { type: 'integer', minimum: 100, maximum: 599 },
  reason: { ...name, description: 'Why the delivery was parked, dead, left out or filtered.' },
  replay: { ...name, description: 'The id of the replay that sent the message again.' },
  isFailed: {
    type: 'boolean',
    description: 'If it is true, only failed attempts and dead letters are found.',
  },
}

const recordProperties = {
  at: time,
  kind: { enum: [...logKinds] },
  isEnd: { type: 'boolean', description: 'Whether this is the end of the delivery.' },
  weight: {
    ...count,
    description:
      'The number of deliveries that the record stands for. Not every success has a record of its own.',
  },
  destination: text,
  hook: text,
  source: text,
  messageId: text,
  messageType: text,
  origin: {
    type: 'object',
    required: ['topic', 'partition', 'offset'],
    properties: { topic: { type: 'string' }, partition: count, offset: count },
    description: 'The record of Kafka that has the message, as long as Kafka keeps it.',
  },
  attempt: { ...count, description: 'The number of the try. It is 0 before the first try.' },
  verdict: orNull({ enum: logVerdicts.slice(1) }),
  outcome: orNull({ enum: logOutcomes.slice(1) }),
  status: orNull({ type: 'integer' }),
  durationMs: orNull({ type: 'number', minimum: 0 }),
  reason: text,
  error: { ...text, description: 'An error code, such as ECONNREFUSED.' },
  dueAt: {
    ...orNull(time),
    description:
      'The time when the parked delivery is due. It is null if the delivery waits for its turn in the queue of its destination.',
  },
  firstSeenAt: time,
  user: { ...text, description: 'A keyed hash of the user. It is null if no key is set.' },
  replay: text,
  answer: {
    ...text,
    description:
      'The beginning of the answer to a failed request. The log has it only if `attempts.answers` is on. It is null if the token sees no content, and the link no answers.',
  },
}
const recordSchema = {
  title: 'LogRecord',
  type: 'object',
  required: Object.keys(recordProperties),
  properties: recordProperties,
}

const deliverySchema = {
  title: 'LogDelivery',
  type: 'object',
  required: ['destination', 'state', 'dueAt', 'records'],
  properties: {
    destination: { ...text, description: 'It is null if the message came to no destination.' },
    state: { enum: [...deliveryStates] },
    dueAt: {
      ...orNull(time),
      description: 'The time when the delivery is tried again. It is null if the delivery does not wait.',
    },
    records: {
      type: 'array',
      items: recordSchema,
      description: 'The records of the delivery. The oldest one is the first.',
    },
  },
}

const counted = ['succeeded', 'failed', ...logKinds.filter((kind) => kind !== 'attempted')]
const minuteProperties = {
  minute: { ...time, description: 'The time when the minute begins.' },
  ...Object.fromEntries(counted.map((one) => [one, count])),
  durationMs: {
    ...orNull({
      type: 'object',
      required: ['p50', 'p95', 'p99'],
      properties: { p50: { type: 'number' }, p95: { type: 'number' }, p99: { type: 'number' } },
    }),
    description:
      'How long attempts took, within 6 % (in ClickHouse in steps of 0.1 ms). It is null if there was no attempt.',
  },
}

const groupingProperties = {
  step: {
    enum: ['1m', '5m', '15m', '30m', '1h', '6h', '24h'],
    description: 'The length of a step. There may be 1,500 steps. The default is 1m.',
  },
  groupBy: {
    enum: groupings.filter((by) => by !== 'dead'),
    description:
      '`status`: by the status of answers, or by the outcome of requests without an answer. `all`, which is the default with `step`: all are one group.',
  },
  top: {
    type: 'integer',
    minimum: 1,
    maximum: 10_000,
    description:
      'The most groups: those with most failed requests and dead letters, then those with most requests. The default is 10.',
  },
}
const numbers = { type: 'array', items: count }
const groupProperties = { key: { type: 'string' }, succeeded: numbers, failed: numbers, dead: numbers }
const groupedProperties = {
  times: { type: 'array', items: time, description: 'When each step begins.' },
  groups: {
    type: 'array',
    description: 'Each list of a group has a number for each of `times`.',
    items: {
      title: 'LogGroup',
      type: 'object',
      required: Object.keys(groupProperties),
      properties: groupProperties,
    },
  },
  others: { ...count, description: 'How many groups are left out.' },
}

const deadProperties = {
  destination: { ...text, description: 'It is null if the message came to no destination.' },
  reason: { type: 'string', description: 'Why the deliveries were given up.' },
  count,
  firstAt: { ...time, description: 'The beginning of the step that has the first of them.' },
  lastAt: { ...time, description: 'The end of the step that has the last of them, or of the time range.' },
}

const at = '2026-07-23T14:03:12.481Z'
const record = {
  at,
  kind: 'attempted',
  isEnd: false,
  weight: 1,
  destination: 'erp',
  hook: 'main',
  source: 'shop',
  messageId: 'order-4711',
  messageType: 'track',
  origin: { topic: 'sluice.events', partition: 3, offset: 182_004 },
  attempt: 1,
  verdict: 'retry',
  outcome: 'answer',
  status: 503,
  durationMs: 41.2,
  reason: null,
  error: null,
  dueAt: null,
  firstSeenAt: '2026-07-23T14:03:12.402Z',
  user: 'a1b2c3d4e5f6',
  replay: null,
  answer: null,
}
const dueAt = '2026-07-23T14:04:12.483Z'
const parked = {
  ...record,
  at: '2026-07-23T14:03:12.483Z',
  kind: 'parked',
  hook: null,
  verdict: null,
  outcome: null,
  status: null,
  durationMs: null,
  reason: 'failed',
  dueAt,
}
const failures = { destination: 'erp', isFailed: true, from: '2026-07-23T14:00:00.000Z' }
const range = { from: '2026-07-23T14:00:00.000Z', to: '2026-07-23T15:00:00.000Z' }

export const ofMessage = {
  message: {
    schema: { type: 'string', minLength: 1, maxLength: 1_000 },
    description: 'The `messageId`. If it has slashes, which some proxies refuse, use the search instead.',
    example: 'order-4711',
  },
} as const

export const logRoutes: readonly AdminRoute[] = [
  {
    call: 'show_log',
    method: 'GET',
    path: '/v1/log',
    right: 'read',
    scope: 'installation',
    summary: 'How far back the delivery log reaches, and how far its index is',
    description:
      'Describes the index that this process asks. This is the index of `index.url`, or else of `clickhouse.url`, or else of `index.folder`.',
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['oldest', 'newest', 'records', 'behindMs'],
        properties: {
          oldest: orNull(time),
          newest: orNull(time),
          records: count,
          behindMs: {
            ...orNull({ type: 'number', minimum: 0 }),
            description:
              'The age of the records that are indexed now. It is 0 if all records are indexed, and null while it is not known.',
          },
        },
      },
      example: { oldest: '2026-07-16T14:00:00.012Z', newest: at, records: 48_210_377, behindMs: 0 },
    },
    problems: ['busy', 'log_unavailable'],
  },
  {
    call: 'show_message',
    method: 'GET',
    path: '/v1/log/messages/{message}',
    right: 'read',
    scope: 'within',
    summary: 'What became of a message',
    description:
      'Returns each delivery of the message, from its first state to its last. The log does not have the content of the message: `origin` names the record of Kafka that has it, and `/v1/log/messages/{message}/content` shows it.',
    params: ofMessage,
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['messageId', 'deliveries'],
        properties: {
          messageId: { type: 'string' },
          deliveries: { type: 'array', items: deliverySchema },
        },
      },
      example: {
        messageId: 'order-4711',
        deliveries: [{ destination: 'erp', state: 'waiting', dueAt, records: [record, parked] }],
      },
    },
    problems: ['not_found', 'answer_too_large', 'busy', 'log_unavailable'],
  },
  {
    call: 'search_log',
    method: 'POST',
    path: '/v1/log/search',
    right: 'read',
    scope: 'within',
    summary: 'Search the delivery log, newest first',
    description:
      'Finds the records for which all given conditions hold. To get the next page, repeat the request with the `cursor` of this page. If the request had no `from`, add the `from` of the answer.',
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: {
          ...filterProperties,
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: 1_000,
            description: 'The most records of a page. The default is 100.',
          },
          cursor: { type: 'string', minLength: 1, maxLength: 100 },
        },
      },
      example: { ...failures, limit: 50 },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['from', 'to', 'records', 'cursor'],
        properties: {
          from: time,
          to: time,
          records: { type: 'array', items: recordSchema },
          cursor: { ...text, description: 'The beginning of the next page. It is null on the last page.' },
        },
      },
      example: { ...range, records: [record], cursor: 'NDk1NjI5LjExNA' },
    },
    problems: ['answer_too_large', 'busy', 'log_unavailable'],
  },
  {
    call: 'count_log',
    method: 'POST',
    path: '/v1/log/stats',
    right: 'read',
    scope: 'within',
    summary: 'Count deliveries and their durations by the minute, or by steps and groups',
    description:
      'Counts the states for which all given conditions hold, in ascending order of the minutes. Minutes without such a state are left out. Records count with their weights, so deliveries without a record of their own are counted too. With `step` or `groupBy`, the answer has `times`, `groups` and `others` instead of `minutes`: a list of numbers for each group, so 10,000 destinations fit into one answer.',
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: { ...filterProperties, ...groupingProperties },
      },
      example: { destination: 'erp', ...range },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['from', 'to'],
        properties: {
          from: time,
          to: time,
          minutes: {
            type: 'array',
            items: {
              title: 'LogMinute',
              type: 'object',
              required: Object.keys(minuteProperties),
              properties: minuteProperties,
            },
          },
          ...groupedProperties,
        },
      },
      example: {
        ...range,
        minutes: [
          {
            minute: '2026-07-23T14:03:00.000Z',
            ...Object.fromEntries(counted.map((one) => [one, 0])),
            succeeded: 5_912,
            failed: 88,
            parked: 88,
            durationMs: { p50: 31.2, p95: 104, p99: 880 },
          },
        ],
      },
    },
    problems: ['answer_too_large', 'busy', 'log_unavailable'],
  },
  {
    call: 'summarize_dead_letters',
    method: 'POST',
    path: '/v1/dead-letters/summary',
    right: 'read',
    scope: 'within',
    summary: 'Count dead letters by destination and reason',
    description:
      'Counts what has become a dead letter in the time range, by the delivery log. It does not know which of them a replay has sent since: the preview of a replay counts what is left. Times are those of steps, whose length depends on the time range.',
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: {
          from: {
            ...given,
            description:
              'The beginning of the time range, which is included, in ISO 8601. Without a zone, it is in UTC. The default is a day ago. The range has 31 days at most.',
          },
          to: filterProperties.to,
          destination: name,
          source: name,
          reason: name,
          top: {
            type: 'integer',
            minimum: 1,
            maximum: 1_000,
            description: 'The most groups: those with most dead letters. The default is 100.',
          },
        },
      },
      example: { destination: 'erp', top: 10 },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['from', 'to', 'stepSeconds', 'groups', 'others'],
        properties: {
          from: time,
          to: time,
          stepSeconds: { ...count, description: 'The length of a step.' },
          groups: {
            type: 'array',
            description: 'Those with most dead letters come first.',
            items: {
              title: 'DeadLetterGroup',
              type: 'object',
              required: Object.keys(deadProperties),
              properties: deadProperties,
            },
          },
          others: { ...count, description: 'How many groups are left out.' },
        },
      },
      example: {
        from: '2026-07-22T15:00:00.000Z',
        to: '2026-07-23T15:00:00.000Z',
        stepSeconds: 60,
        groups: [
          {
            destination: 'erp',
            reason: 'expired',
            count: 27_778,
            firstAt: '2026-07-23T14:00:00.000Z',
            lastAt: '2026-07-23T14:31:00.000Z',
          },
        ],
        others: 0,
      },
    },
    problems: ['answer_too_large', 'busy', 'log_unavailable'],
  },
]
