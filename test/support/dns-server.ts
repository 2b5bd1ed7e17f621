import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { type Answer, decode, encode, RECURSION_AVAILABLE, RECURSION_DESIRED } from 'dns-packet'

/**
 * A DNS server on 127.0.0.1, over UDP. It answers only questions for addresses. The test decides the answers.
 */

export type DnsQuestion = { name: string; type: 'A' | 'AAAA' }

/**
 * `silence`: the server doesn't answer. Empty `addresses`: the name exists, but has no address of the type in
 * the question.
 */
export type DnsReply =
  | { addresses: readonly string[]; ttlSeconds?: number }
  | 'NXDOMAIN'
  | 'SERVFAIL'
  | 'REFUSED'
  | 'silence'

export type DnsServer = {
  /** The server's address for the setting `delivery.dnsServers`, such as `127.0.0.1:5353`. */
  address: string
  /** All questions so far, in order. If a client repeats a question, the list holds it twice. */
  questions: readonly DnsQuestion[]
  asked(name: string, type?: DnsQuestion['type']): number
  stop(): Promise<void>
}

/** Starts a DNS server. `reply` may take its time to resolve. */
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

/**
 * Returns a `reply` function for a DNS server. `names` holds the addresses (IPv4 and IPv6) of each name. All
 * other names don't exist.
 */
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
