import { listenForParent, takeCommands } from './command-process.ts'
import { monotonicMs } from './clock.ts'
import { idCharacters, idMarker } from './messages.ts'
import { cpuUsOf } from './process-family.ts'
import type { Command, Mark, Report } from './receiver-process.ts'
import { accepted, readRequests } from './requests.ts'
import { SignatureCheck } from './signature-check.ts'
import { createReceivingServer, readIdentities } from './tls.ts'

/**
 * Runs as a process (`receiver.ts [IDENTITIES] [MS]`), and answers each HTTP/1.1 request with 200, after so many
 * milliseconds. With a file of identities (not '') it uses TLS. It counts messages and repeats. It records the CPU time of the sender's process at
 * the first, the middle and the last message.
 */

const marker = Buffer.from(idMarker)

class Run {
  readonly #expected: number
  readonly #signatures: SignatureCheck | undefined
  readonly #seen: Uint8Array
  readonly #counts = { requests: 0, deliveries: 0, distinct: 0, repeats: 0, unknown: 0, connections: 0 }
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
    this.#counts.requests++
    this.#signatures?.show(head, body)
    const numbers = numbersIn(body)
    if (numbers.length === 0) this.#came(-1)
    for (const number of numbers) this.#came(number)
  }

  #came(index: number): void {
    const counts = this.#counts
    counts.deliveries++
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

  /** Records a mark if this is the first, the middle or the last message. */
  #mark(distinct: number): void {
    if (distinct !== 1 && distinct !== Math.ceil(this.#expected / 2) && distinct !== this.#expected) return
    if (this.senderPid === undefined) throw new Error('a delivery came before the sender was named')
    this.#marks.push({ distinct, atMs: monotonicMs(), cpuUs: cpuUsOf(this.senderPid) })
  }
}

let run = new Run(0, undefined)

/** Returns the numbers of the messages in a body, which may be a batch. */
function numbersIn(body: Buffer): number[] {
  const numbers: number[] = []
  for (let at = body.indexOf(marker); at >= 0; at = body.indexOf(marker, at + marker.length)) {
    const end = at + marker.length + idCharacters
    numbers.push(Number(body.toString('latin1', end - 12, end)))
  }
  return numbers
}

const [identity] = readIdentities(process.argv[2] === '' ? undefined : process.argv[2])
const answerAfterMs = Number(process.argv[3] ?? 0)
const server = createReceivingServer(identity, {
  accepted: () => run.connected(),
  served: (socket) =>
    readRequests(socket, (head, body) => {
      run.delivered(head, body)
      if (answerAfterMs === 0) socket.write(accepted)
      else setTimeout(() => socket.writable && socket.write(accepted), answerAfterMs)
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
