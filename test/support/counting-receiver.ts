import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { parentPort, Worker, workerData } from 'node:worker_threads'

/**
 * A customer's server that counts, in a thread of its own so that a test can look on while it takes 100,000
 * messages. Each path is an endpoint by itself, with its own behaviour and its own counts.
 */
export type CountingReceiver = {
  url(path: string): string
  /** Holds for requests that arrive from now on. A path without a behaviour answers 200 at once. */
  behave(path: string, behaviour: Behaviour): Promise<void>
  count(path: string): Promise<Counts>
  /** By `messageId`: when its requests arrived, in epoch milliseconds. */
  arrivals(path: string): Promise<Map<string, number[]>>
  stop(): Promise<void>
}

export type Behaviour = {
  /** How long an answer takes, in milliseconds: always so long, or between two bounds in turn. */
  delayMs?: number | readonly [number, number]
  /** Default 200. */
  status?: number
  headers?: Record<string, string>
  /** The first request of every n-th message is answered 500. */
  failFirstOfEvery?: number
  /** Never answers. */
  isHung?: boolean
}

export type Counts = {
  /** Requests that arrived in full. */
  requests: number
  /** Different messages that arrived. */
  distinct: number
  /** Different messages that were answered 2xx. */
  delivered: number
  /** Requests of a message that had been answered 2xx before. */
  repeats: number
  /** Requests that wait for their answer now. */
  inFlight: number
  /** Requests whose sender was gone before the answer. */
  cut: number
}

type Question =
  | { ask: 'behave'; path: string; behaviour: Behaviour }
  | { ask: 'count'; path: string }
  | { ask: 'arrivals'; path: string }
/** Tells this file's own thread from a test's. */
const threadName = 'counting-receiver'

type Answer = { port: number } | Counts | Map<string, number[]> | undefined

export async function startCountingReceiver(): Promise<CountingReceiver> {
  const worker = new Worker(new URL(import.meta.url), { execArgv: [], workerData: threadName })
  const waiting: ((answer: Answer) => void)[] = []
  // The thread answers in order.
  worker.on('message', (answer: Answer) => waiting.shift()?.(answer))
  const next = (): Promise<Answer> => new Promise((resolve) => waiting.push(resolve))
  const ask = (question: Question): Promise<Answer> => {
    const answer = next()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage(question)
    return answer
  }
  const started = await next()
  if (started === undefined || !('port' in started)) throw new Error('the receiver did not start')
  return {
    url: (path) => `http://127.0.0.1:${started.port}${path}`,
    async behave(path, behaviour) {
      await ask({ ask: 'behave', path, behaviour })
    },
    async count(path) {
      const answer = await ask({ ask: 'count', path })
      if (answer === undefined || !('requests' in answer)) throw new Error('not a count')
      return answer
    },
    async arrivals(path) {
      const answer = await ask({ ask: 'arrivals', path })
      if (!(answer instanceof Map)) throw new Error('not arrivals')
      return answer
    },
    async stop() {
      await worker.terminate()
    },
  }
}

/** What the thread knows of one path. */
class Endpoint {
  behaviour: Behaviour = {}
  readonly arrivals = new Map<string, number[]>()
  readonly #delivered = new Set<string>()
  #requests = 0
  #repeats = 0
  #inFlight = 0
  #cut = 0

  counts(): Counts {
    return {
      requests: this.#requests,
      distinct: this.arrivals.size,
      delivered: this.#delivered.size,
      repeats: this.#repeats,
      inFlight: this.#inFlight,
      cut: this.#cut,
    }
  }

  take(messageId: string, response: ServerResponse): void {
    this.#requests++
    this.#inFlight++
    if (this.#delivered.has(messageId)) this.#repeats++
    const status = this.#statusFor(messageId)
    const times = this.arrivals.get(messageId)
    if (times === undefined) this.arrivals.set(messageId, [Date.now()])
    else times.push(Date.now())
    response.once('close', () => {
      this.#inFlight--
      if (!response.writableEnded) this.#cut++
    })
    if (this.behaviour.isHung) return
    const answer = (): void => {
      if (response.destroyed) return
      if (status < 300) this.#delivered.add(messageId)
      response.writeHead(status, this.behaviour.headers).end()
    }
    const delayMs = this.#delayMs()
    if (delayMs === 0) answer()
    else setTimeout(answer, delayMs)
  }

  #statusFor(messageId: string): number {
    const { status = 200, failFirstOfEvery } = this.behaviour
    if (failFirstOfEvery === undefined || this.arrivals.has(messageId)) return status
    return (this.arrivals.size + 1) % failFirstOfEvery === 0 ? 500 : status
  }

  #delayMs(): number {
    const { delayMs = 0 } = this.behaviour
    if (typeof delayMs === 'number') return delayMs
    const [least, most] = delayMs
    return least + (this.#requests % (most - least + 1))
  }
}

async function serve(port: NonNullable<typeof parentPort>): Promise<void> {
  const endpoints = new Map<string, Endpoint>()
  const endpointOf = (path: string): Endpoint => {
    const endpoint = endpoints.get(path) ?? new Endpoint()
    endpoints.set(path, endpoint)
    return endpoint
  }
  const server = createServer((request, response) => {
    readMessageId(request).then(
      (messageId) => endpointOf(request.url ?? '').take(messageId, response),
      // The sender is gone, or sent no message: neither is counted.
      () => response.destroy(),
    )
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    port.postMessage({ port: typeof address === 'object' ? address?.port : undefined })
  })
  port.on('message', (question: Question) => {
    const endpoint = endpointOf(question.path)
    port.postMessage(answerTo(question, endpoint))
  })
}

function answerTo(question: Question, endpoint: Endpoint): Answer {
  switch (question.ask) {
    case 'behave':
      endpoint.behaviour = question.behaviour
      return undefined
    case 'count':
      return endpoint.counts()
    case 'arrivals':
      return endpoint.arrivals
  }
}

async function readMessageId(request: IncomingMessage): Promise<string> {
  const message = await json(request)
  if (typeof message !== 'object' || message === null || !('messageId' in message)) {
    throw new TypeError('the body has no messageId')
  }
  return String(message.messageId)
}

if (workerData === threadName && parentPort !== null) await serve(parentPort)
