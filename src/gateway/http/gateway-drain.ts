import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const pollMs = 20
/** If there was no open request for this time in milliseconds, the remaining connections count as unused. */
const quietMs = 200

/** Counts the open requests of a server, and stops the server once all of them have been answered. */
export class GatewayDrain {
  #isRetired = false
  #open = 0
  /** The number of open requests of each connection. */
  readonly #bySocket = new WeakMap<Socket, { open: number }>()

  /** True once the server is retired: every connection is closed after its next answer. */
  get isRetired(): boolean {
    return this.#isRetired
  }

  get open(): number {
    return this.#open
  }

  /**
   * Counts a request as open until its response or its connection is closed. Returns the number of open
   * requests of the connection.
   */
  opened(socket: Socket, response: { once(event: 'close', listener: () => void): unknown }): number {
    const ofSocket = this.#bySocket.get(socket) ?? this.#follow(socket)
    ofSocket.open++
    this.#open++
    response.once('close', () => {
      if (ofSocket.open > 0) this.#closed(ofSocket, 1)
    })
    return ofSocket.open
  }

  /** Retires the server: from now on, every connection is closed after its next answer. */
  retire(): void {
    this.#isRetired = true
  }

  /**
   * Retires the server, waits until the open requests have been answered, and closes the server. After
   * `timeoutMs`, closes the server even if requests are still open.
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

  /**
   * Counts the open requests of a connection until it closes. A client may send several requests without
   * waiting for answers. Each answer then waits for the answers before it. If the connection closes during
   * this wait, Node doesn't close all responses that wait, so this method counts them as closed.
   */
  #follow(socket: Socket): { open: number } {
    const ofSocket = { open: 0 }
    this.#bySocket.set(socket, ofSocket)
    socket.once('close', () => this.#closed(ofSocket, ofSocket.open))
    return ofSocket
  }

  #closed(ofSocket: { open: number }, count: number): void {
    ofSocket.open -= count
    this.#open -= count
  }
}

/**
 * Stops listening, and keeps all open connections. The `close` of Node's HTTP server isn't used, because it
 * would break off the connections that are idle at this moment.
 */
function stopListening(server: FastifyInstance['server']): void {
  NetServer.prototype.close.call(server)
}
