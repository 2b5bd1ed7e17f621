import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePorts } from '../../src/development/free-ports.ts'
import { type SingleBroker, startSingleBroker } from './single-broker.ts'

/** A request as it arrived. `body` holds the bytes after the correlation id. */
export type SeenRequest = { apiKey: number; apiVersion: number; body: Buffer }

/** The ways in which the cluster differs from Apache Kafka. */
export type Manners = {
  /** Returns true if a topic may be created with this setting. Default: every setting is allowed. */
  takes?: (name: string) => boolean
  /**
   * Returns the value of a setting that the cluster reports. Returns `undefined` if the cluster leaves the
   * setting out. Default: the cluster reports all settings as they are.
   */
  tells?: (name: string, value: string | null) => string | null | undefined
  /**
   * Returns the versions of a request that the cluster knows, as `[lowest, highest]`. Returns `undefined` for
   * the versions that the broker knows.
   */
  knows?: (apiKey: number) => readonly [number, number] | undefined
  /**
   * Answers a request in place of the broker. Returns the bytes after the correlation id, or `undefined` if
   * the broker is to answer.
   */
  answers?: (request: SeenRequest) => Buffer | undefined
  /**
   * Returns what happens to the answer. `a second`: it arrives one second late. `half`: half of it arrives,
   * and the connection closes. `cut`: the connection closes before it. `all`: it never arrives. `undefined`: it
   * arrives at once.
   */
  loses?: (request: SeenRequest) => 'a second' | 'half' | 'cut' | 'all' | undefined
}

/**
 * A broker behind a proxy. Through the proxy, the broker looks like a cluster that doesn't run Apache Kafka.
 */
export type CloudKafka = SingleBroker & {
  /**
   * The proxy's address (`host:port`). A client that starts with this address sends all its requests through
   * the proxy.
   */
  address: string
  manners: Manners
  requests: SeenRequest[]
  /** The number of open connections of clients to the proxy. */
  readonly openConnections: number
}

const apiKeys = { apiVersions: 18, createTopics: 19, describeConfigs: 32 } as const
const invalidConfig = 40

export async function startCloudKafka({ version }: { version?: string } = {}): Promise<CloudKafka> {
  const [behind = 0, front = 0] = await freePorts(2)
  const listener = { name: 'CLOUD', protocol: 'PLAINTEXT', port: behind, advertised: front } as const
  const broker = await startSingleBroker({
    extra: { listeners: [listener] },
    ...(version !== undefined && { version }),
  })
  const cloud: CloudKafka = {
    ...broker,
    address: `127.0.0.1:${front}`,
    manners: {},
    requests: [],
    get openConnections() {
      return sockets.size / 2
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await broker.stop()
    },
  }
  const sockets = new Set<Socket>()
  const server: Server = createServer((client) => {
    const upstream = connect(behind, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
        sockets.delete(socket)
      })
    }
    relay(client, upstream, cloud)
  })
  await new Promise<void>((resolve) => server.listen(front, '127.0.0.1', resolve))
  return cloud
}

function relay(client: Socket, upstream: Socket, cloud: CloudKafka): void {
  /**
   * The requests without an answer so far, by correlation id. An entry keeps the function `loses` that was
   * set when the request arrived, because a test may change the manners before the answer comes.
   */
  const open = new Map<number, { request: SeenRequest; loses: Manners['loses'] }>()
  onFrames(client, (frame) => {
    const request = {
      apiKey: frame.readInt16BE(0),
      apiVersion: frame.readInt16BE(2),
      body: frame.subarray(8),
    }
    cloud.requests.push(request)
    const correlationId = frame.readInt32BE(4)
    const refusal = cloud.manners.answers?.(request) ?? refusalOf(request, cloud.manners)
    if (refusal !== undefined) {
      client.write(framed(correlationId, refusal))
      return
    }
    open.set(correlationId, { request, loses: cloud.manners.loses })
    upstream.write(Buffer.concat([int32(frame.length), frame]))
  })
  onFrames(upstream, (frame) => {
    const correlationId = frame.readInt32BE(0)
    const { request, loses } = open.get(correlationId) ?? {}
    open.delete(correlationId)
    const answer = framed(correlationId, rewritten(request, frame.subarray(4), cloud.manners))
    const loss = request && loses?.(request)
    if (loss === undefined) client.write(answer)
    else if (loss === 'a second') setTimeout(() => client.write(answer), 1_000)
    else if (loss === 'half') client.end(answer.subarray(0, answer.length / 2))
    else if (loss === 'cut') client.destroy()
  })
}

function rewritten(request: SeenRequest | undefined, body: Buffer, { tells, knows }: Manners): Buffer {
  if (request?.apiKey === apiKeys.describeConfigs && tells !== undefined) {
    return retold(body, request.apiVersion, tells)
  }
  if (request?.apiKey === apiKeys.apiVersions && knows !== undefined) return reversioned(body, knows)
  return body
}

/**
 * Returns the refusal of a CreateTopics request (versions 0 to 4) with a setting that the cluster doesn't
 * allow. Returns `undefined` for all other requests. Source: the Kafka protocol.
 */
function refusalOf({ apiKey, apiVersion, body }: SeenRequest, { takes }: Manners): Buffer | undefined {
  if (apiKey !== apiKeys.createTopics || takes === undefined) return undefined
  const at = new Reader(body)
  at.text() // the client id
  const topics = at.array(() => {
    const name = at.text() ?? ''
    at.skip(6)
    at.array(() => {
      at.skip(4)
      return at.array(() => at.int32())
    })
    return { name, settings: at.array(() => [at.text() ?? '', at.text()] as const) }
  })
  if (topics.every(({ settings }) => settings.every(([name]) => takes(name)))) return undefined
  return Buffer.concat([
    ...(apiVersion >= 2 ? [int32(0)] : []),
    int32(topics.length),
    ...topics.flatMap(({ name }) => [
      text(name),
      int16(invalidConfig),
      ...(apiVersion >= 1 ? [text('Unknown topic config name')] : []),
    ]),
  ])
}

/** Returns the DescribeConfigs answer (versions 0 to 2) with the values that `tells` returns. */
function retold(body: Buffer, apiVersion: number, tells: NonNullable<Manners['tells']>): Buffer {
  const at = new Reader(body)
  const throttle = at.take(4)
  const results = at.array(() => {
    const start = at.position
    at.skip(2)
    at.text()
    at.skip(1)
    at.text()
    const head = body.subarray(start, at.position)
    const entries = at.array(() => {
      const name = at.text() ?? ''
      const value = at.text()
      const rest = at.position
      at.skip(3)
      if (apiVersion >= 1) {
        at.array(() => {
          at.text()
          at.text()
          at.skip(1)
          return undefined
        })
      }
      const told = tells(name, value)
      if (told === undefined) return undefined
      return Buffer.concat([
        text(name),
        told === null ? int16(-1) : text(told),
        body.subarray(rest, at.position),
      ])
    })
    const left = entries.filter((entry) => entry !== undefined)
    return Buffer.concat([head, int32(left.length), ...left])
  })
  return Buffer.concat([throttle, int32(results.length), ...results])
}

/** Returns the ApiVersions answer (versions 0 to 2) with the versions that `knows` returns. */
function reversioned(body: Buffer, knows: NonNullable<Manners['knows']>): Buffer {
  const copy = Buffer.from(body)
  const count = copy.readInt32BE(2)
  for (let index = 0; index < count; index++) {
    const at = 6 + index * 6
    const versions = knows(copy.readInt16BE(at))
    if (versions === undefined) continue
    copy.writeInt16BE(versions[0], at + 2)
    copy.writeInt16BE(versions[1], at + 4)
  }
  return copy
}

class Reader {
  position = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  take(length: number): Buffer {
    return this.#bytes.subarray(this.position, (this.position += length))
  }

  skip(length: number): void {
    this.position += length
  }

  int32(): number {
    return this.take(4).readInt32BE(0)
  }

  text(): string | null {
    const length = this.take(2).readInt16BE(0)
    return length < 0 ? null : this.take(length).toString()
  }

  array<T>(read: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read)
  }
}

function onFrames(socket: Socket, take: (frame: Buffer) => void): void {
  let held = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= 4 && held.length >= 4 + held.readInt32BE(0)) {
      const end = 4 + held.readInt32BE(0)
      take(held.subarray(4, end))
      held = held.subarray(end)
    }
  })
}

function framed(correlationId: number, body: Buffer): Buffer {
  return Buffer.concat([int32(4 + body.length), int32(correlationId), body])
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function text(value: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)])
}
