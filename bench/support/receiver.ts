import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { idCharacters, idMarker } from './messages.ts'
import { cpuUsOf } from './process-cpu.ts'
import type { Command, Mark, Report } from './receiver-process.ts'

/**
 * A process that takes HTTP/1.1 requests and answers each with 200. On a bare socket, since node:http would
 * cost more than what is measured. It counts, finds repeats, and notes what CPU time the sender's process had
 * used at the first delivery, the middle one and the last.
 */

const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok')
const endOfHead = Buffer.from('\r\n\r\n')
const marker = Buffer.from(idMarker)
/** One in so many signatures is checked: all would cost as much as the sender spends on them. */
const checkedSignatureEvery = 100

class Run {
  readonly #expected: number
  readonly #key: KeyObject | undefined
  readonly #seen: Uint8Array
  readonly #counts = { deliveries: 0, distinct: 0, repeats: 0, unknown: 0, connections: 0 }
  readonly #signatures = { checked: 0, wrong: 0 }
  readonly #marks: Mark[] = []
  senderPid: number | undefined

  constructor(expected: number, secret: string | undefined) {
    this.#expected = expected
    this.#key = secret === undefined ? undefined : createSecretKey(Buffer.from(secret))
    this.#seen = new Uint8Array(expected)
  }

  connected(): void {
    this.#counts.connections++
  }

  delivered(head: string, body: Buffer): void {
    const counts = this.#counts
    counts.deliveries++
    if (this.#key !== undefined && counts.deliveries % checkedSignatureEvery === 0) {
      this.#checkSignature(this.#key, head, body)
    }
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
    return { ...this.#counts, signatures: this.#signatures, marks: this.#marks }
  }

  /** Three moments: the first delivery, the middle one, the last. */
  #mark(distinct: number): void {
    if (distinct !== 1 && distinct !== Math.ceil(this.#expected / 2) && distinct !== this.#expected) return
    if (this.senderPid === undefined) throw new Error('a delivery came before the sender was named')
    this.#marks.push({ distinct, atMs: performance.now(), cpuUs: cpuUsOf(this.senderPid) })
  }

  #checkSignature(key: KeyObject, head: string, body: Buffer): void {
    const given = /\r\nx-signature: *([0-9a-f]{40})\r\n/i.exec(head)?.[1]
    this.#signatures.checked++
    if (given !== createHmac('sha1', key).update(body).digest('hex')) this.#signatures.wrong++
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

/** Takes all complete requests off the front of `bytes`, answers them, and gives back the rest. */
function takeRequests(socket: Socket, bytes: Buffer): Buffer | undefined {
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf(endOfHead)
    if (headEnd < 0) return rest
    const bodyStart = headEnd + endOfHead.length
    const head = rest.toString('latin1', 0, headEnd + 2)
    const end = bodyStart + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    if (rest.length < end) return rest
    run.delivered(head, rest.subarray(bodyStart, end))
    socket.write(answer)
    rest = rest.subarray(end)
  }
  return undefined
}

const server = createServer({ noDelay: true }, (socket) => {
  let pending: Buffer | undefined
  run.connected()
  socket.on('data', (chunk: Buffer) => {
    pending = takeRequests(socket, pending === undefined ? chunk : Buffer.concat([pending, chunk]))
  })
  // A sender that is stopped cuts its connections.
  socket.on('error', () => socket.destroy())
})

function obey(command: Command): void {
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

process.on('message', obey)
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(typeof address === 'object' ? address?.port : undefined)
})
