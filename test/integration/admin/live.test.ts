import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openView, type OpenView } from '../../support/events.ts'
import { produce } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { openTenants, type Tenants } from '../../support/two-tenants.ts'
import { until } from '../../support/until.ts'

// Live views of two customers, on a real Kafka.

let tenants: Tenants

beforeAll(async () => {
  tenants = await openTenants()
})

afterAll(() => tenants?.close())

function open(path: string, headers: Record<string, string>): Promise<OpenView> {
  return openView(`http://127.0.0.1:${tenants.admin.adminPort}/v1/live${path}`, { headers })
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Writes what a worker writes after tries for these destinations. */
async function attempt(messageId: string, ...destinations: readonly string[]): Promise<void> {
  const states = destinations.map((destination) => stateOf({ destination, messageId, hook: 'main' }))
  await produce(`${tenants.scene.prefix}attempts`, [{ key: '0', value: blockOf(states), partition: 0 }])
}

/** Writes what a worker writes after a try of a message of a source. */
async function attemptOf(source: string, messageId: string): Promise<void> {
  const state = stateOf({ destination: 'acme.crm', messageId, hook: 'main', source })
  await produce(`${tenants.scene.prefix}attempts`, [{ key: '0', value: blockOf([state]), partition: 0 }])
}

const messagesOf = ({ events }: OpenView): unknown[] =>
  events.flatMap(({ name, data }) =>
    name === 'attempt' ? [`${String(data['messageId'])} ${String(data['destination'])}`] : [],
  )

/** From its first event on, a view shows all that happens. */
const untilReady = (view: OpenView) => until('the view is ready', () => view.events.length > 0)

test('the first view of a process shows all that happens after it is ready', async () => {
  const view = await open('', bearer(tenants.tokens.read))
  await untilReady(view)
  await attempt('at-once', 'acme.crm')
  await until('it is shown', () => messagesOf(view).length > 0)
  expect(messagesOf(view)).toEqual(['at-once acme.crm'])
  view.close()
})

test('everybody sees the attempts of what is theirs, as they happen', async () => {
  const token = async (name: string) =>
    tenants.token({ name, right: 'read', scope: { label: `tenant=${name}` } })
  const acme = bearer(await token('acme'))
  const all = await open('', bearer(tenants.tokens.read))
  const own = await open('', acme)
  const named = await open('?destination=globex.crm', acme)
  const byMessage = await open('?message=the-one', bearer(tenants.tokens.read))
  const bySource = await open('?source=acme-shop', acme)
  expect(all.status).toBe(200)
  for (const view of [all, own, named, byMessage, bySource]) await untilReady(view)
  await attempt('the-one', 'acme.crm', 'globex.crm', 'ours')
  await attemptOf('acme-shop', 'of-acme')
  await attempt('another', 'acme.crm', 'globex.crm')
  await until('all is shown', () => messagesOf(all).at(-1) === 'another globex.crm')
  // Each view has a connection of its own: what one has shown says nothing of another.
  await until('also to the customer', () => messagesOf(own).at(-1) === 'another acme.crm')
  await until('also by message', () => messagesOf(byMessage).at(-1) === 'the-one ours')
  await until('also by source', () => messagesOf(bySource).length > 0)
  expect(own.text).not.toMatch(/globex|ours/)

  const [last] = own.events.slice(-1)
  own.close()
  await attempt('meanwhile', 'acme.crm', 'globex.crm')
  await until('it has happened', () => messagesOf(all).at(-1) === 'meanwhile globex.crm')
  const again = await open('', { ...acme, 'last-event-id': last?.id ?? '' })
  await until('it was missed', () => messagesOf(again).length > 0)
  expect(messagesOf(again)).toEqual(['meanwhile acme.crm'])
  expect(messagesOf(byMessage)).toEqual(['the-one acme.crm', 'the-one globex.crm', 'the-one ours'])
  expect(messagesOf(bySource)).toEqual(['of-acme acme.crm'])
  // A foreign destination is one that doesn't exist.
  expect(messagesOf(named)).toEqual([])
  for (const view of [all, named, byMessage, bySource, again]) view.close()
})

test('a view of a destination is told how it is, as the health of the destination says it, and no other view is', async () => {
  const acme = bearer(
    await tenants.token({ name: 'acme-health', right: 'read', scope: { label: 'tenant=acme' } }),
  )
  const own = await open('?destination=acme.crm', acme)
  const foreign = await open('?destination=globex.crm', acme)
  const all = await open('', acme)
  const ofMessage = await open('?destination=acme.crm&message=one', acme)
  // What is known of it may change between the first that is told and the answer of the API.
  await until('it is told as the API says it', async () => {
    const told = own.events.findLast(({ name }) => name === 'destination')?.data
    const { json } = await tenants.call('GET', '/v1/destinations/acme.crm/health')
    return isDeepStrictEqual({ ...told, asOf: '' }, { ...json, asOf: '' })
  })
  for (const { events } of [foreign, all, ofMessage])
    expect(events.filter(({ name }) => name === 'destination')).toEqual([])
  for (const one of [own, foreign, all, ofMessage]) one.close()
})

test('a replay is shown as it goes on, to whom it concerns', async () => {
  const globex = await tenants.token({
    name: 'globex-live',
    right: 'read',
    scope: { label: 'tenant=globex' },
  })
  const [view, other] = [await open('', bearer(tenants.tokens.read)), await open('', bearer(globex))]
  const id = await until('it is shown', async () => {
    const body = { selection: { of: 'dead-letters', destination: 'acme.crm' }, all: true, again: true }
    const { json } = await tenants.call('POST', '/v1/replays', { body })
    await until('something is shown', () => view.events.some(({ name }) => name === 'replay'), {
      timeoutMs: 5_000,
    })
    return view.events.some(({ data }) => data['id'] === json['id']) && String(json['id'])
  })
  expect((await tenants.call('POST', `/v1/replays/${id}/stop`)).status).toBe(200)
  await until('its end is shown', () =>
    view.events.some(({ data }) => data['id'] === id && data['state'] === 'stopped'),
  )
  await until('the other one is ready', () => other.events.length > 0)
  expect(other.events.map(({ name }) => name)).toEqual(['ready'])
  for (const one of [view, other]) one.close()
})

test('a live view ends with its token, and there are only so many', async () => {
  const token = await tenants.token({ name: 'watcher', right: 'read', scope: 'all' })
  const views = await Promise.all(Array.from({ length: 9 }, () => open('', bearer(token))))
  expect(views.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
    ...Array.from({ length: 8 }, () => 200),
    429,
  ])
  expect((await tenants.call('DELETE', '/v1/tokens/watcher')).status).toBe(200)
  await until('all are closed', () => views.every(({ isClosed }) => isClosed))
  const view = views.find(({ status }) => status === 200)
  expect(view?.events.at(-1)).toMatchObject({ name: 'end', data: { reason: 'session' } })
  expect((await open('', bearer(token))).status).toBe(401)
})
