import type { FastifyInstance } from 'fastify'
import { answerHeaders } from '../calls/answer.ts'
import { browserRoutes } from './api-routes.ts'
import { bodyOfPixel, originHeaders, pixelGif, settingsOf } from './browser.ts'
import { docsPage, docsPolicy } from './docs-page.ts'
import { openApiDocument } from './gateway-openapi.ts'
import { isTrackingKind } from '../messages/item.ts'
import { notFound, traced } from './replies.ts'
import type { GatewayParts } from './gateway-parts.ts'

/**
 * Options of the routes for browsers. Without them, Fastify would add a HEAD route, which would handle HEAD
 * like GET.
 */
const forBrowsers = { exposeHeadRoute: false }
/**
 * The `Cache-Control` header of settings. It lets browsers use old settings for at most two minutes after a
 * change of the catalog.
 */
const settingsCaching = 'public, max-age=120'
const pixelHeaders = {
  'content-type': 'image/gif',
  'cache-control': 'no-store',
}

/** Serves the settings, pixels and documentation that browsers request in addition to the API. */
export function serveBrowsers(server: FastifyInstance, parts: GatewayParts): void {
  serveSettings(server, parts)
  servePixel(server, parts)
  serveDocs(server)
}

function serveSettings(server: FastifyInstance, { sources, observer, replies, origin }: GatewayParts): void {
  server.get<{ Params: { writeKey: string } }>(
    routeOf(browserRoutes.settings.path),
    forBrowsers,
    (request, reply) => {
      const answer = settingsOf(sources, request.params.writeKey, origin.approachOf(request))
      observer.answered('settings', answer.status, 0, answer.code)
      if (answer.status === 200) reply.header('cache-control', settingsCaching)
      return replies.send(reply, answer)
    },
  )
}

function servePixel(server: FastifyInstance, parts: GatewayParts): void {
  const { tracking, tracing, observer, replies, origin } = parts
  const { path } = browserRoutes.pixel
  server.get<{ Params: { call: string }; Querystring: { data?: unknown } }>(
    routeOf(path),
    forBrowsers,
    async (request, reply) => {
      const startMs = performance.now()
      const { call } = request.params
      const answer = await traced(tracing?.begin('GET', path, request.headers), async (trace) =>
        isTrackingKind(call)
          ? tracking.handle(call, bodyOfPixel(request.query.data), undefined, origin.clientOf(request), trace)
          : notFound,
      )
      // The image can't show the status, but the metrics have it.
      observer.answered('pixel', answer.status, performance.now() - startMs, answer.code)
      replies.endConnection(reply)
      return reply.headers({ ...pixelHeaders, ...originHeaders(request.headers.origin) }).send(pixelGif)
    },
  )
}

/** Serves the description of the API, as an OpenAPI document and as a page to read. */
function serveDocs(server: FastifyInstance): void {
  const document = JSON.stringify(openApiDocument())
  // If a browser shows the page at `/docs/`, it resolves the page's relative link to the second path.
  for (const path of ['/openapi.json', '/docs/openapi.json']) {
    server.get(path, (_request, reply) => reply.headers(answerHeaders).send(document))
  }
  server.get('/docs', (_request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', docsPolicy)
      .header('x-content-type-options', 'nosniff')
      .send(docsPage),
  )
}

/** Returns a path with its parameters in the syntax of Fastify's router. */
function routeOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}
