import { problemCodes, type ProblemCode, statusOf } from '../calls/answer.ts'
import { type ApiRoute, apiRoutes, type BrowserRoute, browserRoutes } from './api-routes.ts'

/**
 * Builds the OpenAPI document (3.1) of the gateway. `schemas/openapi.json` is generated from this document.
 */
export function openApiDocument(): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice gateway',
      version: '1',
      description:
        "Segment's HTTP tracking API, with additional calls for servers. The status 200 means that Kafka has the messages. The gateway ignores doubled and trailing slashes in paths. It takes JSON with any content type, also compressed by gzip.",
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server that serves this document.' }],
    paths: {
      ...Object.fromEntries(
        apiRoutes.flatMap((route) =>
          route.paths.map((path, index) => [path, { post: operationOf(route, index) }]),
        ),
      ),
      ...Object.fromEntries(
        Object.values(browserRoutes).map((route) => [route.path, { get: browserOperationOf(route) }]),
      ),
    },
    components: {
      securitySchemes: {
        writeKey: {
          type: 'http',
          scheme: 'basic',
          description:
            'The write key of a source is the user name, and there is no password. Instead, the key may be in the field writeKey of the body.',
        },
        serverKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'A server key of one or several sources. Keep it secret.',
        },
      },
      schemas: {
        Problem: {
          type: 'object',
          required: ['success', 'code', 'message'],
          properties: {
            success: { const: false },
            code: { enum: problemCodes },
            message: { type: 'string', description: 'Says what is wrong, and what to do.' },
          },
        },
      },
    },
  }
}

function operationOf(
  { call, paths, summary, description, key, body, answer, problems }: ApiRoute,
  index: number,
): object {
  return {
    operationId: index === 0 ? call : `${call}_${index + 1}`,
    summary,
    description: index === 0 ? description : `The same as ${paths[0]}. ${description}`,
    security: securityOf(key),
    requestBody: { required: true, content: { 'application/json': { schema: body } } },
    responses: {
      200: {
        description: 'The gateway has taken the request.',
        content: { 'application/json': { schema: answer } },
      },
      ...problemResponses(problems),
    },
  }
}

function browserOperationOf({
  call,
  summary,
  description,
  parameters,
  content,
  problems,
}: BrowserRoute): object {
  return {
    operationId: call,
    summary,
    description,
    security: [],
    parameters: parameters.map((parameter) => ({ ...parameter, required: true })),
    responses: {
      200: { description: 'The requested content.', content: { [content.type]: { schema: content.schema } } },
      ...problemResponses(problems),
    },
  }
}

function securityOf(key: ApiRoute['key']): object[] {
  switch (key) {
    case 'write':
      // The empty requirement (`{}`) means that a request may omit the header, because the key may be in the
      // body.
      return [{ writeKey: [] }, {}]
    case 'server':
      return [{ serverKey: [] }]
    case 'none':
      return []
  }
}

function problemResponses(codes: readonly ProblemCode[]): object {
  const byStatus = Map.groupBy(codes, statusOf)
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.join(', '),
        ...((status === 429 || status === 503) && {
          headers: {
            'Retry-After': {
              description: 'The seconds to wait before the next try, a whole number.',
              schema: { type: 'integer' },
            },
          },
        }),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  )
}
