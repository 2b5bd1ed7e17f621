import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { type Answer, decode, encode, RECURSION_AVAILABLE, RECURSION_DESIRED } from 'dns-packet'

/** A DNS server on 127.0.0.1 that says what a test wants, of addresses alone, over UDP. */

export type DnsQuestion = { name: string; type: 'A' | 'AAAA' }

/** `silence`: no answer at all. No addresses: the name is there, and has none of that type. */
export type DnsReply =
  | { addresses: readonly string[]; ttlSeconds?: number }
  | 'NXDOMAIN'
  | 'SERVFAIL'
  | 'REFUSED'
  | 'silence'

export type DnsServer = {
  /** For `delivery.dnsServers`: `127.0.0.1:5353`. */
  address: string
  /** All that were asked, in order; what a client repeats is there twice. */
  questions: readonly DnsQuestion[]
  asked(name: string, type?: DnsQuestion['type']): number
  stop(): Promise<void>
}

/** Starts one. `reply` may take its time. */
export async function startDnsServer(
  reply: (question: DnsQuestion) => DnsReply | Promise<DnsReply>,
): Promise<DnsServer> {
  const questions: DnsQuestion[] = []
  const socket = createSocket('udp4')
  let isOpen = true

  async function answer(query: Buffer, send: (message: Buffer) => void): Promise<void> {
    const { id, questions: [asked] = [] } = decode(query)
    if (id === undefined || asked === undefined || (asked.type !== 'A' && asked.type !== 'AAAA')) return
    const question: DnsQuestion = { name: asked.name.toLowerCase(), type: asked.type }
    questions.push(question)
    const said = await reply(question)
    if (said !== 'silence' && isOpen) send(answerTo(id, asked.name, question.type, said))
  }

  socket.on('message', (query, { port, address }) => {
    void answer(query, (message) => socket.send(message, port, address))
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    asked: (name, type) =>
      questions.filter((question) => question.name === name && (type ?? question.type) === question.type)
        .length,
    stop() {
      isOpen = false
      return new Promise((resolve) => socket.close(() => resolve()))
    },
  }
}

/** Says what each name has, of both types: addresses by name; every other name doesn't exist. */
export function zone(
  names: Readonly<Record<string, readonly string[]>>,
): (question: DnsQuestion) => { addresses: readonly string[] } | 'NXDOMAIN' {
  return ({ name, type }) => {
    const addresses = names[name]
    if (addresses === undefined) return 'NXDOMAIN'
    return { addresses: addresses.filter((address) => isIPv6(address) === (type === 'AAAA')) }
  }
}

const responseCodes = { SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const

function answerTo(
  id: number,
  name: string,
  type: DnsQuestion['type'],
  said: Exclude<DnsReply, 'silence'>,
): Buffer {
  const { addresses, ttlSeconds = 60 } = typeof said === 'string' ? { addresses: [] } : said
  const code = typeof said === 'string' ? responseCodes[said] : 0
  const answers = addresses.map((data): Answer => ({ type, name, ttl: ttlSeconds, data }))
  const flags = RECURSION_DESIRED | RECURSION_AVAILABLE | code
  return encode({ type: 'response', id, flags, questions: [{ type, name }], answers })
}
