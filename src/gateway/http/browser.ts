import { type Answer, problem } from '../calls/answer.ts'
import type { Sources } from '../calls/sources.ts'

/**
 * The address under which a browser reached the gateway: the `Host` header, and the protocol if it is known.
 */
export type RequestAddress = {
  readonly host: string | undefined
  readonly protocol: 'http' | 'https' | undefined
}

/**
 * Answers `GET /v1/projects/KEY/settings`, which analytics.js requests from Segment's CDN by default. The
 * answer is the same as Segment's for a source that has only Segment's own destination. So analytics.js loads
 * no further script and sends no metrics about itself. If the page names no other host, analytics.js sends
 * messages to the host from which it got the settings. Source: `CDNSettings` of @segment/analytics-next.
 */
export function settingsOf(sources: Sources, writeKey: string, { host, protocol }: RequestAddress): Answer {
  if (sources.withWriteKey([writeKey]) === undefined) return unknownKey
  const segment = {
    apiKey: writeKey,
    ...(host !== undefined && { apiHost: `${host}/v1`, protocol: protocol ?? guessedProtocol(host) }),
  }
  const settings = { integrations: { 'Segment.io': segment }, plan: {}, metrics: { sampleRate: 0 } }
  return { status: 200, body: JSON.stringify(settings) }
}

/**
 * Guesses the protocol of a browser's request: `http` if the host is a developer's own machine, else `https`.
 * In production, a proxy in front of the gateway terminates TLS.
 */
function guessedProtocol(host: string): 'http' | 'https' {
  return /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i.test(host) ? 'http' : 'https'
}

const unknownKey = problem('not_found', 'No source has this write key.')

/**
 * Decodes the message in the URL of a pixel into the body of a request. The message is in base64, and a `+`
 * may have arrived as a space. If there is no message, the body is empty.
 */
export function bodyOfPixel(data: unknown): Buffer {
  const text: unknown = Array.isArray(data) ? data[0] : data
  return typeof text === 'string' ? Buffer.from(text.replaceAll(' ', '+'), 'base64') : Buffer.alloc(0)
}

/** An image of one transparent pixel. */
export const pixelGif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

/**
 * The headers that the answer to a preflight request allows by default. A browser sends a preflight request
 * before a page of another site may send anything except plain text.
 */
const defaultHeaders = 'authorization, content-type, x-retry-count'

const maxReflected = 1_000

/** Names of headers (RFC 9110, 5.6.2) with commas between them. */
const names = /^[\w!#$%&'*+\-.^`|~]+(?:[ \t]*,[ \t]*[\w!#$%&'*+\-.^`|~]+)*$/

/**
 * Returns the headers of the answer to a preflight request. `asked` is the `Access-Control-Request-Headers`
 * of the preflight request, and `origin` is its `Origin`. If this list isn't too long and contains only names
 * of headers, the answer repeats it. Otherwise the answer allows the default headers.
 */
export function preflightHeaders(
  asked: string | undefined,
  origin: string | undefined,
): Readonly<Record<string, string>> {
  const isList = asked !== undefined && asked.length <= maxReflected && names.test(asked)
  return {
    ...originHeaders(origin),
    'access-control-allow-methods': 'GET, POST, OPTIONS',
    'access-control-allow-headers': isList ? asked : defaultHeaders,
    'access-control-max-age': '86400',
    vary: 'origin, access-control-request-headers',
  }
}

/** A serialised origin (RFC 6454), or `null`, which sandboxed pages and files have. */
const origins = /^(?:null|[a-z][a-z\d+.-]*:\/\/[\w.:[\]-]+)$/i

/**
 * Returns the headers that let the page of a request read its answer. A browser sends a beacon with its
 * credentials, and then accepts only an answer that names the page's origin and allows credentials. The
 * gateway sets no cookies and reads none, so it gives nothing away.
 */
export function originHeaders(origin: string | undefined): Readonly<Record<string, string>> {
  if (origin === undefined || origin.length > maxReflected || !origins.test(origin)) return ofAnyOrigin
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    vary: 'origin',
  }
}

const ofAnyOrigin = { 'access-control-allow-origin': '*' }
