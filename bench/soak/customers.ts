import { createHmac, createSecretKey } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { takeCommands } from '../support/command-process.ts'
import { addressOf } from '../support/recorder-process.ts'
import { accepted, readRequests } from '../support/requests.ts'
import { readStamp } from '../support/stamped-messages.ts'
import { type Behaviour, type Command, type Plan, type Report, slowMs } from './customers-process.ts'

/** Runs as a process (`customers.ts PLAN`) with one server for each destination. */

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by customers-process.ts
const plan = JSON.parse(process.argv[2] ?? '') as Plan
const keys = plan.secrets.map((secret) => createSecretKey(Buffer.from(secret)))
const isAccepted = new Uint8Array(plan.messages)
const signedWith = keys.map(() => 0)
const counts = { requests: 0, distinct: 0, repeats: 0, unknown: 0, wronglySigned: 0 }
const failed = Buffer.from('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops')

function accept(socket: Socket, number: number): void {
  if (!socket.writable) return
  if (isAccepted[number] === 1) counts.repeats++
  else {
    isAccepted[number] = 1
    counts.distinct++
  }
  socket.write(accepted)
}

function checkSignature(head: string, body: Buffer): void {
  const given = /\r\nx-signature: *([0-9a-f]{40})\r\n/i.exec(head)?.[1]
  const index = keys.findIndex((key) => given === createHmac('sha1', key).update(body).digest('hex'))
  if (index < 0) counts.wronglySigned++
  else signedWith[index] = (signedWith[index] ?? 0) + 1
}

function take(behaviour: Behaviour, socket: Socket, head: string, body: Buffer): void {
  counts.requests++
  checkSignature(head, body)
  const number = readStamp(body)?.number
  if (number === undefined || number >= plan.messages) {
    counts.unknown++
    return
  }
  switch (behaviour) {
    case 'healthy':
      return accept(socket, number)
    case 'slow':
      setTimeout(accept, slowMs, socket, number)
      return
    case 'failing':
      if (Math.random() < 0.5) accept(socket, number)
      else socket.write(failed)
      return
    case 'resetting':
      socket.resetAndDestroy()
      return
    case 'dead':
  }
}

class Customer {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #address: { port: number; host: string }

  constructor(behaviour: Behaviour, address: { port: number; host: string }) {
    this.#address = address
    this.#server = createServer({ noDelay: true }, (socket) => this.#serve(behaviour, socket))
  }

  /** Starts to listen. Returns the port. */
  async listen(): Promise<number> {
    this.#server.listen({ ...this.#address, backlog: 1_024 })
    await once(this.#server, 'listening')
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : -1
  }

  restart(downMs: number): void {
    // A server that is down already comes back at its planned time.
    if (!this.#server.listening) return
    this.#server.close(() => setTimeout(() => void this.listen(), downMs))
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(behaviour: Behaviour, socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    readRequests(socket, (head, body) => take(behaviour, socket, head, body))
  }
}

function handleCommand(command: Command): void {
  switch (command.kind) {
    case 'restart':
      for (const destination of command.destinations) customers[destination]?.restart(command.downMs)
      break
    case 'progress':
      process.send?.(counts.distinct)
      break
    case 'report': {
      const { requests, repeats, unknown, wronglySigned } = counts
      const report: Report = { requests, accepted: isAccepted, repeats, unknown, signedWith, wronglySigned }
      process.send?.(report)
      break
    }
  }
}

takeCommands(handleCommand)

const customers: Customer[] = []
let port = 0
for (const [index, behaviour] of plan.behaviours.entries()) {
  const customer = new Customer(behaviour, { port, host: addressOf(index) })
  port = await customer.listen()
  customers.push(customer)
}
process.send?.(port)
