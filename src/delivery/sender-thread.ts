import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { createAddressPolicy } from '../address/policy.ts'
import type { Outcome } from './outcome.ts'
import { createResolver, type LookupOutcome } from './resolver.ts'
import { createSender, type Sender, type Target } from './sender.ts'

/** What the thread's sender is made of. */
export type SenderThreadInput = {
  readonly allowAddresses: readonly string[]
  /** Name servers to ask; empty: those of the system. */
  readonly dnsServers: readonly string[]
  readonly timeoutMs: number
  readonly poolIdleMs: number
  readonly keptAnswerBytes?: number
}

/** What `ThreadedSender` posts to the thread, once a turn of its event loop. */
export type SenderThreadRequests = {
  /** Targets that the thread doesn't know yet. */
  readonly targets: readonly (Omit<Target, 'connections'> & { readonly id: number })[]
  /** Targets to which nothing more is sent. */
  readonly forgotten: readonly number[]
  readonly posts: readonly PostedRequest[]
  /** All bodies, one after the other. */
  readonly bodies: ArrayBuffer
}

export type PostedRequest = {
  /** Names the exchange in what the thread reports. */
  readonly exchange: number
  readonly target: number
  readonly bytes: number
  readonly signatureHeaders: readonly string[]
}

/** What the thread reports, once a turn of its event loop, in the order in which it came about. */
export type SenderThreadReports = {
  readonly exchanges: readonly ExchangeReport[]
  readonly lookups: readonly { readonly outcome: LookupOutcome; readonly ms: number }[]
}

export type ExchangeReport =
  | { readonly exchange: number; readonly outcome: Outcome; readonly mayHaveArrived: boolean }
  | { readonly exchange: number; readonly isReleased: true }

/** This module, to be run as a thread: as .ts from the sources, as .js after a build. */
export const senderThreadUrl = new URL(import.meta.url)

/**
 * Whoever delivers to healthy endpoints goes first where CPU is short. Linux gives each thread a niceness of
 * its own.
 */
const niceness = 5

/** Posts what it is asked to, and reports what became of it. */
class SenderThread {
  readonly #sender: Sender
  readonly #report: (reports: SenderThreadReports) => void
  readonly #targets = new Map<number, Target>()
  #exchanges: ExchangeReport[] = []
  #lookups: SenderThreadReports['lookups'][number][] = []
  #isReporting = false

  constructor(input: SenderThreadInput, report: (reports: SenderThreadReports) => void) {
    this.#report = report
    const { allowAddresses, dnsServers, ...settings } = input
    this.#sender = createSender({
      policy: createAddressPolicy(allowAddresses),
      resolver: createResolver({
        servers: dnsServers,
        onLookup: (outcome, ms) => {
          this.#lookups.push({ outcome, ms })
          this.#reportSoon()
        },
      }),
      ...settings,
    })
  }

  take({ targets, forgotten, posts, bodies }: SenderThreadRequests): void {
    for (const { id, ...target } of targets) this.#targets.set(id, target)
    let at = 0
    for (const post of posts) {
      this.#post(post, new Uint8Array(bodies, at, post.bytes))
      at += post.bytes
    }
    for (const id of forgotten) this.#targets.delete(id)
  }

  #post({ exchange, target: id, signatureHeaders }: PostedRequest, body: Uint8Array): void {
    const target = this.#targets.get(id)
    if (target === undefined) throw new Error(`target ${id} was not sent`)
    this.#sender.post(target, body, signatureHeaders, {
      answered: (outcome, mayHaveArrived) => this.#note({ exchange, outcome, mayHaveArrived }),
      released: () => this.#note({ exchange, isReleased: true }),
    })
  }

  #note(report: ExchangeReport): void {
    this.#exchanges.push(report)
    this.#reportSoon()
  }

  #reportSoon(): void {
    if (this.#isReporting) return
    this.#isReporting = true
    setImmediate(() => {
      this.#isReporting = false
      this.#report({ exchanges: this.#exchanges, lookups: this.#lookups })
      this.#exchanges = []
      this.#lookups = []
    })
  }
}

function yieldToOthers(): void {
  try {
    setPriority(niceness)
  } catch {
    // Some sandboxes allow no thread to change its priority: it then has that of all others.
  }
}

// Only in the thread: elsewhere the module is imported for its URL.
if (parentPort !== null && isInput(workerData)) {
  const port = parentPort
  yieldToOthers()
  const thread = new SenderThread(workerData, (reports) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
    port.postMessage(reports)
  })
  port.on('message', (requests: SenderThreadRequests) => thread.take(requests))
}

function isInput(value: unknown): value is SenderThreadInput {
  return typeof value === 'object' && value !== null && 'poolIdleMs' in value
}
