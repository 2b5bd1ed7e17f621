import type { Shaped } from '../../shape/shaper.ts'
import { StartError } from '../../roles/start/start-error.ts'
import type { AdminClient } from './admin-client.ts'
import type { LiveAttempt } from './feed.ts'

/** The body of a request, byte for byte, or why it can't be had. `shaped`: what a mapping has made of it. */
export type Content =
  | { readonly ok: true; readonly body: Buffer; readonly shaped?: Shaped | undefined }
  | { readonly ok: false; readonly why: string }

export type Contents = {
  /** Resolves with the body of an attempt's request. Rejects only because of a bug. */
  of(attempt: LiveAttempt, signal: AbortSignal): Promise<Content>
}

/** The most contents that are kept, so that the tries of a message ask for it once. */
const keptContents = 100

/** Returns the bodies of requests by the admin API. Its token must be one that sees content. */
export function contentsOf(client: Pick<AdminClient, 'ask'>): Contents {
  const kept = new Map<string, Content>()
  return {
    async of(attempt, signal) {
      const { topic, partition, offset } = attempt.origin
      const key = JSON.stringify([topic, partition, offset, attempt.destination])
      const known = kept.get(key)
      if (known !== undefined) return known
      const content = await read(client, attempt, signal)
      if (content.ok) kept.set(key, content)
      const [oldest] = kept.keys()
      if (kept.size > keptContents && oldest !== undefined) kept.delete(oldest)
      return content
    },
  }
}

async function read(
  client: Pick<AdminClient, 'ask'>,
  { messageId, origin, destination }: LiveAttempt,
  signal: AbortSignal,
): Promise<Content> {
  if (messageId === null) return { ok: false, why: 'the record has no message' }
  try {
    const path = `/v1/log/messages/${encodeURIComponent(messageId)}/content`
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer of our own API
    const { events, requests } = (await client.ask('GET', path, undefined, signal)) as Found
    const event = events.find(
      (one) =>
        one.origin.topic === origin.topic &&
        one.origin.partition === origin.partition &&
        one.origin.offset === origin.offset,
    )
    if (event?.body != null) {
      const request = requests.find((one) => one.destination === destination)
      return { ok: true, body: Buffer.from(event.body), shaped: request && shapedOf(request) }
    }
    return { ok: false, why: event?.note ?? 'the API does not have its content' }
  } catch (error) {
    if (error instanceof StartError) return { ok: false, why: error.message }
    if (signal.aborted) return { ok: false, why: 'interrupted' }
    throw error
  }
}

/** Returns what the present mapping of the destination makes of the message, if it has one. */
function shapedOf({ method, path, headers, body }: FoundRequest): Shaped | undefined {
  if (body === null || (method !== 'POST' && method !== 'PUT' && method !== 'PATCH')) return undefined
  const contentType = headers.find(({ name }) => name === 'Content-Type')?.value ?? 'application/json'
  return { method, path, headers: [], contentType, body: Buffer.from(body) }
}

type FoundRequest = {
  readonly destination: string
  readonly method: string
  readonly path: string
  readonly headers: readonly { readonly name: string; readonly value: string | null }[]
  readonly body: string | null
}

type Found = {
  readonly requests: readonly FoundRequest[]
  readonly events: readonly {
    readonly origin: LiveAttempt['origin']
    readonly body: string | null
    readonly note: string | null
  }[]
}
