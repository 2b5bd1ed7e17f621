import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './until.ts'

/**
 * A collector of spans. It receives OTLP over HTTP, in protobuf (opentelemetry/proto/trace/v1/trace.proto).
 */

export type Attributes = Readonly<Record<string, unknown>>

export type ReceivedSpan = {
  /** The attribute `service.name` of the resource. */
  service: unknown
  resource: Attributes
  traceId: string
  spanId: string
  /** The id of the parent span. Empty for a root span. */
  parentId: string
  traceState: string
  name: string
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer' | 'unspecified'
  isError: boolean
  attributes: Attributes
  events: readonly { name: string; attributes: Attributes }[]
  startNs: bigint
  endNs: bigint
}

export type Collector = {
  /** The collector's origin, for OTEL_EXPORTER_OTLP_ENDPOINT. */
  origin: string
  spans: readonly ReceivedSpan[]
  /** Resolves with all spans so far, when there are at least `count`. */
  read(count: number): Promise<readonly ReceivedSpan[]>
  requests: readonly { path: string; headers: IncomingHttpHeaders }[]
  stop(): Promise<void>
}

export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = []
  const requests: { path: string; headers: IncomingHttpHeaders }[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers })
      spans.push(...readSpans(Buffer.concat(chunks)))
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    spans,
    async read(count) {
      await until(`${count} spans are there`, () => spans.length >= count)
      return spans
    },
    requests,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const kinds = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const
const statusError = 2n

/** Returns the spans of an `ExportTraceServiceRequest`. */
function readSpans(body: Buffer): ReceivedSpan[] {
  return new Message(body).messages(1).flatMap((resourceSpans) => {
    const resource = readAttributes(resourceSpans.messages(1).flatMap((one) => one.messages(1)))
    const spans = resourceSpans.messages(2).flatMap((scopeSpans) => scopeSpans.messages(2))
    return spans.map((span) => readSpan(span, resource))
  })
}

function readSpan(span: Message, resource: Attributes): ReceivedSpan {
  return {
    service: resource['service.name'],
    resource,
    traceId: span.bytes(1).toString('hex'),
    spanId: span.bytes(2).toString('hex'),
    traceState: span.bytes(3).toString(),
    parentId: span.bytes(4).toString('hex'),
    name: span.bytes(5).toString(),
    kind: kinds[Number(span.number(6))] ?? 'unspecified',
    startNs: span.number(7),
    endNs: span.number(8),
    attributes: readAttributes(span.messages(9)),
    events: span.messages(11).map((event) => ({
      name: event.bytes(2).toString(),
      attributes: readAttributes(event.messages(3)),
    })),
    isError: span.messages(15).some((status) => status.number(3) === statusError),
  }
}

function readAttributes(pairs: readonly Message[]): Attributes {
  return Object.fromEntries(pairs.map((pair) => [pair.bytes(1).toString(), readValue(pair.messages(2)[0])]))
}

/** Reads texts, booleans and integers. Sluice's attributes have no other types of values. */
function readValue(value: Message | undefined): unknown {
  if (value === undefined) return undefined
  if (value.has(1)) return value.bytes(1).toString()
  return value.has(2) ? value.number(2) === 1n : Number(value.number(3))
}

/** One protobuf message. Holds the values of each field, in order. */
class Message {
  readonly #fields = new Map<number, (Buffer | bigint)[]>()

  constructor(body: Buffer) {
    let at = 0
    const varint = (): bigint => {
      let value = 0n
      for (let shift = 0n; ; shift += 7n) {
        const byte = body.readUInt8(at++)
        value |= BigInt(byte & 0x7f) << shift
        if (byte < 0x80) return value
      }
    }
    const taken = (length: number): Buffer => {
      if (at + length > body.length) throw new Error('a field ends behind its message')
      at += length
      return body.subarray(at - length, at)
    }
    const read = (wireType: number): Buffer | bigint => {
      switch (wireType) {
        case 0:
          return varint()
        case 1:
          return taken(8).readBigUInt64LE()
        case 2:
          return taken(Number(varint()))
        case 5:
          return BigInt(taken(4).readUInt32LE())
        default:
          throw new Error(`no such wire type: ${wireType}`)
      }
    }
    while (at < body.length) {
      const tag = Number(varint())
      const values = this.#fields.get(tag >> 3) ?? []
      values.push(read(tag & 7))
      this.#fields.set(tag >> 3, values)
    }
  }

  has(field: number): boolean {
    return this.#fields.has(field)
  }

  bytes(field: number): Buffer {
    const value = this.#fields.get(field)?.[0]
    return Buffer.isBuffer(value) ? value : Buffer.alloc(0)
  }

  number(field: number): bigint {
    const value = this.#fields.get(field)?.[0]
    return typeof value === 'bigint' ? value : 0n
  }

  messages(field: number): Message[] {
    return (this.#fields.get(field) ?? []).flatMap((value) =>
      Buffer.isBuffer(value) ? new Message(value) : [],
    )
  }
}
