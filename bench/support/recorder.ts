import type { Server, Socket } from 'node:net'
import { takeCommands } from './command-process.ts'
import { Arrivals } from './arrivals.ts'
import { addressOf, type Command } from './recorder-process.ts'
import { accepted, readRequests } from './requests.ts'
import { createReceivingServer, readIdentities } from './tls.ts'

/**
 * Runs as a process (`recorder.ts ADDRESSES [IDENTITIES]`) with the servers of all customers, and records
 * when each message arrives. With a file of identities it uses TLS. It keeps idle connections open, so only
 * the sender closes them.
 */

let arrivals = new Arrivals({ messages: 0, secret: '-', special: [] })

const pathBegin = 'POST /d/'

function serve(socket: Socket): void {
  readRequests(socket, (head, body) => {
    const destination = Number(head.slice(pathBegin.length, head.indexOf(' ', pathBegin.length)))
    const afterMs = arrivals.take(destination, head, body)
    if (afterMs === 'never') return
    if (afterMs === 0) socket.write(accepted)
    else setTimeout(() => socket.writable && socket.write(accepted), afterMs)
  })
}

function handleCommand(command: Command): void {
  switch (command.kind) {
    case 'begin':
      arrivals = new Arrivals(command)
      break
    case 'progress':
      process.send?.(arrivals.progress())
      break
    case 'report':
      process.send?.(arrivals.report(command.window))
      break
  }
}

async function listen(server: Server, port: number, host: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: 4_096 }, resolve)
  })
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : -1
}

takeCommands(handleCommand)

const identities = readIdentities(process.argv[3])
let port = 0
for (let index = 0; index < Number(process.argv[2]); index++) {
  const server = createReceivingServer(identities[index], {
    accepted: () => arrivals.connected(),
    served: serve,
  })
  port = await listen(server, port, addressOf(index))
}
process.send?.(port)
