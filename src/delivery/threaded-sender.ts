import { Worker } from 'node:worker_threads'
import type { Outcome } from './outcome.ts'
import type { LookupOutcome } from './resolver.ts'
import type { Exchange, Sender, Target } from './sender.ts'
import {
  type ExchangeReport,
  type PostedRequest,
  type SenderThreadInput,
  type SenderThreadReports,
  type SenderThreadRequests,
  senderThreadUrl,
} from './sender-thread.ts'

export type ThreadedSenderOptions = SenderThreadInput & {
  onLookup?: (outcome: LookupOutcome, ms: number) => void
  /**
   * The thread ended by itself, or was ended since it stood still: what it had in flight has failed. Another
   * one is started.
   */
  onBroken: (error: Error) => void
  /** How much longer than the deadline an exchange may take before the thread is taken for stuck. */
  stuckAfterMs?: number
  /** Another module that is run as the thread. */
  threadUrl?: URL
}

const defaultStuckAfterMs = 15_000
/** A thread that breaks at once isn't started in a loop. */
const restartAfterMs = 1_000
/** What is young in the thread's heap: three times 16 MiB, as V8 counts. */
const maxYoungGenerationSizeMb = 48

/** As undici says of a pool that is closed. */
const closed: Outcome = { kind: 'connection', code: 'UND_ERR_DESTROYED' }
const threadEnded: Outcome = { kind: 'connection', code: 'SLUICE_THREAD_ENDED' }

type InFlight = { readonly exchange: Exchange; readonly sinceMs: number; isAnswered: boolean }

/**
 * A sender whose connections, handshakes, timers and garbage are a thread's of its own, which starts with the
 * first request: what hundreds of silent endpoints cost is not paid by the thread that serves the healthy
 * ones.
 */
export class ThreadedSender implements Sender {
  readonly #options: ThreadedSenderOptions
  #thread: Worker | undefined
  #startedMs = -Infinity
  /** Ids of targets that the thread knows, or is told of next. */
  #targetIds = new WeakMap<Target, number>()
  readonly #collected: FinalizationRegistry<number>
  #nextTarget = 0
  #nextExchange = 0
  /** By the exchange's number, so in the order in which they were posted. */
  readonly #inFlight = new Map<number, InFlight>()
  #targets: SenderThreadRequests['targets'][number][] = []
  #forgotten: number[] = []
  #posts: PostedRequest[] = []
  #bodies: Uint8Array[] = []
  #sending: NodeJS.Immediate | NodeJS.Timeout | undefined
  readonly #checking: NodeJS.Timeout
  #isClosed = false

  constructor(options: ThreadedSenderOptions) {
    this.#options = options
    this.#collected = new FinalizationRegistry((id) => this.#forgotten.push(id))
    const { stuckAfterMs = defaultStuckAfterMs } = options
    this.#checking = setInterval(() => this.#endStuckThread(stuckAfterMs), stuckAfterMs / 3)
    this.#checking.unref()
  }

  post(target: Target, body: Uint8Array, signatureHeaders: readonly string[], exchange: Exchange): void {
    if (this.#isClosed) {
      exchange.answered(closed, false)
      exchange.released()
      return
    }
    const number = this.#nextExchange++
    this.#inFlight.set(number, { exchange, sinceMs: performance.now(), isAnswered: false })
    this.#posts.push({ exchange: number, target: this.#idOf(target), bytes: body.length, signatureHeaders })
    this.#bodies.push(body)
    this.#sendSoon()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#checking)
    const thread = this.#thread
    this.#thread = undefined
    this.#failAll(closed)
    await thread?.terminate()
  }

  #idOf(target: Target): number {
    const known = this.#targetIds.get(target)
    if (known !== undefined) return known
    const id = this.#nextTarget++
    const { origin, path, headers, secrets } = target
    this.#targetIds.set(target, id)
    this.#collected.register(target, id)
    this.#targets.push({ id, origin, path, headers, secrets })
    return id
  }

  /** What one turn of the event loop asks for goes over in one message. */
  #sendSoon(): void {
    if (this.#sending !== undefined || this.#isClosed) return
    const waitMs = this.#thread === undefined ? this.#startedMs + restartAfterMs - performance.now() : 0
    const send = (): void => {
      this.#sending = undefined
      this.#send()
    }
    this.#sending = waitMs > 0 ? setTimeout(send, Math.ceil(waitMs)) : setImmediate(send)
  }

  #send(): void {
    if (this.#isClosed) return
    const requests: SenderThreadRequests = {
      targets: this.#targets,
      forgotten: this.#forgotten,
      posts: this.#posts,
      bodies: joined(this.#bodies),
    }
    this.#targets = []
    this.#forgotten = []
    this.#posts = []
    this.#bodies = []
    this.#thread ??= this.#start()
    this.#thread.postMessage(requests, [requests.bodies])
  }

  #start(): Worker {
    this.#startedMs = performance.now()
    const { allowAddresses, dnsServers, timeoutMs, poolIdleMs, keptAnswerBytes = 0 } = this.#options
    const { threadUrl = senderThreadUrl } = this.#options
    const input: SenderThreadInput = { allowAddresses, dnsServers, timeoutMs, poolIdleMs, keptAnswerBytes }
    const thread = new Worker(threadUrl, {
      name: 'sick-hooks',
      workerData: input,
      resourceLimits: { maxYoungGenerationSizeMb },
    })
    thread.unref()
    thread.on('message', (reports: SenderThreadReports) => this.#take(reports))
    thread.once('error', (error) => this.#broke(thread, error))
    thread.once('exit', (code) => this.#broke(thread, new Error(`it ended with ${code}`)))
    return thread
  }

  #take({ exchanges, lookups }: SenderThreadReports): void {
    for (const { outcome, ms } of lookups) this.#options.onLookup?.(outcome, ms)
    for (const report of exchanges) this.#takeOne(report)
  }

  #takeOne(report: ExchangeReport): void {
    const one = this.#inFlight.get(report.exchange)
    if (one === undefined) return
    if ('outcome' in report) {
      one.isAnswered = true
      one.exchange.answered(report.outcome, report.mayHaveArrived)
      return
    }
    this.#inFlight.delete(report.exchange)
    one.exchange.released()
  }

  #endStuckThread(stuckAfterMs: number): void {
    const [oldest] = this.#inFlight.values()
    const { timeoutMs } = this.#options
    const thread = this.#thread
    if (oldest === undefined || thread === undefined) return
    const tookMs = performance.now() - oldest.sinceMs
    if (tookMs < timeoutMs + stuckAfterMs) return
    this.#broke(thread, new Error(`it stood still: a request had no end after ${Math.round(tookMs)} ms`))
    void thread.terminate()
  }

  #broke(thread: Worker, error: Error): void {
    if (this.#thread !== thread) return
    this.#thread = undefined
    this.#targetIds = new WeakMap()
    this.#options.onBroken(error)
    this.#failAll(threadEnded)
  }

  /** Nobody knows what arrived of these requests. */
  #failAll(outcome: Outcome): void {
    const all = [...this.#inFlight.values()]
    this.#inFlight.clear()
    this.#targets = []
    this.#posts = []
    this.#bodies = []
    for (const { exchange, isAnswered } of all) {
      if (!isAnswered) exchange.answered(outcome, true)
      exchange.released()
    }
  }
}

function joined(bodies: readonly Uint8Array[]): ArrayBuffer {
  const all = new Uint8Array(bodies.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const body of bodies) {
    all.set(body, at)
    at += body.length
  }
  return all.buffer
}
