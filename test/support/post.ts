import { request } from 'node:http'
import { text as readText } from 'node:stream/consumers'

/** An answer of the gateway. */
export type Reply = { status: number; headers: Headers; text: string; body: Record<string, unknown> }

/** Posts a body. Text and bytes are sent as they are, and other values as JSON. Follows no redirect. */
export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Reply> {
  const isPlain = typeof body === 'string' || body instanceof Uint8Array
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'content-type': 'application/json', ...headers },
    body: isPlain ? toBody(body) : JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: readJson(text) }
}

function toBody(body: string | Uint8Array): string | Blob {
  return typeof body === 'string' ? body : new Blob([Uint8Array.from(body)])
}

/** Posts with `Transfer-Encoding: chunked`. Each piece is one chunk. Returns the status. */
export async function postChunks(
  url: string,
  pieces: readonly Buffer[],
  headers: Record<string, string>,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const outgoing = request(url, { method: 'POST', headers })
  outgoing.on('error', reject)
  outgoing.on('response', (response) => {
    void readText(response).then(() => resolve(response.statusCode ?? 0))
  })
  for (const piece of pieces) outgoing.write(piece)
  outgoing.end()
  return promise
}

/** Returns the authorization header for a write key. */
export function basic(key: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` }
}

/** Parses a text as a JSON object. Returns an empty object if the text isn't JSON. */
export function readJson(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}
