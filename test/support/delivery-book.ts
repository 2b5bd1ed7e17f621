import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { json } from 'node:stream/consumers'
import { anywhere } from './anywhere.ts'
import type { Identity } from './certificates.ts'
import { until } from './until.ts'
import { portOf } from './receiver.ts'

/** A request as the customer's server saw it. */
export type Delivery = {
  destination: string
  messageId: string
  /** The worker that sent the request, from its header `X-Worker`. */
  worker: string
  /** Epoch milliseconds. */
  arrivedMs: number
  /** True if the server could write its 200 before the sender closed the connection. */
  isAnswered: boolean
}

/**
 * A customer's server that records each delivery with its sender and its time. The path names the
 * destination: `/crm` is the destination `crm`.
 */
export type DeliveryBook = {
  url(destination: string): string
  /** The deliveries of each destination and message, in order of arrival. The key is `keyOf`. */
  readonly deliveries: ReadonlyMap<string, readonly Delivery[]>
  readonly requests: number
  stop(): Promise<void>
}

/** The deliveries that customers got, by destination and message. */
export class DeliveryLog {
  /** The deliveries by `keyOf`, in order of arrival. */
  readonly deliveries = new Map<string, Delivery[]>()
  #requests = 0

  get requests(): number {
    return this.#requests
  }

  /** Records a delivery that has just arrived and isn't answered yet. */
  note(arrived: Pick<Delivery, 'destination' | 'messageId' | 'worker'>): Delivery {
    this.#requests++
    const delivery: Delivery = { ...arrived, arrivedMs: Date.now(), isAnswered: false }
    const key = keyOf(arrived.destination, arrived.messageId)
    const known = this.deliveries.get(key)
    if (known === undefined) this.deliveries.set(key, [delivery])
    else known.push(delivery)
    return delivery
  }
}

/**
 * Starts a delivery book. It answers 200 after a time between the `least` and `most` milliseconds of the
 * destination. The time changes with each request. The server uses HTTPS if `identity` is given.
 */
export async function startDeliveryBook(
  latencies: Readonly<Record<string, { least: number; most: number }>>,
  { identity }: { identity?: Identity } = {},
): Promise<DeliveryBook> {
  const log = new DeliveryLog()

  async function take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const destination = (incoming.url ?? '').slice(1)
    const { least = 0, most = 0 } = latencies[destination] ?? {}
    const messageId = messageIdOf(await json(incoming))
    const delivery = log.note({ destination, messageId, worker: String(incoming.headers['x-worker']) })
    setTimeout(
      () => {
        if (response.destroyed) return
        delivery.isAnswered = true
        response.writeHead(200).end()
      },
      // 37 has no common divisor with most lengths of the range. So two successive answers take very
      // different times.
      least + ((log.requests * 37) % (most - least + 1)),
    )
  }

  const takeAny = (incoming: IncomingMessage, response: ServerResponse): void => {
    // If a sender is killed, its request ends in the middle.
    take(incoming, response).catch(() => response.destroy())
  }
  const server = identity === undefined ? createServer(takeAny) : createSecureServer(identity, takeAny)
  server.keepAliveTimeout = 60_000
  server.listen(anywhere)
  await until('it listens', () => server.listening)
  return {
    url: (destination) =>
      `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${portOf(server)}/${destination}`,
    deliveries: log.deliveries,
    get requests() {
      return log.requests
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

export function keyOf(destination: string, messageId: string): string {
  return `${destination}/${messageId}`
}

function messageIdOf(message: unknown): string {
  if (typeof message !== 'object' || message === null || !('messageId' in message)) {
    throw new TypeError('the body has no messageId')
  }
  return String(message.messageId)
}
