import { Server as NetServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const pollMs = 20
/** When nothing has been open for so long, what is left are connections that nobody uses. */
const quietMs = 200

/** The requests of a server that aren't answered yet, and how it ends: by answering them. */
export class GatewayDrain {
  #isRetired = false
  #open = 0

  /** Each answer is the last one of its connection. */
  get isRetired(): boolean {
    return this.#isRetired
  }

  get open(): number {
    return this.#open
  }

  /** A request came, which is open until its response is closed. */
  opened(response: { once(event: 'close', listener: () => void): unknown }): void {
    this.#open++
    response.once('close', () => this.#open--)
  }

  /** From now on each answer is the last one of its connection. */
  retire(): void {
    this.#isRetired = true
  }

  /** Retires, answers what is there, and closes the server; at the latest after `timeoutMs`. */
  async stop(server: FastifyInstance, timeoutMs: number): Promise<void> {
    this.retire()
    const deadlineMs = performance.now() + timeoutMs
    stopListening(server.server)
    let quietSinceMs = performance.now()
    while (performance.now() < deadlineMs && performance.now() - quietSinceMs < quietMs) {
      await delay(pollMs)
      if (this.#open > 0) quietSinceMs = performance.now()
    }
    const closed = server.close()
    server.server.closeAllConnections()
    await closed
  }
}

/**
 * Leaves the connections that there are: HTTP's own `close` would break off those that are idle at this
 * moment.
 */
function stopListening(server: FastifyInstance['server']): void {
  NetServer.prototype.close.call(server)
}
