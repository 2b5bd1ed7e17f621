import { createServer } from 'node:net'
import { listenForParent, takeCommands } from '../support/command-process.ts'
import { accepted, readRequests } from '../support/requests.ts'
import type { Command, Report } from './receiver-process.ts'
import { readIdentify } from './users.ts'

/**
 * The server of `startReceiver`, in a separate process. It answers each HTTP/1.1 request with 200. For each
 * user it counts the Identifies that say that the user is in the audience, and those that say that the user
 * isn't.
 */

const most = 255

let entered = new Uint8Array(0)
let left = new Uint8Array(0)
let requests = 0
let unknown = 0

function take(body: Buffer): void {
  requests++
  const identify = readIdentify(body)
  const counts = identify?.isMember === true ? entered : left
  const before = identify === undefined ? undefined : counts[identify.number]
  if (identify === undefined || before === undefined) unknown++
  else counts[identify.number] = Math.min(most, before + 1)
}

const server = createServer({ noDelay: true }, (socket) =>
  readRequests(socket, (_head, body) => {
    take(body)
    socket.write(accepted)
  }),
)

function handleCommand(command: Command): void {
  switch (command.kind) {
    case 'begin':
      entered = new Uint8Array(command.users)
      left = new Uint8Array(command.users)
      requests = 0
      unknown = 0
      break
    case 'progress':
      process.send?.(requests)
      break
    case 'report': {
      const report: Report = { entered, left, unknown }
      process.send?.(report)
      break
    }
  }
}

takeCommands(handleCommand)
listenForParent(server)
