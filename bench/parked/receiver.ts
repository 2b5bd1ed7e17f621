import { createServer } from 'node:net'
import { listenForParent, takeCommands } from '../support/command-process.ts'
import { accepted, readRequests } from '../support/requests.ts'
import type { Command, Report } from './receiver-process.ts'
import { numberOf } from './records.ts'

/** Runs as a process. Answers each HTTP/1.1 request with 200, and records when each message first arrived. */

let arrivedAtMs = new Float64Array(0)
let counts = { distinct: 0, repeats: 0, unknown: 0 }

function take(_head: string, body: Buffer): void {
  const number = numberOf(body)
  const before = arrivedAtMs[number]
  if (before === undefined) counts.unknown++
  else if (before > 0) counts.repeats++
  else {
    // Kafka and the worker use this clock too.
    arrivedAtMs[number] = Date.now()
    counts.distinct++
  }
}

const server = createServer({ noDelay: true }, (socket) =>
  readRequests(socket, (head, body) => {
    take(head, body)
    socket.write(accepted)
  }),
)

function handleCommand(command: Command): void {
  switch (command.kind) {
    case 'begin':
      arrivedAtMs = new Float64Array(command.messages)
      counts = { distinct: 0, repeats: 0, unknown: 0 }
      break
    case 'progress':
      process.send?.(counts.distinct)
      break
    case 'report': {
      const { repeats, unknown } = counts
      const report: Report = { arrivedAtMs, repeats, unknown }
      process.send?.(report)
      break
    }
  }
}

takeCommands(handleCommand)
listenForParent(server)
