import { listenForParent, takeCommands } from './command-process.ts'
import { monotonicMs } from './clock.ts'
import { idCharacters, idMarker } from './messages.ts'
import { cpuUsOf } from './process-family.ts'
import type { Command, Mark, Report } from './receiver-process.ts'
import { accepted, readRequests } from './requests.ts'
import { SignatureCheck } from './signature-check.ts'
import { createReceivingServer, readIdentities } from './tls.ts'

/**
 * `receiver.ts [IDENTITIES]`: a process that takes HTTP/1.1 requests, over TLS where it is given an identity, and answers each with 200. It counts, finds repeats, and notes what
 * CPU time the sender's process had used at the first delivery, the middle one and the last.
 */

const marker = Buffer.from(idMarker)

class Run {
  readonly #expected: number
  readonly #signatures: SignatureCheck | undefined
  readonly #seen: Uint8Array
  readonly #counts = { deliveries: 0, distinct: 0, repeats: 0, unknown: 0, connections: 0 }
  readonly #marks: Mark[] = []
  senderPid: number | undefined

  constructor(expected: number, secret: string | undefined) {
    this.#expected = expected
    this.#signatures = secret === undefined ? undefined : new SignatureCheck(secret)
    this.#seen = new Uint8Array(expected)
  }

  connected(): void {
    this.#counts.connections++
  }

  delivered(head: string, body: Buffer): void {
    const counts = this.#counts
    counts.deliveries++
    this.#signatures?.show(head, body)
    const index = numberOf(body)
    const seen = this.#seen[index]
    if (seen === undefined) counts.unknown++
    else if (seen > 0) counts.repeats++
    else {
      this.#seen[index] = 1
      counts.distinct++
      this.#mark(counts.distinct)
    }
  }

  report(): Report {
    const signatures = this.#signatures?.counts ?? { checked: 0, wrong: 0 }
    return { ...this.#counts, signatures, marks: this.#marks }
  }

  /** Three moments: the first delivery, the middle one, the last. */
  #mark(distinct: number): void {
    if (distinct !== 1 && distinct !== Math.ceil(this.#expected / 2) && distinct !== this.#expected) return
    if (this.senderPid === undefined) throw new Error('a delivery came before the sender was named')
    this.#marks.push({ distinct, atMs: monotonicMs(), cpuUs: cpuUsOf(this.senderPid) })
  }
}

let run = new Run(0, undefined)

/** The number of the message that a body holds, -1 for another body. */
function numberOf(body: Buffer): number {
  const at = body.indexOf(marker)
  if (at < 0) return -1
  const end = at + marker.length + idCharacters
  return Number(body.toString('latin1', end - 12, end))
}

const [identity] = readIdentities(process.argv[2])
const server = createReceivingServer(identity, {
  accepted: () => run.connected(),
  served: (socket) =>
    readRequests(socket, (head, body) => {
      run.delivered(head, body)
      socket.write(accepted)
    }),
})

function handleCommand(command: Command): void {
  switch (command.kind) {
    case 'begin':
      run = new Run(command.expected, command.secret)
      break
    case 'watch':
      run.senderPid = command.pid
      break
    case 'report':
      process.send?.(run.report())
      break
  }
}

takeCommands(handleCommand)
listenForParent(server)
