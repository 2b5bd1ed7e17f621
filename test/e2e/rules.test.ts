import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { produce, readAll } from '../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { type Scene, setScene } from './scene.ts'

// What customers decide about their messages, from Kafka to a real server: conditions, samples and mappings.

let receiver: Receiver
let scene: Scene
let worker: SluiceProcess
/** True while the endpoint of `flaky` answers 500. */
let isDown = true

beforeAll(async () => {
  receiver = await startReceiver((request, response, nth) => {
    const isFailing = isDown && request.path.startsWith('/flaky')
    answer(isFailing ? 500 : 200)(request, response, nth)
  })
  scene = await setScene({
    catalog: catalogOf('int(properties.size) > 40', firstMapping),
    variables: {
      SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1',
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_HTTP_PORT: '0',
    },
  })
  worker = await startSluice(scene.variables)
})

afterAll(async () => {
  await worker?.kill()
  scene?.close()
  await receiver?.stop()
})

const firstMapping = {
  condition: 'type == "track"',
  method: 'PATCH',
  path: '/users/{{userId}}?by=sluice',
  headers: { 'X-Event': { '@path': '$.event' } },
  body: { what: { '@template': '{{event}}!' }, total: { '@path': '$.properties.total' } },
}

function catalogOf(ofSizes: string, mapping: object = firstMapping) {
  const hook = (id: string) => [{ url: `${receiver.origin}/${id}` }]
  const destination = (id: string, filter?: object) => ({
    id,
    sources: ['shop'],
    hooks: hook(id),
    ...(filter && { filter }),
  })
  const orders = { types: ['track', 'identify'], events: ['Order *'] }
  return {
    sources: [{ id: 'shop' }, { id: 'mapped' }],
    destinations: [
      destination('all'),
      destination('rich', { condition: 'event.glob("Order *") && properties.total > 100' }),
      destination('carts', { events: ['Cart *'] }),
      destination('some', { sample: { percent: 50 } }),
      destination('sizes', { condition: ofSizes }),
      {
        ...destination('flaky', orders),
        sources: ['mapped'],
        sharedSecret: 's3cret',
        hooks: [{ url: `${receiver.origin}/flaky/?key=1`, headers: { 'X-Team': 'crm', 'x-event': 'none' } }],
        mappings: [mapping, { path: '/people', format: 'form', body: { '@path': '$.traits' } }],
      },
    ],
  }
}

const users = Array.from({ length: 40 }, (_, at) => `user-${at}`)
const messages = [
  { messageId: 'rich', event: 'Order Completed', properties: { total: 200, size: '42' } },
  { messageId: 'poor', event: 'Order Completed', properties: { total: 2, size: '38' } },
  { messageId: 'cart', event: 'Cart Viewed', properties: { size: 'large' } },
  ...users.map((userId) => ({ messageId: userId, event: 'Seen', userId })),
].map((message) => ({ type: 'track', userId: 'u1', ...message }))

/** Returns the ids of the messages that came to a destination. */
function cameTo(id: string): string[] {
  return receiver.requestsTo(`/${id}`).map(({ body }) => JSON.parse(String(body)).messageId)
}

test('each destination gets what its filter lets pass, and others are not touched', async () => {
  await produce(
    `${scene.prefix}events`,
    messages.map((message) => ({
      key: message.userId,
      value: JSON.stringify(message),
      headers: { 'source-id': 'shop' },
    })),
  )
  await until('all is committed', async () => (await scene.lag()) === 0)
  expect(cameTo('all').toSorted()).toEqual(messages.map(({ messageId }) => messageId).toSorted())
  expect(cameTo('rich')).toEqual(['rich'])
  // Names of events concern track messages only, and these all are.
  expect(cameTo('carts')).toEqual(['cart'])
  expect(cameTo('sizes')).toEqual(['rich'])
  const ofUsers = cameTo('some').filter((id) => id.startsWith('user-'))
  expect(ofUsers.length).toBeGreaterThan(5)
  expect(ofUsers.length).toBeLessThan(35)
  // What a destination without a filter gets is the message in its canonical form, byte for byte.
  for (const { body } of receiver.requestsTo('/all'))
    expect(String(body)).toBe(JSON.stringify(JSON.parse(String(body))))
})

async function count(reason: string): Promise<number> {
  return worker.metric(`sluice_not_routed_total{reason="${reason}"}`)
}

test('what is not sent is counted by its reason', async () => {
  // Of `rich`, the cart and the 40 seen differ in their event, and of `sizes`, the 40 lack the size.
  expect(await count('filtered_by_missing_field')).toBe(40)
  expect(await count('filtered_by_sample')).toBe(messages.length - cameTo('some').length)
  expect(await count('filtered_by_destination')).toBeGreaterThan(80)
})

test('a message of which a condition can not be said is a dead letter, and is sent after a correction', async () => {
  const letters = await until('it is a dead letter', async () => {
    const all = await readAll(`${scene.prefix}dead-letters`)
    return all.length > 0 ? all : undefined
  })
  expect(
    letters.map(({ headers }) => [headers['message-id'], headers['reason'], headers['destination-id']]),
  ).toEqual([['cart', 'filter_failed', 'sizes']])
  const replay = ['replay', 'dead-letters', '--destination', 'sizes', '--reason', 'filter_failed']
  // By the condition that failed, it is left out again, and stays where it is.
  const again = await runToEnd([...replay, '--dry-run'], scene.variables)
  expect(again.stdout).toContain('filter_failed')
  scene.catalog.rewrite(catalogOf('properties.size == "large" || int(properties.size) > 40'))
  // The worker that replays may not have read the edit yet: then it leaves the message out once more.
  await until('it came', async () => {
    await runToEnd(replay, scene.variables)
    return cameTo('sizes').includes('cart')
  })
  expect(cameTo('sizes').toSorted()).toEqual(['cart', 'rich'])
})

function requestsOfFlaky(path: string) {
  return receiver.requests.filter((request) => request.path.startsWith(`/flaky${path}`))
}

test('a mapping makes method, path, headers and body, and retries send the same bytes after an edit', async () => {
  const order = {
    type: 'track',
    event: 'Order Paid',
    userId: 'a/b c',
    messageId: 'map-1',
    properties: { total: 7 },
  }
  const value = JSON.stringify(order)
  await produce(`${scene.prefix}events`, [{ key: 'u', value, headers: { 'source-id': 'mapped' } }])
  const path = '/users/a%2Fb%20c?key=1&by=sluice'
  await until('it was tried', () => requestsOfFlaky(path).length > 0)
  const other = { condition: 'type == "track"', body: { completely: 'different' } }
  scene.catalog.rewrite(catalogOf('properties.size == "large" || int(properties.size) > 40', other))
  // New messages get the new mapping, so this worker has it.
  await until('the edit is in force', async () => {
    const next = JSON.stringify({ ...order, messageId: `map-${Date.now()}` })
    await produce(`${scene.prefix}events`, [{ key: 'u', value: next, headers: { 'source-id': 'mapped' } }])
    return receiver.requests.some(({ body }) => String(body) === '{"completely":"different"}')
  })
  const tried = requestsOfFlaky(path).length
  await until('it was tried again', () => requestsOfFlaky(path).length > tried)
  isDown = false
  await until('all is committed', async () => (await scene.lag()) === 0)
  const body = '{"what":"Order Paid!","total":7}'
  for (const request of requestsOfFlaky(path)) {
    expect(request).toMatchObject({ method: 'PATCH', headers: { 'content-type': 'application/json' } })
    expect(String(request.body)).toBe(body)
    expect(request.headers).toMatchObject({
      'x-signature': createHmac('sha1', 's3cret').update(body).digest('hex'),
      'x-event': 'Order Paid',
      'x-team': 'crm',
      'x-sluice-message-id': expect.stringMatching(/^map-/),
      'content-length': String(body.length),
    })
  }
})

test('a form is signed as it is sent', async () => {
  const value = JSON.stringify({
    type: 'identify',
    userId: 'u1',
    messageId: 'form-1',
    traits: { name: 'Ä & B', vip: true },
  })
  await produce(`${scene.prefix}events`, [{ key: 'u', value, headers: { 'source-id': 'mapped' } }])
  const [form] = await until('it came', () => {
    const came = receiver.requests.filter(({ headers }) => headers['x-sluice-message-id'] === 'form-1')
    return came.length > 0 ? came : undefined
  })
  const body = 'name=%C3%84+%26+B&vip=true'
  expect(form).toMatchObject({ method: 'POST', path: '/flaky/people?key=1' })
  expect(String(form?.body)).toBe(body)
  expect(form?.headers).toMatchObject({
    'content-type': 'application/x-www-form-urlencoded',
    'x-signature': createHmac('sha1', 's3cret').update(body).digest('hex'),
  })
})
