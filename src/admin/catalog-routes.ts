import type { AdminRoute, Parameter } from './admin-route.ts'

// Routes that read and change the catalog in its topic.

const id = (kind: string, example: string): Parameter => ({
  schema: { type: 'string', minLength: 1, maxLength: 100 },
  description: `The id of a ${kind}.`,
  example,
})

export const ofDestination = id('destination', 'crm')

const ifMatch: Parameter = {
  schema: { type: 'string', minLength: 1, maxLength: 100 },
  description:
    'The `ETag` of the answer in which you have seen the object. If it was changed since, the answer is 412.',
  example: '"4711"',
}
const ifNoneMatch: Parameter = {
  schema: { type: 'string', enum: ['*'] },
  description: '`*`: make a new object. If there is one, the answer is 412. Send this or `If-Match`.',
  example: '*',
}
export const dryRun: Parameter = {
  schema: { type: 'string', enum: ['true', 'false'] },
  documented: { schema: { type: 'boolean' }, example: true },
  description: '`true`: judge the change, and change nothing.',
  example: 'true',
}

const version = {
  type: 'integer',
  description: 'The version of the object. It is also in the header `ETag`, in quotes.',
}

type Kind = {
  readonly kind: 'destination' | 'source'
  readonly schema: 'Destination' | 'Source'
  readonly example: object
  readonly id: string
}

const destination: Kind = {
  kind: 'destination',
  schema: 'Destination',
  id: 'crm',
  example: {
    id: 'crm',
    sources: ['shop'],
    filter: { condition: 'event == "Order Completed" && properties.total > 20' },
    sharedSecret: '${kept:2026-07-29T09:30:00.000Z:0123456789abcdef}',
    hooks: [
      {
        url: 'https://crm.example.com/hook',
        login: {
          kind: 'oauth2',
          tokenUrl: 'https://login.example.com/oauth2/token',
          clientId: 'sluice',
          clientSecret: '${kept:2026-07-29T09:30:00.000Z:23456789abcdef01}',
        },
      },
    ],
  },
}
const source: Kind = {
  kind: 'source',
  schema: 'Source',
  id: 'shop',
  example: { id: 'shop', name: 'Web shop', writeKeys: ['wk_shop'] },
}

export const keepsSecrets =
  'Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is.'

const saysWhatGoes =
  'A hook that takes the place of another one, with the same `id` or without one, has to say what becomes of the headers, the login and the `tls` of that: send them to keep them, or `null` to remove them. Otherwise, the answer is 422, and nothing is changed.'

function routesOf(of: Kind): readonly AdminRoute[] {
  const { kind, id: exampleId } = of
  const path = `/v1/${kind}s/{${kind}}`
  const params = { [kind]: id(kind, exampleId) }
  return [showRoute(of, { path, params }), ...changeRoutes(of, { path, params })]
}

type Where = Pick<AdminRoute, 'path' | 'params'>

function showRoute({ kind, schema, example }: Kind, where: Where): AdminRoute {
  return {
    ...where,
    call: `show_${kind}`,
    method: 'GET',
    right: 'read',
    scope: 'within',
    summary: `Show a ${kind} of the catalog`,
    description: `As it is in the topic of the catalog (\`catalog.source=topic\`). ${keepsSecrets} The paths of URLs are shown only to tokens with the right \`admin\`.`,
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['version', kind],
        properties: { version, [kind]: { $ref: `#/components/schemas/${schema}` } },
      },
      example: { version: 4_711, [kind]: example },
    },
    problems: ['not_found', 'conflict'],
  }
}

const changed = {
  schema: {
    title: 'ObjectChanged',
    type: 'object',
    required: ['what', 'version', 'revision', 'removed'],
    properties: {
      what: { type: 'string', enum: ['created', 'changed', 'removed', 'unchanged'] },
      version: { ...version, type: ['integer', 'null'] },
      revision: { type: 'integer', description: 'The number of the last change of the catalog.' },
      removed: {
        type: 'array',
        items: { type: 'string' },
        description:
          'The fields that the object had and has no more, such as `hooks[0].login`, with the positions before. Empty if the whole object was removed.',
      },
    },
  },
  example: { what: 'changed', version: 4_712, revision: 98, removed: [] },
}

function changeRoutes({ kind, schema, example }: Kind, where: Where): readonly AdminRoute[] {
  // A change of a source is judged by the keys of all sources, so its faults tell of others.
  const scope = kind === 'destination' ? 'within' : 'installation'
  const change = { ...where, right: 'admin', scope, status: 200, answer: changed, query: { dryRun } } as const
  return [
    {
      ...change,
      call: `put_${kind}`,
      method: 'PUT',
      summary: `Make or replace a ${kind}`,
      description: `Running processes use the change within a second. ${keepsSecrets} The fields are those of docs/catalog.md.`,
      headers: { 'If-Match': ifMatch, 'If-None-Match': ifNoneMatch },
      body: { schema: { type: 'object' }, documented: { $ref: `#/components/schemas/${schema}` }, example },
      problems: ['not_found', 'conflict', 'outdated', 'no_condition', 'faulty'],
    },
    {
      ...change,
      call: `patch_${kind}`,
      method: 'PATCH',
      summary: `Change fields of a ${kind}`,
      description: `A JSON merge patch (RFC 7396): a field that is \`null\` is removed, and a list is replaced as a whole. ${keepsSecrets}${kind === 'destination' ? ` ${saysWhatGoes}` : ''}`,
      headers: { 'If-Match': ifMatch },
      body: {
        schema: { type: 'object', additionalProperties: true },
        example: { name: 'Another name' },
      },
      problems: ['not_found', 'conflict', 'outdated', 'no_condition', 'faulty'],
    },
    {
      ...change,
      call: `remove_${kind}`,
      method: 'DELETE',
      summary: `Remove a ${kind}`,
      description:
        kind === 'destination'
          ? 'What waits for it becomes dead letters (`destination_removed`).'
          : 'Refused while a destination is connected to it.',
      headers: { 'If-Match': ifMatch },
      problems: ['not_found', 'conflict', 'outdated', 'no_condition', 'faulty'],
    },
  ]
}

export const catalogRoutes: readonly AdminRoute[] = [
  ...routesOf(destination),
  {
    call: 'list_sources',
    method: 'GET',
    path: '/v1/sources',
    right: 'read',
    scope: 'within',
    summary: 'List the sources of the catalog',
    description: 'In the order of their ids. Keys are not shown.',
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['sources', 'catalogVersion'],
        properties: {
          sources: {
            type: 'array',
            items: {
              title: 'ListedSource',
              type: 'object',
              required: ['id', 'name', 'kind', 'enabled', 'destinations'],
              properties: {
                id: { type: 'string' },
                name: { type: 'string' },
                kind: { type: 'string', enum: ['events', 'audiences'] },
                enabled: { type: 'boolean' },
                destinations: { type: 'integer', description: 'How many destinations are connected to it.' },
              },
            },
          },
          catalogVersion: { type: 'string' },
        },
      },
      example: {
        sources: [{ id: 'shop', name: 'Web shop', kind: 'events', enabled: true, destinations: 12 }],
        catalogVersion: 'r98',
      },
    },
    problems: [],
  },
  ...routesOf(source),
]
