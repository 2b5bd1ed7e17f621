import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from '../support/failure.ts'

/** A receiver that answers each request after a time, and notes which message came when. */
export type BurstReceiver = {
  readonly url: string
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

/** Starts a receiver that answers after `answerMs`. */
export async function startBurstReceiver(answerMs: number): Promise<BurstReceiver> {
  let requests = 0
  let disordered = 0
  const arrivedMs = new Map<number, number>()
  const latest = new Map<string, number>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      note(Buffer.concat(chunks).toString())
      setTimeout(() => response.end(), answerMs)
    })
  })
  function note(body: string): void {
    requests++
    const number = Number(/"messageId":"burst-(\d+)"/.exec(body)?.[1])
    const user = /"userId":"([^"]*)"/.exec(body)?.[1] ?? ''
    if (number < (latest.get(user) ?? -1)) disordered++
    latest.set(user, Math.max(number, latest.get(user) ?? -1))
    if (!arrivedMs.has(number)) arrivedMs.set(number, performance.now())
  }
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, resolve))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a TCP server has such an address
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/burst`,
    get requests() {
      return requests
    },
    get disordered() {
      return disordered
    },
    arrivedMs,
    begin() {
      requests = 0
      disordered = 0
      arrivedMs.clear()
      latest.clear()
    },
    async all(count, withinS) {
      const deadlineMs = performance.now() + withinS * 1_000
      while (arrivedMs.size < count) {
        if (performance.now() > deadlineMs)
          throw new BenchmarkFailure(`${arrivedMs.size} of ${count} messages came within ${withinS} s`)
        await delay(pollMs)
      }
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
