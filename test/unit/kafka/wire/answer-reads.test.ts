import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { answerReads } from '../../../../src/kafka/wire/answer-reads.ts'
import { until } from '../../../support/until.ts'

/** Returns both ends of a connection: what a broker writes, and the chunks that its client gets. */
async function opened(): Promise<{ broker: Socket; chunks: Buffer[]; client: Socket }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens to a port
  const { port } = server.address() as AddressInfo
  const client = connect({ host: '127.0.0.1', port, onread: answerReads() })
  const chunks = new Array<Buffer>()
  client.on('data', (chunk) => void chunks.push(chunk))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the event has a socket
  const [broker] = (await accepted) as [Socket]
  broker.setNoDelay(true)
  onTestFinished(() => {
    client.destroy()
    broker.destroy()
    server.close()
  })
  return { broker, chunks, client }
}

function answerOf(content: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(content.length)
  return Buffer.concat([length, content])
}

const mostParts = 50

/** Writes bytes in parts that arrive one after the other. */
async function writeParts(broker: Socket, bytes: Buffer, partBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += partBytes) {
    broker.write(bytes.subarray(at, at + partBytes))
    await new Promise((resolve) => void setImmediate(resolve))
  }
}

test('each answer comes as a whole, with its length', async () => {
  const { broker, chunks } = await opened()
  const sizes = fc.array(fc.oneof(fc.nat(20), fc.nat(300_000)), { minLength: 1, maxLength: 6 })
  const parts = fc.constantFrom(1_000, 4_099, 65_536, 200_000, 10_000_000)
  let number = 0
  await fc.assert(
    fc.asyncProperty(sizes, parts, async (lengths, partBytes) => {
      const answers = lengths.map((length) => answerOf(Buffer.alloc(length, ++number)))
      chunks.length = 0
      const bytes = Buffer.concat(answers)
      await writeParts(broker, bytes, Math.max(partBytes, Math.ceil(bytes.length / mostParts)))
      await until('all have come', () => chunks.length === answers.length, { everyMs: 1 })
      for (const [at, answer] of answers.entries()) expect(chunks[at]?.equals(answer)).toBe(true)
    }),
    { numRuns: 30 },
  )
})

test('an answer comes as a whole if it comes byte by byte', async () => {
  const { broker, chunks } = await opened()
  const answers = [answerOf(Buffer.from('one')), answerOf(Buffer.alloc(0)), answerOf(Buffer.from('two'))]
  await writeParts(broker, Buffer.concat(answers), 1)
  await until('all have come', () => chunks.length === answers.length)
  expect(chunks).toEqual(answers)
})

test.each([
  ['a length below 0', Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2])],
  ['text, as if it were 1.2 GB', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
])('what no broker sends comes as it is: %s', async (_what, bytes) => {
  const { broker, chunks } = await opened()
  await writeParts(broker, bytes, 5)
  await until('all has come', () => Buffer.concat(chunks).length === bytes.length)
  expect(Buffer.concat(chunks)).toEqual(bytes)
})

test('a connection that ends within an answer gives nothing of it, and its end', async () => {
  const { broker, chunks, client } = await opened()
  const ended = once(client, 'end')
  broker.end(answerOf(Buffer.alloc(100)).subarray(0, 50))
  await ended
  expect(chunks).toEqual([])
})
