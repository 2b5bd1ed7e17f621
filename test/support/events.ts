import { type IncomingMessage, request } from 'node:http'

/** An event of a stream, as a browser reads it. */
export type ServerEvent = {
  readonly id: string
  readonly name: string
  readonly data: Record<string, unknown>
}

/** A live view that is open. */
export type OpenView = {
  readonly status: number
  readonly events: readonly ServerEvent[]
  /** All that came, with comments. */
  readonly text: string
  readonly isClosed: boolean
  /** Reads nothing more until `resume` is called. */
  pause(): void
  resume(): void
  close(): void
}

/** Opens a stream of server-sent events, and resolves when the head of its answer is there. */
export function openView(
  url: string,
  { headers = {}, isPaused = false }: { headers?: Record<string, string>; isPaused?: boolean } = {},
): Promise<OpenView> {
  const { promise, resolve, reject } = Promise.withResolvers<OpenView>()
  const sent = request(url, { headers, agent: false })
  sent.on('error', reject)
  sent.on('response', (response) => resolve(viewOf(response, isPaused)))
  sent.end()
  return promise
}

function viewOf(response: IncomingMessage, isPaused: boolean): OpenView {
  const events: ServerEvent[] = []
  let [text, rest] = ['', '']
  let isClosed = false
  response.on('close', () => (isClosed = true))
  response.on('error', () => (isClosed = true))
  response.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    const parts = `${rest}${chunk.toString()}`.split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1] ?? ''
      if (field('event') !== '')
        events.push({ id: field('id'), name: field('event'), data: JSON.parse(field('data')) })
    }
  })
  if (isPaused) response.pause()
  return {
    status: response.statusCode ?? 0,
    events,
    get text() {
      return text
    },
    get isClosed() {
      return isClosed
    },
    pause: () => response.pause(),
    resume: () => response.resume(),
    close: () => response.destroy(),
  }
}
