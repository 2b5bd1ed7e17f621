import { type Answer, problem } from './answer.ts'
import type { Sources } from './sources.ts'

/** How a browser has come here: the `Host` that it has named, and the protocol, where that is known. */
export type RequestAddress = {
  readonly host: string | undefined
  readonly protocol: 'http' | 'https' | undefined
}

/**
 * The settings that analytics.js asks Segment's CDN for, `GET /v1/projects/KEY/settings`: those of a source
 * with nothing but Segment's own destination, so that it loads no further script, and measures nothing of
 * itself. Messages go to where the settings came from, unless the page says otherwise. Source: `CDNSettings`
 * of @segment/analytics-next.
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

/** What ends TLS stands in front of the gateway, but on the machine of a developer. */
function guessedProtocol(host: string): 'http' | 'https' {
  return /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i.test(host) ? 'http' : 'https'
}

const unknownKey = problem('not_found', 'No source has this write key.')

/**
 * The message of a pixel as the body of a request; empty where there is none. `+` may have come as a space.
 */
export function bodyOfPixel(data: unknown): Buffer {
  const text: unknown = Array.isArray(data) ? data[0] : data
  return typeof text === 'string' ? Buffer.from(text.replaceAll(' ', '+'), 'base64') : Buffer.alloc(0)
}

/** One transparent point. */
export const pixelGif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
