import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { basic, post } from '../support/gateway.ts'
import { readAll } from '../support/kafka.ts'
import { answer, inTurn, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { type Scene, setScene } from './scene.ts'

/**
 * A test of the whole system for `npm run test:quick`. Its messages go from a client through the gateway,
 * Kafka and a worker to webhooks.
 */

const sharedSecret = 'a-secret-of-sixteen'

let receiver: Receiver
let scene: Scene
let running: SluiceProcess[]

beforeAll(async () => {
  receiver = await startReceiver({
    '/well': answer(200),
    '/recovers': inTurn(answer(503), answer(200)),
    '/refuses': answer(400),
  })
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['KEY'] }],
      destinations: ['well', 'recovers', 'refuses'].map((id) => ({
        id,
        sources: ['shop'],
        sharedSecret,
        hooks: [{ id: 'main', url: `${receiver.origin}/${id}` }],
      })),
    },
    variables: { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' },
  })
  running = await Promise.all(['worker', 'gateway'].map((role) => startSluice(scene.variables, { role })))
})

afterAll(async () => {
  await Promise.all(running.map((one) => one.kill()))
  scene.close()
  await receiver.stop()
})

test('a message that a client sends by HTTP is delivered signed, tried again where that failed, and buried where it was refused', async () => {
  const gatewayPort = running.map((one) => one.gatewayPort).find((port) => port > 0)
  const message = { messageId: 'm1', userId: 'u1', event: 'Order Completed', properties: { total: 12.5 } }
  const reply = await post(`http://127.0.0.1:${gatewayPort}/v1/track`, message, basic('KEY'))
  expect(reply.status).toBe(200)
  await until('it came, and came again', () => receiver.requestsTo('/recovers').length === 2)
  await until('all is committed', async () => (await scene.lag()) === 0)
  for (const { body, headers } of receiver.requests) {
    expect(JSON.parse(String(body))).toMatchObject({ type: 'track', ...message })
    expect(headers['x-signature']).toBe(createHmac('sha1', sharedSecret).update(body).digest('hex'))
  }
  expect(receiver.requests.map(({ path }) => path).toSorted()).toEqual([
    '/recovers',
    '/recovers',
    '/refuses',
    '/well',
  ])
  const [letter] = await readAll(`${scene.prefix}dead-letters`, { count: 1 })
  expect(letter?.headers).toMatchObject({ 'destination-id': 'refuses', reason: 'failed_for_good' })
})
