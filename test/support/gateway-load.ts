import { Agent, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { randomBytes } from 'node:crypto'

/** The results of a load on a gateway, as its clients saw them. */
export type Load = {
  /** The ids of the messages whose request was answered 200. */
  readonly acknowledged: readonly string[]
  /** The number of answers by status. Status 0 stands for requests without an answer. */
  readonly statuses: ReadonlyMap<number, number>
  /** The time until the slowest answer, in milliseconds. */
  readonly slowestMs: number
  /** The number of answers with `Connection: close`. */
  readonly closing: number
  /** The values of `Retry-After` in the answers that had this header. */
  readonly retryAfters: readonly string[]
  /** Stops starting requests, and resolves when all requests are answered. */
  stop(): Promise<void>
}

const pauseMs = 20

/**
 * Starts clients that post to a gateway. Each client posts one batch after another over a connection that
 * stays open. After an answer other than 200, the client waits 20 ms. Each message has its own id and its own
 * user. `origin`: the gateway's origin, or a function that chooses the origin whenever a client needs a new
 * connection.
 */
export function startLoad(
  origin: string | (() => string),
  { clients = 8, batch = 10, key = 'KEY' }: { clients?: number; batch?: number; key?: string } = {},
): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const acknowledged: string[] = []
  const statuses = new Map<number, number>()
  const retryAfters: string[] = []
  const run = randomBytes(4).toString('hex')
  let made = 0
  let slowestMs = 0
  let closing = 0
  const stopping = new AbortController()

  const choose = typeof origin === 'string' ? () => origin : origin

  async function send(target: string): Promise<Answered> {
    const ids = Array.from({ length: batch }, () => `${run}-${made++}`)
    const messages = ids.map((messageId) => ({ type: 'track', event: 'E', messageId, userId: messageId }))
    const startMs = performance.now()
    const answer = await post(agent, target, JSON.stringify({ writeKey: key, batch: messages }))
    slowestMs = Math.max(slowestMs, performance.now() - startMs)
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    if (answer.status === 200) acknowledged.push(...ids)
    if (answer.connection === 'close') closing++
    if (answer.retryAfter !== undefined) retryAfters.push(answer.retryAfter)
    return answer
  }

  async function loop(): Promise<void> {
    let target = choose()
    while (!stopping.signal.aborted) {
      const { status, connection } = await send(target)
      if (status === 0 || connection === 'close') target = choose()
      if (status !== 200) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  const loops = Array.from({ length: clients }, loop)
  return {
    acknowledged,
    statuses,
    retryAfters,
    get slowestMs() {
      return slowestMs
    },
    get closing() {
      return closing
    },
    async stop() {
      stopping.abort()
      await Promise.all(loops)
      agent.destroy()
    },
  }
}

type Answered = { status: number; connection: string | undefined; retryAfter: string | undefined }

function post(agent: Agent, origin: string, body: string): Promise<Answered> {
  const { promise, resolve } = Promise.withResolvers<Answered>()
  const lost = (): void => resolve({ status: 0, connection: undefined, retryAfter: undefined })
  const outgoing = request(`${origin}/v1/batch`, {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
  })
  outgoing.on('error', lost)
  outgoing.on('response', (response) => {
    const { connection, 'retry-after': retryAfter } = response.headers
    readText(response).then(() => resolve({ status: response.statusCode ?? 0, connection, retryAfter }), lost)
  })
  outgoing.end(body)
  return promise
}
