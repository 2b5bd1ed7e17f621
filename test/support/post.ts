/** An answer of the gateway. */
export type Reply = { status: number; headers: Headers; text: string; body: Record<string, unknown> }

/** Posts a body: text and bytes as they are, all else as JSON. A redirect isn't followed. */
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

/** The header of a write key. */
export function basic(key: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` }
}

/** An object; an empty one where the text is none. */
export function readJson(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}
