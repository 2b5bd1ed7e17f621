import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A broker's answer about its cluster. It lists only the brokers that are running. */
export type ClusterMetadata = {
  clusterId: string | undefined
  brokers: { id: number; host: string; port: number }[]
}

const maxAnswerBytes = 1 << 20

/**
 * Asks one broker about its cluster over a plain socket. Rejects if no answer comes within `timeoutMs`. The
 * Kafka client isn't used, because it would log errors and try again by itself instead of giving up in time.
 */
export async function askMetadata(address: string, timeoutMs: number): Promise<ClusterMetadata> {
  const socket = connect({ ...splitAddress(address), signal: AbortSignal.timeout(timeoutMs) })
  try {
    socket.write(metadataRequest())
    return parseMetadata(await readFrame(socket))
  } finally {
    socket.destroy()
  }
}

/**
 * Waits until the broker at every address lists at least `count` brokers. If this takes longer than
 * `timeoutMs`, rejects with the last problem.
 */
export async function waitForCluster(
  addresses: readonly string[],
  count: number,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal },
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const problems = await Promise.all(
      addresses.map((address) => problemAt(address, count, Math.min(timeoutMs, 2_000))),
    )
    const problem = problems.find((text) => text !== undefined)
    if (problem === undefined) return
    signal?.throwIfAborted()
    if (performance.now() > deadline) throw new Error(`${problem} (waited ${timeoutMs} ms)`)
    await sleep(50)
  }
}

async function problemAt(address: string, count: number, timeoutMs: number): Promise<string | undefined> {
  try {
    const { brokers } = await askMetadata(address, timeoutMs)
    return brokers.length >= count ? undefined : `${address} knows ${brokers.length} of ${count} brokers`
  } catch (error) {
    return `${address}: ${describeFailure(error)}`
  }
}

/**
 * Describes a socket's error in a few words. If several addresses were tried, the error itself has no text,
 * but contains one error for each address.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describeFailure).join(', ')
  return error instanceof Error ? error.message : String(error)
}

function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  const port = Number(address.slice(colon + 1))
  if (host === '' || !(Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw new Error(`not an address of the form host:port: ${JSON.stringify(address)}`)
  }
  return { host, port }
}

/**
 * Makes a Metadata request, version 4 (Kafka 1.0 to 4.x), that asks for no topics. See
 * https://kafka.apache.org/protocol
 */
function metadataRequest(): Buffer {
  const clientId = Buffer.from('sluice')
  const body = Buffer.alloc(10 + clientId.length + 5)
  body.writeInt16BE(3, 0)
  body.writeInt16BE(4, 2)
  body.writeInt32BE(1, 4)
  body.writeInt16BE(clientId.length, 8)
  clientId.copy(body, 10)
  const size = Buffer.alloc(4)
  size.writeInt32BE(body.length, 0)
  return Buffer.concat([size, body])
}

async function readFrame(socket: Socket): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length < 4) continue
    const end = 4 + bytes.readUInt32BE(0)
    if (end > maxAnswerBytes) throw new Error('answers, but not as Kafka does')
    if (bytes.length >= end) return bytes.subarray(4, end)
  }
  throw new Error('closed the connection without an answer')
}

/**
 * Parses an answer. `frame` begins with the answer's correlation id. Throws a RangeError if the answer is too
 * short.
 */
export function parseMetadata(frame: Buffer): ClusterMetadata {
  let at = 8 // after the correlation id and the throttle time
  const int32 = (): number => frame.readInt32BE((at += 4) - 4)
  const text = (): string | undefined => {
    const length = frame.readInt16BE((at += 2) - 2)
    if (length < 0) return undefined
    if (at + length > frame.length) throw new RangeError('the answer is cut off')
    return frame.toString('utf8', at, (at += length))
  }
  const broker = () => {
    const parsed = { id: int32(), host: text() ?? '', port: int32() }
    text() // the rack
    return parsed
  }
  const brokers: ClusterMetadata['brokers'] = []
  for (let left = int32(); left > 0; left--) brokers.push(broker())
  return { brokers, clusterId: text() }
}
