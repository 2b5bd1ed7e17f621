import { type Answer, problem } from './answer.ts'
import type { Sources } from './sources.ts'

/**
 * The address at which a browser reached the gateway: the `Host` header, and the protocol if the gateway
 * knows it.
 */
export type RequestAddress = {
  readonly host: string | undefined
  readonly protocol: 'http' | 'https' | undefined
}

/**
 * Answers `GET /v1/projects/KEY/settings`, which analytics.js otherwise asks Segment's CDN for. The settings
 * are those of a source that has only Segment's own destination. So analytics.js loads no further script, and
 * sends no metrics about itself. It sends messages to the host from which it got the settings, unless the
 * page names another host. Source: `CDNSettings` of @segment/analytics-next.
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
 * Guesses the protocol of a browser's request: `https`, except on a developer's machine. In production a
 * proxy terminates TLS in front of the gateway.
 */
function guessedProtocol(host: string): 'http' | 'https' {
  return /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i.test(host) ? 'http' : 'https'
}

const unknownKey = problem('not_found', 'No source has this write key.')

/**
 * Decodes the message of a pixel into the body of a request. The body is empty if there is no message. A `+`
 * may have arrived as a space.
 */
export function bodyOfPixel(data: unknown): Buffer {
  const text: unknown = Array.isArray(data) ? data[0] : data
  return typeof text === 'string' ? Buffer.from(text.replaceAll(' ', '+'), 'base64') : Buffer.alloc(0)
}

/** An image of one transparent pixel. */
export const pixelGif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
