import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { type Arrival, Receiver } from './receiver.ts'
import { type Destination, type DestinationId, destinations, retryAfterSeconds, times } from './script.ts'
import { selfSigned } from './self-signed.ts'

/** A customer. Its servers listen on 127.0.0.1 and serve no other customer. */
export type Customer = {
  readonly id: DestinationId
  readonly secret: string | undefined
  readonly hooks: readonly { id: string; url: string; headers: Record<string, string> }[]
  /** The requests that the customer's main server has received. */
  readonly receiver: Receiver
  /**
   * The requests of the server at the second URL, if the customer has one. This server answers 500 to each.
   */
  readonly failing: Receiver | undefined
}

/**
 * Counts of the server of `legacy`. This server has a self-signed certificate, so no request may reach it.
 */
export type RefusingServers = {
  /** The number of TCP connections to the server. */
  handshakes: number
  /** The number of bytes of requests that the server has received inside of TLS. */
  requestBytes: number
}

export type Customers = {
  readonly all: ReadonlyMap<DestinationId, Customer>
  readonly refusing: RefusingServers
  /** Makes the server of `erp` answer 200 from now on. Before this call it never answers. */
  mendErp(): void
  stop(): Promise<void>
}

type Answer = { status: number; headers?: Record<string, string> } | 'none'
type Behaviour = (arrival: Arrival, before: number) => Answer

const maxBodyBytes = 1024 * 1024

/** Starts the servers of all customers. `elapsedMs` returns the milliseconds since the first message. */
export async function startCustomers(elapsedMs: () => number): Promise<Customers> {
  const servers: Server[] = []
  const refusing: RefusingServers = { handshakes: 0, requestBytes: 0 }
  const erp = { isMended: false }
  const all = new Map<DestinationId, Customer>()

  const listen = async (server: Server): Promise<number> => {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a TCP server has such an address
    return (server.address() as AddressInfo).port
  }

  try {
    for (const destination of destinations) {
      const { id } = destination
      const secret = destination.isSigned ? `the-shared-secret-of-${id}` : undefined
      const receiver = new Receiver(secret, expectedHeaders(destination))
      const handle = handlerOf(receiver, behaviourOf(id, elapsedMs, erp))
      const main =
        id === 'legacy'
          ? `https://127.0.0.1:${await listen(createSelfSignedServer(handle, refusing))}`
          : `http://127.0.0.1:${await listen(createHttpServer(handle))}`
      const headers = { 'X-Customer': id }
      const hooks = [{ id: 'main', url: `${main}/webhooks/${id}`, headers }]
      const failing = id === 'warehouse' ? new Receiver(secret, expectedHeaders(destination)) : undefined
      if (failing !== undefined) {
        const port = await listen(createHttpServer(handlerOf(failing, () => ({ status: 500 }))))
        hooks.push({ id: 'failing', url: `http://127.0.0.1:${port}/webhooks/${id}`, headers })
      }
      all.set(id, { id, secret, hooks, receiver, failing })
    }
  } catch (error) {
    await stopAll(servers)
    throw error
  }
  return {
    all,
    refusing,
    mendErp() {
      erp.isMended = true
    },
    stop: () => stopAll(servers),
  }
}

function expectedHeaders({ id }: Destination): Record<string, string> {
  return { 'user-agent': 'Sluice/1.0', 'content-type': 'application/json', 'x-customer': id }
}

function behaviourOf(
  id: DestinationId,
  elapsedMs: () => number,
  erp: { readonly isMended: boolean },
): Behaviour {
  switch (id) {
    case 'crm':
    case 'warehouse':
    case 'archive':
    case 'partner':
    case 'campaigns':
      return () => ({ status: 200 })
    case 'mailer':
      return () => ({ status: elapsedMs() < times.mailerBackMs ? 503 : 200 })
    case 'ads':
      return (_arrival, before) =>
        before === 0
          ? { status: 429, headers: { 'Retry-After': String(retryAfterSeconds) } }
          : { status: 200 }
    case 'erp':
      return () => (erp.isMended ? { status: 200 } : 'none')
    case 'oldsite':
      return () => ({ status: 404 })
    case 'legacy':
      // This server would accept every request. So if no request arrives, Sluice has sent none.
      return () => ({ status: 200 })
  }
}

function handlerOf(receiver: Receiver, behave: Behaviour) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxBodyBytes) request.destroy()
      else chunks.push(chunk)
    })
    request.on('end', () => {
      const { arrival, before } = receiver.see(request.headers, Buffer.concat(chunks).toString())
      const answer = behave(arrival, before)
      if (answer === 'none') {
        receiver.lastAnswer = 'none'
        return
      }
      receiver.answered(arrival, answer.status)
      response.writeHead(answer.status, { 'Content-Type': 'text/plain', ...answer.headers })
      response.end(answer.status === 200 ? 'thank you\n' : 'no\n')
    })
    // The sender closes the connection if the server doesn't answer in time.
    request.on('error', () => response.destroy())
  }
}

/**
 * Creates the server with the self-signed certificate. The server counts its connections, and the bytes that
 * arrive inside of TLS. So a check can prove that not one byte of a request was sent.
 */
function createSelfSignedServer(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  refusing: RefusingServers,
): Server {
  const server = createHttpsServer(selfSigned, handle)
  server.on('connection', () => refusing.handshakes++)
  server.on('secureConnection', (socket) => {
    socket.on('data', (chunk: Buffer) => {
      refusing.requestBytes += chunk.length
    })
  })
  server.on('tlsClientError', () => {})
  return server
}

async function stopAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(
    servers.map(async (server) => {
      const closed = once(server, 'close')
      server.close()
      if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function') {
        server.closeAllConnections()
      }
      await closed
    }),
  )
}
