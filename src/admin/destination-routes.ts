import type { AdminRoute } from './admin-route.ts'

// Routes that test destinations, and routes about destinations that Sluice has paused automatically.

const time = { type: 'string', format: 'date-time' }
const pausedProperties = {
  destination: { type: 'string' },
  since: { ...time, description: 'The time since which all of its URLs have failed.' },
  pausedAt: time,
  lastOutcome: { type: 'string', description: 'The outcome of its last request.' },
  cause: {
    type: 'string',
    enum: ['failing', 'gone'],
    description: '`failing`: its URLs have failed for too long. `gone`: they have answered 410.',
  },
}
const pausedSchema = {
  title: 'PausedDestination',
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
    description:
      'Wait this number of seconds before you replay the messages that the destination missed. A worker that does not know yet that it is resumed stops the replay.',
  },
}

const paused = {
  destination: 'crm',
  since: '2026-07-23T14:00:03.000Z',
  pausedAt: '2026-07-28T14:00:12.000Z',
  lastOutcome: 'status 503',
  cause: 'failing',
}

export const destination = {
  schema: { type: 'string', minLength: 1, maxLength: 100 },
  description: 'The id of a destination.',
  example: 'crm',
} as const

const textOrNull = { type: ['string', 'null'] }
const loginProperties = {
  kind: { type: 'string', enum: ['basic', 'oauth2'] },
  tokenOrigin: { ...textOrNull, description: 'The scheme, host and port of the token endpoint of OAuth 2.' },
  problem: {
    ...textOrNull,
    description: 'Why no token came, so that nothing was sent. It is null if one came, or if none is needed.',
  },
  durationMs: {
    type: ['integer', 'null'],
    minimum: 0,
    description: 'How long the request for the token took. It is null if none is needed.',
  },
}
const trialProperties = {
  hook: { type: 'string', description: 'The id of the URL.' },
  origin: { type: 'string', description: 'The scheme, host and port of the URL.' },
  login: {
    anyOf: [
      {
        title: 'LoginTrial',
        type: 'object',
        required: Object.keys(loginProperties),
        properties: loginProperties,
      },
      { type: 'null' },
    ],
    description: 'How the request has logged in. It is null if it has only its headers.',
  },
  certificateEndsAt: {
    type: ['string', 'null'],
    format: 'date-time',
    description: 'When the client certificate of the URL ends. It is null if it has none.',
  },
  verdict: {
    type: 'string',
    enum: ['delivered', 'retry', 'final'],
    description:
      'What this outcome would mean in a delivery. `delivered`: the URL accepted the message. `retry`: Sluice would try the URL again. `final`: it would not.',
  },
  outcome: { type: 'string', description: 'The outcome of the request, by its name in the delivery log.' },
  status: {
    type: ['integer', 'null'],
    description: 'The status of the answer. It is null if there was no answer.',
  },
  durationMs: {
    type: 'integer',
    minimum: 0,
    description: 'The time from the start of the request to its outcome. It includes the time to connect.',
  },
  answer: {
    ...textOrNull,
    description:
      'The first 2 KB of the body of an answer that is not a 2xx and is not compressed. Secrets of the destination are masked where they appear unchanged.',
  },
  advice: { ...textOrNull, description: 'What can be done. It is null if the URL accepts the message.' },
}
const testProperties = {
  destination: { type: 'string' },
  messageId: { type: 'string', description: 'The `messageId` of the message that was sent.' },
  isAccepted: { type: 'boolean', description: 'Whether every tested URL accepts the message.' },
  verdict: {
    type: ['string', 'null'],
    enum: ['delivered', 'retry', 'dead_letter', null],
    description:
      'What would become of a delivery to all URLs of the destination. It is delivered if one URL accepts it. The verdict is null if only one of several URLs was tested.',
  },
  hooks: {
    type: 'array',
    items: {
      title: 'HookTrial',
      type: 'object',
      required: Object.keys(trialProperties),
      properties: trialProperties,
    },
  },
  notes: {
    type: 'array',
    items: { type: 'string' },
    description: 'Why a worker would not send this message now, such as a filter or the state.',
  },
}

const retryProperties = {
  destination: { type: 'string' },
  messageId: { ...textOrNull, description: 'The only message that is tried. It is null if all are tried.' },
  isPreview: { type: 'boolean', description: 'It is true if nothing was changed.' },
  waiting: {
    type: ['integer', 'null'],
    description:
      'How many messages wait. It is always null at present, because the retry topics hold the messages of all destinations, and nobody counts those of one.',
  },
  askedAt: time,
  askedBy: { type: 'string' },
  workersKnowWithinSeconds: {
    type: 'integer',
    minimum: 1,
    description: 'A worker that runs begins to send within this number of seconds.',
  },
}

const dropProperties = {
  destination: { type: 'string' },
  isPreview: { type: 'boolean', description: 'It is true if nothing was changed.' },
  waiting: {
    type: ['integer', 'null'],
    description: 'How many messages wait for their turn. It is null if the number is not known.',
  },
  onRetryTopics: {
    type: 'null',
    description:
      'How many messages wait for their next try. It is always null, because nobody counts those of one destination.',
  },
  askedAt: time,
  askedBy: { type: 'string' },
  workersKnowWithinSeconds: {
    type: 'integer',
    minimum: 1,
    description: 'A worker that runs begins within this number of seconds.',
  },
}

export const destinationRoutes: readonly AdminRoute[] = [
  {
    call: 'test_destination',
    method: 'POST',
    path: '/v1/destinations/{destination}/test',
    right: 'operate',
    scope: 'destination',
    summary: 'Send a test message to a destination',
    description:
      'Sends one message to the URLs of a destination, as a worker with the same settings would. The request also has the header `X-Sluice-Test: true`. The state, the filter and the rate limit of the destination do not stop it. The delivery log does not have it. Kafka is not needed. For the defaults, send `{}`.',
    params: { destination },
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: {
          hook: {
            type: 'string',
            minLength: 1,
            maxLength: 100,
            description:
              'The id of the only URL to send to. If it is absent, the message is sent to all URLs.',
          },
          message: {
            type: 'object',
            additionalProperties: true,
            description:
              'A Segment message. If it is absent, a `track` with the event `Sluice Test` is sent.',
          },
        },
      },
      example: { message: { type: 'identify', userId: 'u1', traits: { plan: 'pro' } } },
    },
    status: 200,
    answer: {
      schema: { type: 'object', required: Object.keys(testProperties), properties: testProperties },
      example: {
        destination: 'crm',
        messageId: 'test-0-1785317403000',
        isAccepted: false,
        verdict: 'dead_letter',
        hooks: [
          {
            hook: 'a1b2c3d4',
            origin: 'https://crm.example.com',
            login: {
              kind: 'oauth2',
              tokenOrigin: 'https://login.example.com',
              problem: null,
              durationMs: 61,
            },
            certificateEndsAt: '2027-03-01T00:00:00.000Z',
            verdict: 'final',
            outcome: 'status 401',
            status: 401,
            durationMs: 84,
            answer: '{"error":"bad signature"}',
            advice:
              "The endpoint refuses the signature or a header. Compare the endpoint's secret with sharedSecret, and check the headers of the hook.",
          },
        ],
        notes: [],
      },
    },
    problems: ['not_found', 'busy'],
  },
  {
    call: 'list_paused',
    method: 'GET',
    path: '/v1/paused-destinations',
    right: 'read',
    scope: 'within',
    summary: 'List destinations that Sluice has paused',
    description:
      'Sluice pauses a destination when all of its URLs have failed for the time in its `autoPause` or in `notices.autoPause`, or have answered 410 (Gone). Its messages wait until somebody resumes the destination. With `notices.whileAutoPaused=dead-letter`, they become dead letters (`auto_paused`). The list does not have destinations that are paused in the catalog.',
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
    scope: 'destination',
    summary: 'Resume a destination that Sluice has paused',
    description:
      'Sluice sends to it again, first the messages that have waited. A URL that has answered 410 (Gone) is asked again. Messages that became dead letters meanwhile (`auto_paused`) stay dead letters until a replay.',
    params: { destination },
    status: 200,
    answer: {
      schema: { type: 'object', required: Object.keys(resumedProperties), properties: resumedProperties },
      example: {
        ...paused,
        resumedAt: '2026-07-29T09:30:00.000Z',
        resumedBy: 'ann',
        workersKnowWithinSeconds: 2,
      },
    },
    problems: ['conflict'],
  },
  {
    call: 'retry_destination',
    method: 'POST',
    path: '/v1/destinations/{destination}/retry-now',
    right: 'operate',
    scope: 'destination',
    summary: 'Try now what waits for a retry',
    description:
      'Workers try the messages of a destination that wait on the retry topics after failed tries, without waiting for their next try. They begin with a few, and go on as these arrive. If too many fail, the rest keeps its time. No message is tried twice. Messages far behind the oldest message of a retry topic keep their time too. For all messages, send `{}`.',
    params: { destination },
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: {
          messageId: {
            type: 'string',
            minLength: 1,
            maxLength: 1_000,
            description: 'The `messageId` of the only message to try. If it is absent, all are tried.',
          },
          dryRun: {
            type: 'boolean',
            description: 'If it is true, Sluice only looks whether this can be done.',
          },
        },
      },
      example: {},
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['destination', 'messageId', 'isPreview', 'waiting'],
        properties: retryProperties,
      },
      example: {
        destination: 'crm',
        messageId: null,
        isPreview: false,
        waiting: null,
        askedAt: '2026-07-29T09:30:00.000Z',
        askedBy: 'ann',
        workersKnowWithinSeconds: 2,
      },
    },
    problems: ['not_found', 'conflict'],
  },
  {
    call: 'drop_destination',
    method: 'POST',
    path: '/v1/destinations/{destination}/drop',
    right: 'operate',
    scope: 'destination',
    summary: 'Make dead letters of what waits',
    description:
      'Workers make dead letters of the messages of a destination that wait now, in its queue and on the retry topics. Their `reason` is `dropped`, and a replay sends them after all. Requests in flight end as they would. Messages that come later are not dropped. Messages far behind the oldest message of a retry topic keep their next try. Ask with `dryRun` first: it says how many wait.',
    params: { destination },
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['waiting'],
        properties: {
          waiting: { const: true, description: 'It is always true, because only what waits is dropped.' },
          dryRun: { type: 'boolean', description: 'If it is true, Sluice only says how many wait.' },
        },
      },
      example: { waiting: true, dryRun: true },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['destination', 'isPreview', 'waiting', 'onRetryTopics'],
        properties: dropProperties,
      },
      example: { destination: 'crm', isPreview: true, waiting: 4_200, onRetryTopics: null },
    },
    problems: ['not_found', 'conflict'],
  },
]
