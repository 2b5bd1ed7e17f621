import { createServer, type Server, type Socket } from 'node:net'
import { Arrivals } from './arrivals.ts'
import { addressOf, type Command } from './recorder-process.ts'
import { accepted, readRequests } from './requests.ts'

/**
 * `recorder.ts ADDRESSES`: the servers of all customers in one process, which notes when each message came.
 * It keeps idle connections open: when one is closed is the sender's doing.
 */

let arrivals = new Arrivals({ messages: 0, secret: '-', special: [] })

const pathBegin = 'POST /d/'

function serve(socket: Socket): void {
  arrivals.connected()
  readRequests(socket, (head, body) => {
    const destination = Number(head.slice(pathBegin.length, head.indexOf(' ', pathBegin.length)))
    const afterMs = arrivals.take(destination, head, body)
    if (afterMs === 'never') return
    if (afterMs === 0) socket.write(accepted)
    else setTimeout(() => socket.writable && socket.write(accepted), afterMs)
  })
}

function obey(command: Command): void {
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

process.on('message', obey)
process.on('disconnect', () => process.exit(0))

let port = 0
for (let index = 0; index < Number(process.argv[2]); index++) {
  port = await listen(createServer({ noDelay: true }, serve), port, addressOf(index))
}
process.send?.(port)
