import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { TokenBucket } from '../../async/token-bucket.ts'
import type { Bundle, BundleFile } from './bundle.ts'

export type ConsoleOptions = {
  /** The path before all paths of the API: see `Browsers`. */
  readonly prefix: string
  /** Returns the bundle, or a text for people that says why there is none. */
  readonly bundle: () => Bundle | string
  /** The logo that the settings name, and its path below that of the console. */
  readonly logo?: { readonly name: string; readonly file: BundleFile } | undefined
  /** Called with what a browser has refused to load or run, because the policy of the pages forbids it. */
  readonly onViolation: (violation: Violation) => void
}

/** What a browser has refused. The URLs have neither query nor fragment. */
export type Violation = { readonly directive: string; readonly blocked: string; readonly page: string }

const reportTypes = ['application/csp-report', 'application/reports+json']
const reportPath = '/console-reports'
const maxReportBytes = 16 * 1_024
/** How many reports are passed on. Anybody may send them. */
const reportRate = { perSecond: 0.2, burst: 10 }

/**
 * Adds the pages of the console to the server: `/` and `/console/…`. They need no token, because they have
 * nothing of the installation. `isAdmitted`: returns false if the server has no room for an answer.
 */
export function addConsole(
  server: FastifyInstance,
  { prefix, bundle, logo, onViolation }: ConsoleOptions,
  isAdmitted: (request: FastifyRequest, reply: FastifyReply) => boolean,
): void {
  const headers = pageHeaders(prefix)
  const home = `${prefix}/console/`
  const serve = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (!isAdmitted(request, reply))
      return reply
        .code(503)
        .headers({ ...headers, 'retry-after': '5' })
        .send()
    reply.headers(headers)
    const path = pathOf(request)
    if (path === '/' || path === '/console') return reply.redirect(home, 302)
    const name = path.slice('/console/'.length)
    if (name === logo?.name) return sendFile(request, reply, logo.file)
    if (name === reloadName) return reply.type('text/javascript; charset=utf-8').send(reloadScript)
    const found = bundle()
    if (typeof found === 'string')
      return reply
        .code(503)
        .headers({ 'cache-control': 'no-store' })
        .type('text/html')
        .send(noticeOf(found, home))
    const file = found.files.get(name)
    if (file !== undefined && name !== 'index.html') return sendFile(request, reply, file)
    // A file that another version of the console had must not be answered with a page.
    if (/^(assets\/)?[^/]+\.(js|css|map|svg|png|woff2)$/.test(name)) return reply.code(404).send()
    return reply.headers({ 'cache-control': 'no-cache' }).type('text/html; charset=utf-8').send(found.page)
  }
  server.get('/', serve)
  server.get('/console', serve)
  server.get('/console/*', serve)
  addReports(server, onViolation)
}

function pageHeaders(prefix: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    `report-uri ${prefix}${reportPath}`,
    'report-to console',
  ]
  return {
    'content-security-policy': policy.join('; '),
    'reporting-endpoints': `console="${prefix}${reportPath}"`,
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }
}

function sendFile(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { type, plain, gzip, brotli, isImmutable }: BundleFile,
): FastifyReply {
  const given = (headers['accept-encoding'] ?? '').split(',')
  const accepted = new Set(
    given.flatMap((one) => (/;\s*q=0(\.0*)?\s*$/.test(one) ? [] : [one.split(';')[0]?.trim()])),
  )
  const choices = [
    ['br', brotli],
    ['gzip', gzip],
  ] as const
  const [encoding, encoded] = choices.find(([name, made]) => made && accepted.has(name)) ?? []
  return reply
    .headers({
      'cache-control': isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
      vary: 'accept-encoding',
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    })
    .type(type)
    .send(encoded ?? plain)
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? ''
}

const reloadName = 'reload.js'
/**
 * A browser follows `<meta http-equiv="refresh">` at an address with a fragment as a step within the page,
 * and asks for nothing.
 */
const reloadScript = 'setTimeout(() => location.reload(), 2000)\n'

/**
 * A page that loads itself again, in case this has changed. It keeps the fragment of its address, which may
 * sign in.
 */
function noticeOf(text: string, home: string): string {
  const shown = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<!doctype html><html lang="en"><meta charset="utf-8"><script src="${home}${reloadName}"></script><title>Sluice</title><p>${shown}</p></html>`
}

/** Passes on what browsers report about the policy, as far as it is short. */
function addReports(server: FastifyInstance, onViolation: ConsoleOptions['onViolation']): void {
  const reports = new TokenBucket(reportRate, performance.now())
  void server.register((reporting, _options, ready) => {
    reporting.addContentTypeParser(reportTypes, { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    )
    reporting.post(reportPath, { bodyLimit: maxReportBytes }, (request, reply) => {
      for (const violation of violationsIn(request.body))
        if (reports.take(performance.now()) === 0) onViolation(violation)
      return reply.code(204).send()
    })
    ready()
  })
}

function violationsIn(body: unknown): readonly Violation[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(String(body))
  } catch {
    return []
  }
  return (Array.isArray(parsed) ? parsed : [parsed]).slice(0, 10).flatMap((report: unknown) => {
    const given: Record<string, unknown> = Object(Object(report)['csp-report'] ?? Object(report)['body'])
    const text = (...names: string[]): string =>
      (names.map((name) => given[name]).find((value) => typeof value === 'string') ?? '').slice(0, 200)
    const directive = text('effectiveDirective', 'effective-directive', 'violated-directive')
    if (directive === '') return []
    const blocked = bare(text('blockedURL', 'blocked-uri'))
    return [{ directive, blocked, page: bare(text('documentURL', 'document-uri')) }]
  })
}

function bare(url: string): string {
  return url.split(/[?#]/, 1)[0] ?? ''
}
