import type { AdminRoute } from './admin-route.ts'
import { destination } from './destination-routes.ts'
import { limited } from './limited.ts'

// Routes that say how destinations and workers are. They answer from memory.

const timeOrNull = { type: ['string', 'null'], format: 'date-time' }
const conditions = ['failing', 'gone', 'auto_paused', 'paced', 'paused', 'unknown', 'healthy', 'off']
const condition = {
  title: 'Condition',
  type: 'string',
  enum: conditions,
  description:
    '`failing`: a URL of it fails. `gone`: a URL has answered 410. `auto_paused`: Sluice has paused it. `paced`: messages wait for their turn, or its endpoint takes less than it could get. `unknown`: not all workers tell how it is.',
}
const healthProperties = {
  condition,
  since: { ...timeOrNull, description: 'Since when it is so. It is null if this is not known.' },
  why: { type: 'string', description: 'The reason, for people. It is empty if it is healthy.' },
  nextTryAt: {
    ...timeOrNull,
    description: 'When a message that has failed is tried next. It is null if this is not known.',
  },
  secretEndsAt: {
    ...timeOrNull,
    description: 'From this time on, requests are signed only with `nextSharedSecret`.',
  },
  asOf: {
    type: ['string', 'null'],
    format: 'date-time',
    description:
      'The other figures were true at this time or later. It is null if not all workers tell what waits.',
  },
  waiting: {
    type: ['integer', 'null'],
    description: 'How many messages wait for their turn. It is null if the number is not known.',
  },
  retrying: {
    type: ['integer', 'null'],
    description:
      'How many messages have failed and wait for their next try, at least. It is up to 15 s old. It is null if the number is not known.',
  },
  retryingAtMost: {
    type: ['integer', 'null'],
    description:
      'How many these are at most. It is more than `retrying` for some time after workers have started, while they count what earlier ones have left on the retry topics. It is null if this is not known.',
  },
  oldestWaitingSince: {
    type: ['string', 'null'],
    format: 'date-time',
    description:
      'The time since which the oldest of them waits. It is null if none waits, or if the time is not known.',
  },
  drainedInSeconds: {
    type: ['integer', 'null'],
    description:
      'The time until all of them are sent, at the present rate. It is null if the destination is not on, or if the time is not known.',
  },
  inFlightLimit: {
    type: ['integer', 'null'],
    description:
      'The most requests that all workers together may have in flight at present. It is null if nothing waits, or if the number is not known.',
  },
  perSecondLimit: {
    type: ['number', 'null'],
    description:
      'The most requests a second at present. It is null if there is no limit, or if the limit is not known.',
  },
  isLimitLowered: {
    type: ['boolean', 'null'],
    description:
      'Whether the workers have learned to send less than they could, because the endpoint takes less.',
  },
}

const states = ['on', 'off', 'paused', 'auto_paused']
const failingProperties = {
  since: { type: 'string', format: 'date-time', description: 'The time since which it fails.' },
  isBreakerOpen: { type: 'boolean' },
  answers: {
    type: 'array',
    description: 'The outcomes of the requests of the last five to ten minutes, the most frequent first.',
    items: {
      type: 'object',
      required: ['outcome', 'count'],
      properties: { outcome: { type: 'string' }, count: { type: 'integer' } },
    },
  },
  lastFailureAt: { type: 'string', format: 'date-time' },
  lastSuccessAt: {
    ...timeOrNull,
    description: 'It is null if there was none since the worker has started.',
  },
  loginProblem: {
    type: ['string', 'null'],
    description:
      'Why no token to log in with can be had, so that messages wait. It is null if the last failure was another.',
  },
}
const hooks = {
  type: 'array',
  items: {
    title: 'HookState',
    type: 'object',
    required: [
      'id',
      'origin',
      'login',
      'tokenOrigin',
      'certificateEndsAt',
      'hasOwnAuthorities',
      'isGone',
      'failing',
    ],
    properties: {
      id: { type: 'string' },
      origin: { type: 'string', description: 'The scheme, host and port of the URL.' },
      login: {
        type: ['string', 'null'],
        enum: ['basic', 'oauth2', null],
        description: 'How requests log in, beside their headers.',
      },
      tokenOrigin: {
        type: ['string', 'null'],
        description: 'The scheme, host and port of the token endpoint of OAuth 2.',
      },
      certificateEndsAt: {
        ...timeOrNull,
        description: 'When its client certificate ends. It is null if it has none.',
      },
      hasOwnAuthorities: {
        type: 'boolean',
        description: 'Whether only authorities of its own are trusted (`tls.ca`).',
      },
      isGone: {
        type: 'boolean',
        description:
          'It is true if the URL has answered 410 (Gone). Such a URL gets no requests until it is edited or the destination is resumed.',
      },
      failing: {
        type: ['object', 'null'],
        description: 'How it fails. It is null if no worker says that it does.',
        required: Object.keys(failingProperties),
        properties: failingProperties,
      },
    },
  },
}
const health = {
  title: 'Health',
  type: 'object',
  description: 'What the workers know of it.',
  required: Object.keys(healthProperties),
  properties: healthProperties,
}
const batch = {
  type: ['object', 'null'],
  description: 'How messages are sent together. `null`: each has a request of its own.',
  properties: {
    maxMessages: { type: 'integer' },
    maxBytes: { type: 'integer' },
    maxWait: { type: 'string' },
    format: { type: 'string', enum: ['json', 'ndjson'] },
  },
}
const isSigned = {
  type: 'boolean',
  description: 'Whether requests are signed, by a shared secret or by a key.',
}
const destinationProperties = {
  id: { type: 'string' },
  name: { type: 'string' },
  state: {
    type: 'string',
    enum: states,
    description: '`auto_paused`: it is `on` in the catalog, but Sluice has paused it.',
  },
  labels: { type: 'object', additionalProperties: { type: 'string' } },
  sources: { type: 'array', items: { type: 'string' } },
  filter: {
    type: ['object', 'null'],
    properties: {
      types: { type: 'array', items: { type: 'string' } },
      events: { type: 'array', items: { type: 'string' } },
      historical: { type: 'boolean', description: '`false`: messages from the past are left out.' },
    },
  },
  isSigned,
  strategy: { type: 'string', enum: ['all', 'failover'] },
  maxInFlight: { type: 'integer' },
  rateLimit: {
    type: ['object', 'null'],
    properties: { perSecond: { type: 'number' }, burst: { type: 'integer' } },
  },
  batch,
  hooks,
  health,
}
const asOf = {
  type: 'string',
  format: 'date-time',
  description:
    'When this was read from Kafka. It is a few seconds ago, or longer while Kafka does not answer.',
}
const listProperties = {
  destinations: {
    type: 'array',
    items: {
      title: 'ListedDestination',
      type: 'object',
      required: Object.keys(destinationProperties),
      properties: destinationProperties,
    },
  },
  next: {
    type: ['string', 'null'],
    description:
      'The value of `after` in the request for the next destinations. It is null if there are no more, or with `sort=worst`.',
  },
  cursor: {
    type: ['string', 'null'],
    description:
      'The value of `cursor` in the request for the next destinations. It is null if there are no more.',
  },
  total: { type: 'integer', description: 'How many destinations there are, in all parts of the list.' },
  asOf,
  areAutoPausesKnown: {
    type: 'boolean',
    description:
      'It is false if Kafka has no topic of notices, or if this process may not read it. Destinations that Sluice has paused are then listed as `on`.',
  },
  catalogVersion: { type: 'string', description: 'The version of the catalog, as in `sluice_catalog_info`.' },
}
const idParameter = (description: string, example: string) =>
  ({
    schema: { type: 'string', minLength: 1, maxLength: 100 },
    description,
    example,
  }) as const

const exampleHealth = {
  condition: 'failing',
  since: '2026-07-29T09:15:50.000Z',
  why: '503 from crm.example.com for 14 min, 4,200 wait, oldest 14 min, 310 wait for their next try, next try in 40 s',
  nextTryAt: '2026-07-29T09:30:42.000Z',
  secretEndsAt: null,
  asOf: '2026-07-29T09:30:00.000Z',
  waiting: 4_200,
  retrying: 310,
  retryingAtMost: 310,
  oldestWaitingSince: '2026-07-29T09:16:02.000Z',
  drainedInSeconds: 840,
  inFlightLimit: 12,
  perSecondLimit: 5,
  isLimitLowered: true,
}
const exampleHooks = [
  {
    id: 'a1b2c3d4',
    origin: 'https://crm.example.com',
    login: 'oauth2',
    tokenOrigin: 'https://login.example.com',
    certificateEndsAt: '2027-03-01T00:00:00.000Z',
    hasOwnAuthorities: true,
    isGone: false,
    failing: {
      since: '2026-07-29T09:15:50.000Z',
      isBreakerOpen: true,
      answers: [
        { outcome: 'status 503', count: 1_180 },
        { outcome: 'timeout', count: 12 },
      ],
      lastFailureAt: '2026-07-29T09:30:01.000Z',
      lastSuccessAt: null,
      loginProblem: null,
    },
  },
]

const countOrNull = { type: ['integer', 'null'] }
const workerProperties = {
  name: { type: 'string', description: 'The host and the process id.' },
  version: { type: ['string', 'null'], description: 'It is null if an earlier version runs.' },
  startedAt: timeOrNull,
  units: { type: 'integer', description: 'How many units the worker owns.' },
  toldAt: { type: 'string', format: 'date-time', description: 'When it last told something.' },
  catalogTrouble: {
    type: ['string', 'null'],
    description:
      "What keeps it from the present catalog. In a topic: why it doesn't follow it, which objects it can't use, or which were overwritten. In a file: the faults of the last edit, or of some files of a folder. It is null if nothing does.",
  },
  catalogCopyAt: {
    ...timeOrNull,
    description: 'When the copy of the catalog was written that it uses instead. It is null if it uses none.',
  },
}
const attentionProperties = {
  destination: { type: 'string' },
  name: { type: 'string' },
  condition,
  since: timeOrNull,
  why: { type: 'string' },
  next: { type: 'string', description: 'The command to run next.' },
}
const objectOf = (properties: Readonly<Record<string, object>>, type: unknown = 'object') => ({
  type,
  required: Object.keys(properties),
  properties,
})
const statusProperties = {
  asOf,
  workers: { type: 'array', items: { title: 'Worker', ...objectOf(workerProperties) } },
  units: {
    ...objectOf({ told: { type: 'integer' }, of: { type: 'integer' } }, ['object', 'null']),
    description: 'How many units have an owner that tells, of how many. It is null if no worker tells.',
  },
  lag: {
    ...objectOf({ records: { type: 'integer' }, oldestAt: timeOrNull }, ['object', 'null']),
    description:
      'The records that are not settled, without retries and without what waits in queues. It is null if not all workers tell.',
  },
  retrying: { ...countOrNull, description: 'How many messages wait for their next try.' },
  waiting: { ...countOrNull, description: 'How many messages wait for their turn.' },
  destinations: {
    ...objectOf(Object.fromEntries(['total', ...conditions].map((one) => [one, { type: 'integer' }]))),
    description: 'How many destinations are in each condition.',
  },
  attention: {
    type: 'array',
    items: { title: 'Attention', ...objectOf(attentionProperties) },
    description: 'The ten destinations that need attention most, the worst first.',
  },
  needAttention: { type: 'integer', description: 'How many destinations need attention.' },
  untold: {
    type: 'integer',
    description: 'How many more destinations fail, of which workers do not tell because they are too many.',
  },
  unknown: { type: 'array', items: { type: 'string' }, description: 'What is not known, for people.' },
}

export const statusRoutes: readonly AdminRoute[] = [
  {
    call: 'show_status',
    method: 'GET',
    path: '/v1/status',
    right: 'read',
    scope: 'installation',
    summary: 'Which destinations need attention, what waits, and which workers run',
    description:
      'Shows what `sluice status` shows. The server answers from memory, also while Kafka is away: `asOf` says since when the picture is.',
    status: 200,
    answer: {
      schema: { title: 'Status', ...objectOf(statusProperties) },
      example: {
        asOf: '2026-07-29T09:30:02.000Z',
        workers: [
          {
            name: 'sluice-worker-0:17',
            version: '1.0.0',
            startedAt: '2026-07-28T09:30:00.000Z',
            units: 12,
            toldAt: '2026-07-29T09:30:00.000Z',
            catalogTrouble: null,
            catalogCopyAt: null,
          },
        ],
        units: { told: 12, of: 12 },
        lag: { records: 31, oldestAt: '2026-07-29T09:30:01.800Z' },
        retrying: 310,
        waiting: 4_200,
        destinations: {
          total: 10_000,
          ...Object.fromEntries(conditions.map((one) => [one, 0])),
          failing: 1,
          healthy: 9_999,
        },
        attention: [
          {
            destination: 'crm',
            name: 'CRM',
            condition: 'failing',
            since: exampleHealth.since,
            why: exampleHealth.why,
            next: 'sluice destinations status crm',
          },
        ],
        needAttention: 1,
        untold: 0,
        unknown: [],
      },
    },
    problems: [],
  },
  {
    call: 'list_destinations',
    method: 'GET',
    path: '/v1/destinations',
    right: 'read',
    scope: 'within',
    summary: 'List the destinations of the catalog',
    description:
      'Lists the destinations with their present states, and with what the workers know of them. The server follows what the workers tell, so it answers at once, and also while Kafka is away: `asOf` says since when the picture is. Secrets, headers and the paths of URLs are not shown. For the next part of the list, send the `cursor` of the answer.',
    query: {
      destination: idParameter('Lists only the destination with this id.', 'crm'),
      source: idParameter('Lists only destinations of this source.', 'shop'),
      state: {
        schema: { type: 'string', enum: [...new Set([...states, ...conditions, 'waiting'])] },
        description:
          'Lists only destinations in this state or condition. `waiting`: messages of it wait for their turn.',
        example: 'on',
      },
      search: {
        schema: { type: 'string', minLength: 1, maxLength: 200 },
        description: 'Lists only destinations whose id, name or host has this text, in upper or lower case.',
        example: 'example.com',
      },
      label: {
        schema: { type: 'string', minLength: 3, maxLength: 200 },
        description: 'Lists only destinations with this label.',
        example: 'tenant=acme',
      },
      sort: {
        schema: { type: 'string', enum: ['id', 'worst'] },
        description:
          '`id`, which is the default: in the order of the ids. `worst`: those that need attention most come first. One that gets worse between two parts of a list may be in none, and one that gets better in both.',
        example: 'worst',
      },
      cursor: {
        schema: { type: 'string', minLength: 1, maxLength: 300 },
        description: 'The `cursor` of an answer. Repeat the other parameters of its request.',
        example: 'eyJhZnRlciI6ImNybSJ9',
      },
      after: idParameter('Lists only destinations whose ids come after this one.', 'billing'),
      ...limited,
    },
    status: 200,
    answer: {
      schema: { type: 'object', required: Object.keys(listProperties), properties: listProperties },
      example: {
        destinations: [
          {
            id: 'crm',
            name: 'CRM',
            state: 'on',
            labels: { tenant: 'acme' },
            sources: ['shop'],
            filter: { types: ['track'], events: ['Order Completed'] },
            isSigned: true,
            strategy: 'all',
            maxInFlight: 64,
            rateLimit: null,
            batch: null,
            hooks: exampleHooks,
            health: exampleHealth,
          },
        ],
        next: null,
        cursor: null,
        total: 1,
        asOf: '2026-07-29T09:30:02.000Z',
        areAutoPausesKnown: true,
        catalogVersion: '3f2a9c0b1d4e',
      },
    },
    problems: [],
  },
  {
    call: 'show_destination_health',
    method: 'GET',
    path: '/v1/destinations/{destination}/health',
    right: 'read',
    scope: 'destination',
    summary: 'How a destination is',
    description:
      'Says which URLs of a destination fail, since when and with what answers, how requests log in, how much waits, and when it is tried next.',
    params: { destination },
    status: 200,
    answer: {
      schema: objectOf({
        destination: { type: 'string' },
        name: { type: 'string' },
        state: destinationProperties.state,
        timeoutMs: {
          type: ['integer', 'null'],
          description:
            'The time within which the head of an answer has to come, in milliseconds. It is null if `delivery.timeout` applies.',
        },
        batch,
        isSigned,
        asOf,
        health,
        hooks,
      }),
      example: {
        destination: 'crm',
        name: 'CRM',
        state: 'on',
        timeoutMs: 2_000,
        batch: null,
        isSigned: true,
        asOf: '2026-07-29T09:30:02.000Z',
        health: exampleHealth,
        hooks: exampleHooks,
      },
    },
    problems: ['not_found'],
  },
  {
    call: 'show_signing_keys',
    method: 'GET',
    path: '/v1/destinations/{destination}/signing-keys',
    right: 'read',
    scope: 'destination',
    summary: 'The public keys of a destination',
    description:
      'Returns the public keys of Ed25519 with which receivers verify signatures (v1a), as a set of JSON Web Keys. The gateway serves the same to everybody (`GET /v1/signing-keys/{destination}`). The list is empty if the destination has none.',
    params: { destination },
    status: 200,
    answer: {
      schema: objectOf({
        keys: {
          type: 'array',
          items: {
            title: 'SigningKey',
            ...objectOf({
              kty: { type: 'string' },
              crv: { type: 'string' },
              x: { type: 'string', description: 'The public key in base64url.' },
              kid: { type: 'string', description: 'The thumbprint of the key (RFC 7638).' },
              use: { type: 'string' },
              alg: { type: 'string' },
              whpk: { type: 'string', description: 'The public key in the format of Standard Webhooks.' },
            }),
          },
        },
      }),
      example: {
        keys: [
          {
            kty: 'OKP',
            crv: 'Ed25519',
            x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
            kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
            use: 'sig',
            alg: 'EdDSA',
            whpk: 'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
          },
        ],
      },
    },
    problems: ['not_found'],
  },
]
