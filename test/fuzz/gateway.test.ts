import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basic, post, startGateway, type TestGateway } from '../support/gateway.ts'
import { newIds } from '../e2e/scene.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({ variables: { SLUICE_GATEWAY_TRUSTED_PROXIES: '127.0.0.1/32' } })
})

afterAll(() => gateway.stop())

const mebi = 1_024 * 1_024
const paths = ['/v1/track', '/v1/identify', '/v1/batch', '/v1/import', '/v1/m', '/v1/deletions']

let clients = 0

/**
 * Returns the headers of a request of another client each time. Otherwise the requests would soon be answered
 * 429, because others of their client were refused.
 */
function fromAnother(): Record<string, string> {
  clients++
  return { ...basic('KEY'), 'x-forwarded-for': `198.18.${(clients >> 8) & 255}.${clients & 255}` }
}

async function residentBytes(): Promise<number> {
  return gateway.process.metric('process_resident_memory_bytes')
}

/** Returns true if the gateway is ready and accepts messages as before. */
async function isWell(): Promise<boolean> {
  const [messageId = ''] = newIds(1)
  const message = { type: 'track', userId: 'u1', event: 'E', messageId }
  const { status } = await gateway.post('/v1/batch', { batch: [message] }, basic('KEY'))
  return status === 200 && (await gateway.readiness()).status === 200
}

/** Sends a body `times` times, ten requests at a time. Returns each status among the answers once. */
async function statusesOf(path: string, body: string | Uint8Array, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let sent = 0; sent < times; sent += 10) {
    const some = Array.from({ length: Math.min(10, times - sent) }, () =>
      post(gateway.origin + path, body, fromAnother()),
    )
    statuses.push(...(await Promise.all(some)).map(({ status }) => status))
  }
  return [...new Set(statuses)]
}

function deep(levels: number): string {
  return `{"userId":"u1","event":"E","properties":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`
}

const keys = Array.from({ length: 100_000 }, (_, index) => `"k${index}":1`).join(',')
const bomb = gzipSync(Buffer.alloc(400 * mebi, ' '))
const message = '{"type":"track","userId":"u1","event":"E"}'

describe('a body that means harm is 4xx, memory stays where it is, and the gateway goes on', () => {
  test.each<[string, string, string | Uint8Array, readonly number[]]>([
    ['a gzip bomb', '/v1/batch', bomb, [400]],
    ['a gzip bomb on a single call', '/v1/track', bomb, [400]],
    ['a bomb in a bomb', '/v1/batch', gzipSync(bomb), [400]],
    ['100,000 keys', '/v1/batch', `{${keys}}`, [400]],
    ['100,000 keys on a single call', '/v1/track', `{${keys}}`, [400]],
    ['200,000 brackets', '/v1/batch', '['.repeat(200_000), [400]],
    ['a list in a list, 200,000 times', '/v1/batch', '['.repeat(200_000) + ']'.repeat(200_000), [400]],
    ['an object in an object, 5,000 times', '/v1/track', deep(5_000), [400]],
    ['deep nesting in a batch', '/v1/batch', `{"batch":[${deep(50_000)}]}`, [200]],
    [
      'deep nesting in the context of a batch',
      '/v1/batch',
      `{"batch":[${message}],"context":${deep(50_000)}}`,
      [200],
    ],
    ['a batch of 100,000 nulls', '/v1/batch', `{"batch":[${Array(100_000).fill('null').join(',')}]}`, [400]],
    ['a key that is 400 KB long', '/v1/batch', `{"${'k'.repeat(400_000)}":1}`, [200]],
    ['backslashes', '/v1/batch', `{"batch":["${'\\\\'.repeat(200_000)}"]}`, [200]],
    ['quotes', '/v1/batch', `{"batch":["${'\\"'.repeat(200_000)}"]}`, [200]],
    ['escaped keys', '/v1/batch', `{"batch":[{${'"\\n":1,"\\\\":2,'.repeat(20_000)}"a":1}]}`, [200]],
    [
      'large numbers',
      '/v1/batch',
      `{"batch":[{"type":"page","userId":"u","n":${'9'.repeat(30_000)}}]}`,
      [200],
    ],
    ['nul bytes', '/v1/batch', Buffer.alloc(100_000), [400]],
  ])('%s', async (_, path, body, expected) => {
    const before = await residentBytes()
    // At first the heap grows to what these bodies need. Then it stays at this size.
    expect(await statusesOf(path, body, 50)).toEqual(expected)
    const warm = await residentBytes()
    expect(warm - before).toBeLessThan(250 * mebi)
    expect(await statusesOf(path, body, 50)).toEqual(expected)
    expect((await residentBytes()) - warm).toBeLessThan(80 * mebi)
    expect(await isWell()).toBe(true)
  })

  test('a context with many keys for many messages that are no good', async () => {
    const context = `{${Array.from({ length: 3_000 }, (_, index) => `"${index}":1`).join(',')}}`
    const batch = Array(2_500).fill('{"type":"track","event":"E"}').join(',')
    const startMs = performance.now()
    expect(await statusesOf('/v1/batch', `{"context":${context},"batch":[${batch}]}`, 10)).toEqual([200])
    expect(performance.now() - startMs).toBeLessThan(5_000)
    expect(await isWell()).toBe(true)
  })
})

describe('any body', () => {
  const expected = new Set([200, 400, 401])
  const someBytes = fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes))
  const whole = fc.json({ maxDepth: 6 }).map((text) => Buffer.from(text))
  const batch = fc
    .array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 20 })
    .map((items) => Buffer.from(JSON.stringify({ batch: items, context: items[0], sentAt: items[1] })))
  const body = fc
    .tuple(fc.oneof(someBytes, whole, batch), fc.nat(100), fc.boolean())
    .map(([bytes, cut, isZipped]) => {
      const all = isZipped ? gzipSync(bytes) : bytes
      // About a third of the bodies are cut off.
      return cut < 33 ? all.subarray(0, Math.floor((all.length * cut) / 33)) : all
    })
  const type = fc.constantFrom('application/json', 'text/plain', 'application/x-www-form-urlencoded', 'x')

  test('is answered 200 or 4xx, and nothing is left behind', async () => {
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(...paths), type, async (bytes, path, contentType) => {
        const reply = await post(gateway.origin + path, bytes, {
          ...fromAnother(),
          'content-type': contentType,
        })
        expect(expected).toContain(reply.status)
        const isLeftOut = reply.body['message'] !== undefined
        expect(reply.body['success']).toBe(reply.status === 200 && !isLeftOut)
      }),
      { numRuns: 500 },
    )
    expect(await isWell()).toBe(true)
    expect(await gateway.process.metric('sluice_gateway_receiving_bytes')).toBe(0)
    expect(await gateway.process.metric('sluice_gateway_buffered_bytes')).toBe(0)
    expect(await gateway.process.metric('sluice_gateway_open_requests')).toBe(0)
    expect(gateway.process.log.filter(({ level }) => level === 'error')).toEqual([])
  })
})
