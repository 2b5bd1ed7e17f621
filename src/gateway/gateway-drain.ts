import { Server as NetServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const pollMs = 20
/**
 * How long no request must have been open before the remaining connections count as unused, in milliseconds.
 */
const quietMs = 200

/** Counts the open requests of a server, and stops the server once they are answered. */
export class GatewayDrain {
  #isRetired = false
  #open = 0

  /** True once each answer is the last one of its connection. */
  get isRetired(): boolean {
    return this.#isRetired
  }

  get open(): number {
    return this.#open
  }

  /** Counts a request as open until its response is closed. */
  opened(response: { once(event: 'close', listener: () => void): unknown }): void {
    this.#open++
    response.once('close', () => this.#open--)
  }

  /** Makes each answer from now on the last one of its connection. */
  retire(): void {
    this.#isRetired = true
  }

  /**
   * Retires, waits until the open requests are answered, and closes the server. Closes it after `timeoutMs`
   * in any case.
   */
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
 * Stops listening and leaves the open connections alone. HTTP's own `close` would break off connections that
 * are idle at this moment.
 */
function stopListening(server: FastifyInstance['server']): void {
  NetServer.prototype.close.call(server)
}
