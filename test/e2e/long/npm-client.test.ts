import { Analytics } from '@segment/analytics-node'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startReceiver, type Receiver } from '../../support/receiver.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { until } from '../../support/until.ts'
import { type Scene, setScene } from '../scene.ts'

let receiver: Receiver
let scene: Scene
let worker: SluiceProcess
let gateway: SluiceProcess

beforeEach(async () => {
  receiver = await startReceiver()
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['WRITE-KEY'] }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: `${receiver.origin}/hook` }] }],
    },
  })
  ;[worker, gateway] = await Promise.all([
    startSluice(scene.variables),
    startSluice(scene.variables, { role: 'gateway' }),
  ])
})

afterEach(async () => {
  await Promise.all([worker.kill(), gateway.kill()])
  scene.close()
  await receiver.stop()
})

/** Returns the messages that the receiver got, by `messageId`. */
function delivered(): Map<unknown, Record<string, unknown>> {
  const messages = receiver.requests.map(({ body }): Record<string, unknown> => JSON.parse(String(body)))
  return new Map(messages.map((message) => [message['messageId'], message]))
}

test('all calls of the published npm client end at a webhook with their content unchanged', async () => {
  const client = new Analytics({
    writeKey: 'WRITE-KEY',
    host: `http://127.0.0.1:${gateway.gatewayPort}`,
    flushAt: 4,
    maxRetries: 2,
  })
  const errors: unknown[] = []
  client.on('error', (error) => errors.push(error))
  const requests: Record<string, unknown>[] = []
  client.on('http_request', ({ body }) => requests.push(JSON.parse(body)))

  const user = { userId: 'user-1', anonymousId: 'anonymous-1' }
  const context = {
    ip: '203.0.113.7',
    campaign: { name: 'spring', source: 'mail', medium: 'letter', term: 'é漢😀' },
  }
  client.identify({ ...user, traits: { plan: 'pro', seats: 5, nested: { list: [1, null, 'x'] } }, context })
  client.track({
    ...user,
    event: 'Order Completed',
    properties: { total: 30.5, items: [{ sku: 'a' }], __proto: 1 },
    timestamp: new Date('2009-11-10T23:00:00.000Z'),
    messageId: 'message-of-our-own',
  })
  client.page({ ...user, name: 'Home', category: 'Docs', properties: { url: 'https://shop.example/' } })
  client.screen({ anonymousId: 'anonymous-1', name: 'Main', properties: { tab: 2 } })
  client.group({ ...user, groupId: 'group-1', traits: { name: 'Acme' }, integrations: { All: true } })
  client.alias({ userId: 'user-1', previousId: 'anonymous-1' })
  await client.closeAndFlush({ timeout: 20_000 })
  expect(errors).toEqual([])

  const sent = requests.flatMap(({ batch }) => (Array.isArray(batch) ? batch : []))
  expect(sent.map(({ type }) => type)).toEqual(['identify', 'track', 'page', 'screen', 'group', 'alias'])
  await until('all are delivered', () => delivered().size === sent.length)
  expect(receiver.requests).toHaveLength(sent.length)
  const got = delivered()
  for (const message of sent) {
    const { timestamp, ...content } = message
    const received = got.get(message.messageId)
    expect(received).toMatchObject({ ...content, originalTimestamp: timestamp })
    // Client and gateway have the same clock, so the gateway only corrects for the time that the request
    // took.
    const shiftMs = Date.parse(String(received?.['timestamp'])) - Date.parse(timestamp)
    expect(shiftMs).toBeGreaterThanOrEqual(0)
    expect(shiftMs).toBeLessThan(2_000)
  }
})

test('the published npm client hears of an unknown write key', async () => {
  const client = new Analytics({
    writeKey: 'NO-SUCH-KEY',
    host: `http://127.0.0.1:${gateway.gatewayPort}`,
    maxRetries: 1,
  })
  const errors: unknown[] = []
  client.on('error', (error) => errors.push(error))
  client.track({ userId: 'user-1', event: 'E' })
  await client.closeAndFlush({ timeout: 20_000 })
  expect(errors).toHaveLength(1)
})
