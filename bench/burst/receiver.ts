import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from '../support/failure.ts'

/** A receiver that answers each request after a time, and notes which message came when. */
export type BurstReceiver = {
  readonly url: string
  /** When each message was first answered since `begin`, in milliseconds of `performance.now()`. */
  readonly answeredAtMs: readonly number[]
  /** The requests since `begin`. */
  readonly requests: number
  /** The times of the first arrivals of the messages since `begin`, by their number, in milliseconds. */
  readonly arrivedMs: ReadonlyMap<number, number>
  /** The messages of one user that came after a later message of this user. */
  readonly disordered: number
  begin(): void
  /** Waits until so many messages have come. Fails after `withinS` seconds. */
  all(count: number, withinS: number): Promise<void>
  stop(): Promise<void>
}

const pollMs = 10

/** What came, and what was answered, since `begin`. */
class Book {
  requests = 0
  disordered = 0
  readonly arrivedMs = new Map<number, number>()
  readonly answeredAtMs: number[] = []
  readonly #answered = new Set<number>()
  readonly #latest = new Map<string, number>()

  begin(): void {
    this.requests = 0
    this.disordered = 0
    this.answeredAtMs.length = 0
    for (const noted of [this.arrivedMs, this.#answered, this.#latest]) noted.clear()
  }

  /** Notes a request, and returns the number of its message. */
  came(body: string): number {
    this.requests++
    const number = Number(/"messageId":"burst-(\d+)"/.exec(body)?.[1])
    const user = /"userId":"([^"]*)"/.exec(body)?.[1] ?? ''
    const latest = this.#latest.get(user) ?? -1
    if (number < latest) this.disordered++
    this.#latest.set(user, Math.max(number, latest))
    if (!this.arrivedMs.has(number)) this.arrivedMs.set(number, performance.now())
    return number
  }

  answered(number: number): void {
    if (!this.#answered.has(number)) this.answeredAtMs.push(performance.now())
    this.#answered.add(number)
  }
}

/**
 * Starts a receiver that needs `answerMs` for each request. With `isSerial` it has one worker, and does all work
 * that it got, even if nobody waits for the answer any more.
 */
export async function startBurstReceiver(
  answerMs: number,
  { isSerial = false }: { isSerial?: boolean } = {},
): Promise<BurstReceiver> {
  const book = new Book()
  let freeAtMs = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    const nowMs = performance.now()
    freeAtMs = Math.max(nowMs, freeAtMs) + answerMs
    const waitMs = isSerial ? freeAtMs - nowMs : answerMs
    request.on('error', () => undefined)
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const number = book.came(Buffer.concat(chunks).toString())
      setTimeout(() => {
        if (response.destroyed) return
        book.answered(number)
        response.end()
      }, waitMs)
    })
  })
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, resolve))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a TCP server has such an address
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/burst`,
    get requests() {
      return book.requests
    },
    get disordered() {
      return book.disordered
    },
    arrivedMs: book.arrivedMs,
    answeredAtMs: book.answeredAtMs,
    begin: () => book.begin(),
    async all(count, withinS) {
      const deadlineMs = performance.now() + withinS * 1_000
      while (book.arrivedMs.size < count) {
        if (performance.now() > deadlineMs)
          throw new BenchmarkFailure(`${book.arrivedMs.size} of ${count} messages came within ${withinS} s`)
        await delay(pollMs)
      }
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
