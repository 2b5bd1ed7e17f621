import { createServer, type Server } from 'node:http'
import { getHeapSpaceStatistics } from 'node:v8'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { portOf } from '../../support/receiver.ts'

const hooks = 500
const atOnce = 20
/**
 * The most bytes that a request may leave in the old generation of the heap. The timer of an idle connection
 * takes 200 bytes, and other objects take the rest. When the head of the answer was kept too, it was over
 * 1,000 bytes.
 */
const mostBytes = 600

let server: Server
let sender: Sender
let targets: Target[]

beforeAll(async () => {
  server = createServer((request, response) => request.resume().on('end', () => response.end('OK')))
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${portOf(server)}`
  targets = Array.from({ length: hooks }, (_, number) => ({ origin, path: `/${number}`, headers: [] }))
  sender = createSender({
    policy: createAddressPolicy(['127.0.0.1']),
    timeoutMs: 10_000,
    poolIdleMs: 60_000,
  })
})

afterAll(async () => {
  await sender.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** Collects the young generation twice. Objects that survive both collections move to the old generation. */
function collectYoung(): void {
  for (let i = 0; i < 2; i++) collectGarbage({ type: 'minor' })
}

async function postToEach(): Promise<void> {
  const waiting = [...targets]
  const postNext = async (): Promise<void> => {
    for (let to = waiting.pop(); to !== undefined; to = waiting.pop()) await post(to)
  }
  await Promise.all(Array.from({ length: atOnce }, postNext))
}

async function post(to: Target): Promise<void> {
  await new Promise<void>((resolve) => {
    sender.post(to, Buffer.from('{}'), [], { answered() {}, released: resolve })
  })
}

function oldBytes(): number {
  return getHeapSpaceStatistics()
    .filter(({ space_name: name }) => name === 'old_space')
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0)
}

describe('a hook that gets a message now and then', () => {
  test('leaves hardly anything to the collector that it would take for old', async () => {
    for (let round = 0; round < 10; round++) {
      await postToEach()
      collectYoung()
    }
    const beforeBytes = oldBytes()
    const rounds = 6
    for (let round = 0; round < rounds; round++) {
      await postToEach()
      collectYoung()
    }
    const eachBytes = (oldBytes() - beforeBytes) / rounds / hooks
    expect(eachBytes).toBeLessThan(mostBytes)
  })
})
