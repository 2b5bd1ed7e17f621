import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { json } from 'node:stream/consumers'
import { type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { anywhere } from './anywhere.ts'
import type { Identity } from './certificates.ts'

/**
 * A customer's server that counts requests. It runs in a worker thread, so that a test can watch it while it
 * receives 100,000 messages. Each path is an endpoint with its own behaviour and its own counts.
 */
export type CountingReceiver = {
  url(path: string): string
  /**
   * Sets the behaviour of a path for requests that arrive from now on. A path without a behaviour answers 200
   * at once.
   */
  behave(path: string, behaviour: Behaviour): Promise<void>
  count(path: string): Promise<Counts>
  /** Resolves with the arrival times of each message's requests, in epoch milliseconds, by `messageId`. */
  arrivals(path: string): Promise<Map<string, number[]>>
  /** Resolves with the number of TCP connections that were accepted so far. */
  connections(): Promise<number>
  /**
   * Kills a process with SIGKILL as soon as a request arrives and the numbers in `when` are reached.
   * Resolves with the number of requests in flight at that moment.
   */
  kill(path: string, when: KillMoment): Promise<number>
  stop(): Promise<void>
}

export type Behaviour = {
  /**
   * The time until an answer, in milliseconds. With two bounds, the times of the answers go from the lower
   * bound to the upper bound, again and again.
   */
  delayMs?: number | readonly [number, number]
  /** Default 200. */
  status?: number
  headers?: Record<string, string>
  /** With `n`, the first request of every n-th message is answered 500. */
  failFirstOfEvery?: number
  /** True if requests are never answered. */
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
  /** Requests that have no answer yet. */
  inFlight: number
}

export type KillMoment = {
  pid: number
  /**
   * The kill happens when at least `distinct` different messages have arrived, and at least `inFlight`
   * requests are in flight.
   */
  distinct: number
  inFlight: number
}

type Question = { path: string } & (
  | { ask: 'behave'; behaviour: Behaviour }
  | { ask: 'count' }
  | { ask: 'arrivals' }
  | { ask: 'connections' }
  | { ask: 'kill'; when: KillMoment }
)
type Asked = Question & { id: number }
type Answer = Counts | Map<string, number[]> | number | undefined
type FromThread = { port: number } | { id: number; answer: Answer }

/**
 * The data that this file gives to its thread. `thread` distinguishes this thread from the threads of vitest.
 */
type ThreadData = { thread: 'counting-receiver'; identity: Identity | undefined }

/** Starts a counting receiver. It serves HTTPS if `identity` is given, and HTTP otherwise. */
export async function startCountingReceiver({
  identity,
}: { identity?: Identity } = {}): Promise<CountingReceiver> {
  const data: ThreadData = { thread: 'counting-receiver', identity }
  const worker = new Worker(new URL(import.meta.url), { execArgv: [], workerData: data })
  const waiting = new Map<number, (answer: Answer) => void>()
  const started = Promise.withResolvers<number>()
  worker.on('error', started.reject)
  worker.on('message', (message: FromThread) => {
    if ('port' in message) started.resolve(message.port)
    else {
      waiting.get(message.id)?.(message.answer)
      waiting.delete(message.id)
    }
  })
  let asked = 0
  const ask = (question: Question): Promise<Answer> => {
    const id = ++asked
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage({ ...question, id })
    return new Promise((resolve) => waiting.set(id, resolve))
  }
  const port = await started.promise
  return {
    url: (path) => `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${port}${path}`,
    async behave(path, behaviour) {
      await ask({ ask: 'behave', path, behaviour })
    },
    async count(path) {
      const answer = await ask({ ask: 'count', path })
      if (typeof answer !== 'object' || answer instanceof Map) throw new Error('not a count')
      return answer
    },
    async arrivals(path) {
      const answer = await ask({ ask: 'arrivals', path })
      if (!(answer instanceof Map)) throw new Error('not arrivals')
      return answer
    },
    async connections() {
      return Number(await ask({ ask: 'connections', path: '' }))
    },
    async kill(path, when) {
      return Number(await ask({ ask: 'kill', path, when }))
    },
    async stop() {
      await worker.terminate()
    },
  }
}

/** The behaviour and the counts of one path. Only the receiver's thread uses this class. */
class Endpoint {
  behaviour: Behaviour = {}
  readonly arrivals = new Map<string, number[]>()
  readonly #delivered = new Set<string>()
  #requests = 0
  #repeats = 0
  #inFlight = 0
  #killing: { when: KillMoment; onKilled: (inFlight: number) => void } | undefined

  counts(): Counts {
    return {
      requests: this.#requests,
      distinct: this.arrivals.size,
      delivered: this.#delivered.size,
      repeats: this.#repeats,
      inFlight: this.#inFlight,
    }
  }

  kill(when: KillMoment, onKilled: (inFlight: number) => void): void {
    this.#killing = { when, onKilled }
  }

  take(messageId: string, response: ServerResponse): void {
    this.#requests++
    this.#inFlight++
    if (this.#delivered.has(messageId)) this.#repeats++
    const status = this.#statusFor(messageId)
    const times = this.arrivals.get(messageId)
    if (times === undefined) this.arrivals.set(messageId, [Date.now()])
    else times.push(Date.now())
    response.once('close', () => this.#inFlight--)
    this.#killIfDue()
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

  #killIfDue(): void {
    if (this.#killing === undefined) return
    const { when, onKilled } = this.#killing
    if (this.arrivals.size < when.distinct || this.#inFlight < when.inFlight) return
    process.kill(when.pid, 'SIGKILL')
    this.#killing = undefined
    onKilled(this.#inFlight)
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

function serve(thread: MessagePort, { identity }: ThreadData): void {
  let connections = 0
  const endpoints = new Map<string, Endpoint>()
  const endpointOf = (path: string): Endpoint => {
    const endpoint = endpoints.get(path) ?? new Endpoint()
    endpoints.set(path, endpoint)
    return endpoint
  }
  const tell = (message: FromThread): void => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    thread.postMessage(message)
  }
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    readMessageId(request).then(
      (messageId) => endpointOf(request.url ?? '').take(messageId, response),
      // The sender has closed the connection, or the body isn't a message. Neither is counted.
      () => response.destroy(),
    )
  }
  const server = identity === undefined ? createServer(take) : createSecureServer(identity, take)
  server.keepAliveTimeout = 60_000
  server.on('connection', () => connections++)
  server.listen(anywhere, () => {
    const address = server.address()
    if (typeof address === 'object' && address !== null) tell({ port: address.port })
  })
  thread.on('message', (question: Asked) => {
    const give = (answer: Answer): void => tell({ id: question.id, answer })
    if (question.ask === 'connections') give(connections)
    else respond(question, endpointOf(question.path), give)
  })
}

function respond(
  question: Exclude<Asked, { ask: 'connections' }>,
  endpoint: Endpoint,
  give: (given: Answer) => void,
): void {
  switch (question.ask) {
    case 'behave':
      endpoint.behaviour = question.behaviour
      give(undefined)
      break
    case 'count':
      give(endpoint.counts())
      break
    case 'arrivals':
      give(endpoint.arrivals)
      break
    case 'kill':
      endpoint.kill(question.when, give)
  }
}

async function readMessageId(request: IncomingMessage): Promise<string> {
  const message = await json(request)
  if (typeof message !== 'object' || message === null || !('messageId' in message)) {
    throw new TypeError('the body has no messageId')
  }
  return String(message.messageId)
}

if (isOwnThread(workerData) && parentPort !== null) serve(parentPort, workerData)

function isOwnThread(data: unknown): data is ThreadData {
  return typeof data === 'object' && data !== null && 'thread' in data && data.thread === 'counting-receiver'
}
