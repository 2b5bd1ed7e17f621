import { type Answer, problem } from './answer.ts'
import type { Sources } from './sources.ts'

/**
 * The address under which a browser reached the gateway: the `Host` header, and the protocol if it is known.
 */
export type RequestAddress = {
  readonly host: string | undefined
  readonly protocol: 'http' | 'https' | undefined
}

/**
 * Answers `GET /v1/projects/KEY/settings`. By default, analytics.js requests these settings from Segment's
 * CDN. The answer is the same as Segment's for a source that has only Segment's own destination. So
 * analytics.js loads no further script and sends no metrics about itself. It sends messages to the host from
 * which it got the settings, unless the page names another host. Source: `CDNSettings` of
 * @segment/analytics-next.
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
 * Decodes the message in the URL of a pixel into the body of a request. The body is empty if there is no
 * message. The message is base64, in which a `+` may have arrived as a space.
 */
export function bodyOfPixel(data: unknown): Buffer {
  const text: unknown = Array.isArray(data) ? data[0] : data
  return typeof text === 'string' ? Buffer.from(text.replaceAll(' ', '+'), 'base64') : Buffer.alloc(0)
}

/** An image of one transparent pixel. */
export const pixelGif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
