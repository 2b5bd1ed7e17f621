import type { AdminRoute } from './admin-route.ts'
import { idempotent } from './idempotency.ts'
import { limited } from './limited.ts'

const id = '20260723-151500-3f9a2c'
const name = { type: 'string', minLength: 1, maxLength: 1_000 }
const time = {
  type: 'string',
  minLength: 10,
  maxLength: 40,
  description: 'A time in ISO 8601. Without a zone, it is in UTC.',
}
const count = { type: 'integer', minimum: 0 }

const selectionSchema = {
  title: 'ReplaySelection',
  type: 'object',
  additionalProperties: false,
  required: ['of'],
  properties: {
    of: { enum: ['dead-letters', 'events'] },
    destination: {
      ...name,
      description:
        'A replay of dead letters takes only those of this destination. A replay of events needs this field: it names the destination that gets them.',
    },
    source: name,
    reason: { ...name, description: 'A replay of dead letters takes only those with this reason.' },
    messageId: name,
    from: {
      ...time,
      description:
        'The beginning of the time range, which is included. What counts is the time at which the event was taken, or at which the delivery became a dead letter.',
    },
    to: { ...time, description: 'The end of the time range, which is excluded.' },
  },
}

/** The body of a request for a replay, and of its preview. */
const orderSchema = {
  title: 'ReplayOrder',
  type: 'object',
  additionalProperties: false,
  required: ['selection'],
  properties: {
    selection: selectionSchema,
    perSecond: {
      type: 'integer',
      minimum: 1,
      maximum: 1_000_000,
      description: 'Records a second, at most; default 1,000.',
    },
    again: {
      type: 'boolean',
      description: 'True: also what other replays have sent. Default false: this is left out.',
    },
    all: {
      type: 'boolean',
      description:
        'True: the selection may have no condition, and then takes everything that Kafka still has. Without it, a selection needs a condition. A preview needs no `all`.',
    },
  },
}

const tallySchema = {
  title: 'ReplayTally',
  type: 'object',
  required: ['records', 'bytes', 'leftOut'],
  properties: {
    records: count,
    bytes: count,
    leftOut: {
      type: 'object',
      additionalProperties: count,
      description: 'The records that are not sent again, by reason.',
    },
  },
}

const previewSchema = {
  title: 'ReplayPreview',
  type: 'object',
  required: ['selection', 'counted', 'groups', 'again', 'isComplete'],
  properties: {
    selection: selectionSchema,
    counted: tallySchema,
    groups: {
      type: 'array',
      description:
        'What would be sent, by destination and reason, largest first; at most 1,001. Those without both are all others.',
      items: {
        type: 'object',
        required: ['destination', 'reason', 'records', 'bytes'],
        properties: {
          destination: {
            anyOf: [name, { type: 'null' }],
            description: 'null: they go back to the topic that they came from.',
          },
          reason: {
            anyOf: [{ type: 'string' }, { type: 'null' }],
            description: 'Of the dead letters; null for events.',
          },
          records: count,
          bytes: count,
        },
      },
    },
    again: { type: 'boolean', description: 'Whether what other replays have sent was counted, too.' },
    isComplete: {
      type: 'boolean',
      description: 'It is false if the time was too short to look at all records.',
    },
  },
}

const replayStates = ['waiting', 'running', 'delivering', 'stopped', 'done']

const replaySchema = {
  title: 'Replay',
  type: 'object',
  required: [
    'id',
    'state',
    'detail',
    'selection',
    'perSecond',
    'again',
    'createdBy',
    'createdAt',
    'counted',
    'sent',
    'read',
  ],
  properties: {
    id: name,
    state: {
      enum: replayStates,
      description:
        '`delivering`: all records are handed to the workers, and some still wait for their turn. `done`: none of them waits. What has failed is tried again like any other message.',
    },
    detail: { type: 'string', description: 'Why the replay stopped, if nobody asked for that.' },
    selection: selectionSchema,
    perSecond: { type: 'integer', minimum: 1 },
    again: { type: 'boolean', description: 'Whether it also sends what other replays have sent.' },
    createdBy: { type: 'string' },
    createdAt: { type: 'string', format: 'date-time' },
    counted: {
      anyOf: [tallySchema, { type: 'null' }],
      description: 'It is null if the time was too short to count all records.',
    },
    sent: tallySchema,
    read: {
      type: 'object',
      required: ['offsets', 'of'],
      properties: { offsets: count, of: count },
      description: 'The share of the topic that was looked at.',
    },
    waiting: {
      anyOf: [count, { type: 'null' }],
      description:
        'How many of the sent records still wait for their turn, at most, because those of other replays to the same destinations are counted too. It is null if the number is not known.',
    },
    secondsLeft: {
      anyOf: [count, { type: 'null' }],
      description: 'The time until all records are handed to the workers.',
    },
    owner: {
      anyOf: [{ type: 'string' }, { type: 'null' }],
      description: 'The worker that runs the replay, or ran it last.',
    },
    owners: { ...count, description: 'How often a worker has begun the replay, or continued it.' },
    notedAt: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
  },
}

const selection = {
  of: 'dead-letters',
  destination: 'erp',
  from: '2026-07-23T14:00:00.000Z',
  to: '2026-07-23T15:00:00.000Z',
}
const tally = { records: 27_778, bytes: 5_000_040, leftOut: {} }
const replayExample = {
  id,
  state: 'running',
  detail: '',
  selection,
  perSecond: 200,
  again: false,
  createdBy: 'ann',
  createdAt: '2026-07-23T15:15:00.000Z',
  counted: tally,
  sent: { records: 8_000, bytes: 1_440_000, leftOut: {} },
  read: { offsets: 24_100, of: 83_334 },
  secondsLeft: 99,
  owner: 'worker-0:7:a1b2c3',
  owners: 1,
  notedAt: '2026-07-23T15:15:40.000Z',
}

export const ofReplay = {
  replay: {
    schema: { type: 'string', minLength: 1, maxLength: 64 },
    description: 'The id of a replay.',
    example: id,
  },
} as const

export const replayRoutes: readonly AdminRoute[] = [
  {
    call: 'preview_replay',
    method: 'POST',
    path: '/v1/replays/preview',
    right: 'operate',
    scope: 'within',
    summary: 'Count what a replay would send',
    description:
      'Reads Kafka for 20 seconds at the most. Nothing is sent. The body is that of the call that sends.',
    body: { schema: orderSchema, example: { selection, perSecond: 200 } },
    status: 200,
    answer: {
      schema: previewSchema,
      example: {
        selection,
        counted: tally,
        groups: [{ destination: 'erp', reason: 'expired', records: 27_778, bytes: 5_000_040 }],
        again: false,
        isComplete: true,
      },
    },
    problems: ['conflict', 'busy'],
  },
  {
    call: 'create_replay',
    method: 'POST',
    path: '/v1/replays',
    right: 'operate',
    scope: 'within',
    summary: 'Send again',
    description:
      'What another replay has sent, or is about to, is left out, unless `again` is true. Counts as a preview does, and then makes the workers send the records again. If the time is too short to count all records, the replay is created nevertheless, and `counted` is null.',
    headers: idempotent,
    body: { schema: orderSchema, example: { selection, perSecond: 200 } },
    status: 201,
    answer: { schema: replaySchema, example: { ...replayExample, state: 'waiting' } },
    problems: ['conflict', 'busy', 'other_request'],
  },
  {
    call: 'list_replays',
    method: 'GET',
    path: '/v1/replays',
    right: 'read',
    scope: 'within',
    summary: 'List replays, newest first',
    description:
      'Those of the last 90 days. To get the next page, repeat the request with the `cursor` of this page.',
    query: {
      ...limited,
      state: {
        schema: { type: 'string', enum: replayStates },
        description: 'Lists only replays in this state.',
        example: 'running',
      },
      cursor: {
        schema: { type: 'string', pattern: '^[0-9]{1,15}[.].{1,100}$' },
        description: 'The beginning of the page, from the answer before.',
        example: `1784819700000.${id}`,
      },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['replays', 'cursor'],
        properties: {
          replays: { type: 'array', items: replaySchema },
          cursor: {
            anyOf: [{ type: 'string' }, { type: 'null' }],
            description: 'The beginning of the next page; null after the last one.',
          },
        },
      },
      example: { replays: [replayExample], cursor: null },
    },
    problems: [],
  },
  {
    call: 'show_replay',
    method: 'GET',
    path: '/v1/replays/{replay}',
    right: 'read',
    scope: 'within',
    summary: 'How far a replay is',
    description:
      'Returns what the owner of the replay noted last. While it sends, the owner notes this four times a second.',
    params: ofReplay,
    status: 200,
    answer: { schema: replaySchema, example: replayExample },
    problems: ['not_found'],
  },
  {
    call: 'stop_replay',
    method: 'POST',
    path: '/v1/replays/{replay}/stop',
    right: 'operate',
    scope: 'within',
    summary: 'Stop a replay',
    description: 'Its owner stops within two seconds. Records that it has written by then are delivered.',
    params: ofReplay,
    status: 200,
    answer: { schema: replaySchema, example: { ...replayExample, state: 'stopped' } },
    problems: ['not_found', 'conflict'],
  },
  {
    call: 'resume_replay',
    method: 'POST',
    path: '/v1/replays/{replay}/resume',
    right: 'operate',
    scope: 'within',
    summary: 'Let a stopped replay go on',
    description: 'The replay goes on where it stopped.',
    params: ofReplay,
    status: 200,
    answer: { schema: replaySchema, example: replayExample },
    problems: ['not_found', 'conflict'],
  },
]
