import { isDeepStrictEqual } from 'node:util'
import { problem, type ProblemCode, problemCodes as codes, problems, problemType } from './problem.ts'
import type { AdminRoute, RouteScope } from './admin-route.ts'
import { adminRoutes } from './routes.ts'
import { catalogSchema } from '../catalog/catalog-schema.ts'

/** Problems with which every route may answer. */
const always: readonly ProblemCode[] = [
  'bad_request',
  'no_token',
  'other_site',
  'not_allowed',
  'too_slow',
  'busy',
  'head_too_large',
  'internal',
  'unavailable',
]
/** Problems of a request's body. A POST may have them even if its route needs no body. */
const ofBody: readonly ProblemCode[] = ['too_large', 'unknown_type']

/**
 * Returns the OpenAPI document (3.1) of `sluice admin`, from which `schemas/admin-openapi.json` is generated.
 */
export function adminOpenApi(): object {
  const shared: Shared = { schemas: new Map(), responses: new Map() }
  const paths: Record<string, Record<string, object>> = {}
  for (const route of adminRoutes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route, shared) }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice admin',
      version: '1',
      description:
        'With this API, programs ask the delivery log, run replays, list and test destinations, and see who did what. Every call needs a bearer token with the right that it names, or the cookie of a session that such a token has begun. A token may have a scope: then what the scope does not hold is answered like what does not exist. A refused or failed call is answered with a problem detail (RFC 9457), whose `detail` says what to do.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server that serves this document.' }],
    security: [{ token: [] }, { session: [] }],
    paths,
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A token that `sluice tokens create`, `POST /v1/tokens` or `sluice admin token create` has shown.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-sluice',
          description:
            'The cookie that `POST /v1/session` sets. Its name is another one without TLS, and behind a path. A call that changes something also needs an `Origin` that is the own one.',
        },
      },
      responses: Object.fromEntries(shared.responses),
      schemas: {
        ...catalogSchemas(),
        ...Object.fromEntries(shared.schemas),
        Problem: {
          type: 'object',
          required: ['type', 'title', 'status', 'detail'],
          properties: {
            type: { type: 'string', format: 'uri-reference', enum: codes.map(problemType) },
            title: { type: 'string' },
            status: { type: 'integer' },
            detail: { type: 'string', description: 'What is wrong, and what to do.' },
          },
        },
      },
    },
  }
}

/** What routes share, by name. In the document of each route is a reference to it. */
type Shared = { readonly schemas: Map<string, object>; readonly responses: Map<string, object> }

/**
 * Returns a schema with a reference in the place of each part that has a title: the part becomes a schema of
 * the components, so that clients get one type for it, with a name. A name stands for one schema.
 */
function withNames(schema: unknown, shared: Shared['schemas']): unknown {
  if (Array.isArray(schema)) return schema.map((one) => withNames(one, shared))
  if (typeof schema !== 'object' || schema === null) return schema
  const { title, ...parts }: { title?: unknown } = { ...schema }
  // A property may have the name `title` too.
  const kept = typeof title === 'string' ? parts : schema
  const named = Object.fromEntries(Object.entries(kept).map(([key, part]) => [key, withNames(part, shared)]))
  if (typeof title !== 'string') return named
  const known = shared.get(title)
  if (known !== undefined && !isDeepStrictEqual(known, named))
    throw new Error(`two schemas have the title ${title}`)
  shared.set(title, named)
  return { $ref: `#/components/schemas/${title}` }
}

/** The schemas of an entry of the catalog, as the file has it. */
function catalogSchemas(): Readonly<Record<string, object>> {
  const { sources, destinations } = catalogSchema.properties
  return { Source: sources.items, Destination: destinations.items }
}

/** What a token with a scope may do by a route. */
const ofScoped = {
  token: 'A token with a scope may use it.',
  destination: 'For a token with a scope, other destinations do not exist.',
  within: 'For a token with a scope, there is only what its scope holds.',
  installation: 'A token with a scope may not use it.',
} as const satisfies Record<RouteScope, string>

function operationOf(route: AdminRoute, shared: Shared): object {
  const { call, method, summary, description, right, scope, showsContent } = route
  const { params, query, headers, body, status, answer, isOpen, problems: own } = route
  const possible = [...always, ...(method === 'GET' || method === 'DELETE' ? [] : ofBody), ...own]
  return {
    operationId: call,
    summary,
    description:
      isOpen === true
        ? `${description} It needs no token.`
        : `${description} Needs the right \`${right}\`${showsContent === true ? ', and that the token sees content' : ''}. ${ofScoped[scope]}`,
    ...(isOpen !== true && { 'x-right': right, 'x-scope': scope }),
    ...(showsContent === true && { 'x-content': true }),
    security: isOpen === true ? [] : [{ token: [] }, { session: [] }],
    parameters: [
      ...parametersOf('path', params),
      ...parametersOf('query', query),
      ...parametersOf('header', headers),
    ],
    ...(body !== undefined && {
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: withNames(body.documented ?? body.schema, shared.schemas),
            example: body.example,
          },
        },
      },
    }),
    responses: {
      [status]: {
        description: 'The call has succeeded.',
        ...(status !== 204 && {
          content:
            route.isStream === true
              ? { 'text/event-stream': { schema: answer.schema } }
              : {
                  'application/json': {
                    schema: withNames(answer.schema, shared.schemas),
                    example: answer.example,
                  },
                },
        }),
      },
      ...problemAnswers(possible, shared.responses),
    },
  }
}

function parametersOf(place: 'path' | 'query' | 'header', given: AdminRoute['query'] = {}): object[] {
  return Object.entries(given).map(([name, { schema, documented, description, example }]) => ({
    name,
    in: place,
    required: place === 'path',
    description,
    schema: documented?.schema ?? schema,
    example: documented?.example ?? example,
  }))
}

/** Returns the answers with problems, by status: references to answers that all routes share. */
function problemAnswers(possible: readonly ProblemCode[], shared: Shared['responses']): object {
  const statuses = [...new Set(possible.map((code) => problems[code][0]))]
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = codes.filter((code) => problems[code][0] === status && possible.includes(code))
      const name = ofStatus.map(pascalCase).join('Or')
      shared.set(name, problemAnswer(ofStatus))
      return [status, { $ref: `#/components/responses/${name}` }]
    }),
  )
}

function problemAnswer(ofStatus: readonly ProblemCode[]): object {
  return {
    description: ofStatus.map((code) => problems[code][1]).join('; or: '),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(
          ofStatus.map((code) => [code, { value: problem(code, exampleDetails[code]).body }]),
        ),
      },
    },
  }
}

function pascalCase(code: string): string {
  return code.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

const exampleDetails: Readonly<Record<ProblemCode, string>> = {
  bad_request: "body must have required property 'of': see /openapi.json.",
  no_token: 'Send a token that is in force: Authorization: Bearer sluice_…',
  not_allowed: 'This needs the right operate, and the token has read: take another token.',
  other_site: 'A page of another site has sent this: open the console itself.',
  not_found: 'There is no replay or destination "x": list those that there are.',
  too_slow: 'The request did not come as a whole in time: send it again.',
  conflict: `The replay 20260723-151500-3f9a2c is done: ask for a new one.`,
  outdated: 'The destination "crm" exists in version 4712, and not as you have seen it: look at it again.',
  faulty:
    'The change has a fault, so nothing was changed: destination/crm: sources[0]: names the source "shopp", which is not in the catalog; add it to sources, or name one of shop',
  other_request: 'Another request had this Idempotency-Key within the last day: send a new key.',
  no_condition:
    'Send If-Match with the ETag of the object that you have seen, or If-None-Match: * to make a new one.',
  too_large: 'Send a body of at most 64 KiB.',
  unknown_type: 'Send JSON, with Content-Type: application/json.',
  answer_too_large: 'Ask for less: less time, fewer records, or one destination.',
  busy: 'Too many requests are under way: try again when some of them are done.',
  head_too_large: 'Send a shorter URL, and fewer or shorter headers.',
  internal: 'A fault of Sluice: the log of sluice admin has it, please report it.',
  unavailable: 'Kafka does not answer, or not in time: try again; the log of sluice admin says why.',
  log_unavailable:
    'There is no index of the delivery log in .sluice/log/sluice.attempts: run `sluice log serve`, and set index.folder (SLUICE_INDEX_FOLDER) to its folder, or index.url (SLUICE_INDEX_URL) to where it answers.',
}
