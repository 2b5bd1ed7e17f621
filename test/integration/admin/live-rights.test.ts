import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openView, type OpenView } from '../../support/events.ts'
import { produce } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { openTenants, type Tenants } from '../../support/two-tenants.ts'
import { until } from '../../support/until.ts'

// Somebody keeps live views open while what they may see changes, on a real Kafka.

let tenants: Tenants
let sent = 0
const secret = 'the endpoint repeats a part of the message'

beforeAll(async () => {
  tenants = await openTenants()
})

afterAll(() => tenants?.close())

function open(path: string, token: string, headers: Record<string, string> = {}): Promise<OpenView> {
  return openView(`http://127.0.0.1:${tenants.admin.adminPort}/v1/live${path}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
}

/** Writes what a worker writes after a request that was refused with an answer. Returns the id of its message. */
async function refuse(destination: string): Promise<string> {
  const messageId = `message-${++sent}`
  const state = stateOf({ destination, messageId, verdict: 3, status: 400, answer: Buffer.from(secret) })
  await produce(`${tenants.scene.prefix}attempts`, [{ key: '0', value: blockOf([state]), partition: 0 }])
  return messageId
}

/** Refuses requests of this destination until all of the views show one. Returns the ids of the messages. */
async function untilShown(destination: string, ...views: readonly OpenView[]): Promise<readonly string[]> {
  const ids: string[] = []
  await until('it is shown', async () => {
    ids.push(await refuse(destination))
    return views.every(({ text }) => ids.some((id) => text.includes(`"${id}"`)))
  })
  return ids
}

/** Gives the token `read` this line in the file of tokens. */
function giveContent(content: 'content' | 'no-content'): void {
  const { file } = tenants.tokens
  const lines = readFileSync(file, 'utf8').split('\n')
  const changed = lines.map((line) =>
    line.startsWith('read-er ') ? `${line.replace(/ (no-)?content$/, '')} ${content}` : line,
  )
  writeFileSync(file, changed.join('\n'))
}

test('whoever may not see answers gets none, beside somebody with the same label who may', async () => {
  const scope = { label: 'tenant=acme' }
  const make = (name: string, content: boolean) => tenants.token({ name, right: 'operate', scope, content })
  const [seeing, blind] = [await make('seeing', true), await make('blind', false)]
  const views = [
    await open('', seeing),
    await open('', blind),
    await open('?destination=acme.crm', blind),
    await open('?source=shop', blind),
  ]
  await untilShown('acme.crm', ...views)
  const [first, ...others] = views.map(({ text }) => text.includes(secret))
  expect([first, ...others]).toEqual([true, false, false, false])
  // Nor does who says to have seen what the other was told.
  const [view] = views
  const id = view?.events.find(({ name }) => name === 'attempt')?.id ?? ''
  const again = await open('', blind, { 'last-event-id': id })
  await untilShown('acme.crm', again)
  expect(again.text).not.toContain(secret)
  for (const one of [...views, again]) one.close()
})

test('a view ends when its token may see less or more, and the next one shows what it may see then', async () => {
  giveContent('content')
  const { read } = tenants.tokens
  await until('it may see content', async () => {
    const { json } = await tenants.call('GET', '/v1/session', { token: read })
    return json['content'] === true
  })
  const before = await open('', read)
  await untilShown('acme.crm', before)
  expect(before.text).toContain(secret)
  giveContent('no-content')
  await until('it is closed', () => before.isClosed)
  expect(before.events.at(-1)).toMatchObject({ name: 'end', data: { reason: 'session' } })
  const seen = before.events.findLast(({ id }) => id !== '')?.id ?? ''
  const after = await open('', read, { 'last-event-id': seen })
  await untilShown('acme.crm', after)
  expect(after.text).not.toContain(secret)
  giveContent('content')
  await until('it is closed too', () => after.isClosed)
})

test('a destination that is given to another customer is shown to nobody but them, also of what was before', async () => {
  const make = (tenant: string) =>
    tenants.token({ name: `${tenant}-watch`, right: 'read', scope: { label: `tenant=${tenant}` } })
  const [acme, globex] = [await make('acme'), await make('globex')]
  const [theirs, named] = [await open('', acme), await open('?destination=acme.erp', acme)]
  const [others, othersNamed] = [await open('', globex), await open('?destination=acme.erp', globex)]
  await untilShown('acme.erp', theirs, named)
  await until('how it is was told', () => named.events.some(({ name }) => name === 'destination'))
  expect(`${others.text}${othersNamed.text}`).not.toContain('acme')

  const { headers } = await tenants.call('GET', '/v1/destinations/acme.erp')
  const given = await tenants.call('PATCH', '/v1/destinations/acme.erp', {
    body: { labels: { tenant: 'globex' } },
    headers: { 'if-match': headers.get('etag') ?? '' },
  })
  expect(given.status).toBe(200)
  // The list is of the catalog that is in force, as views are. One destination is answered by its newest record.
  await until('it is theirs', async () => {
    const { text } = await tenants.call('GET', '/v1/destinations', { token: globex })
    return text.includes('"acme.erp"')
  })
  const ids = await untilShown('acme.erp', others, othersNamed)
  for (const id of ids) expect(`${theirs.text}${named.text}`).not.toContain(`"${id}"`)

  // Whoever comes back missed what was before, but may not see it any more.
  const first = theirs.events.find(({ name }) => name === 'attempt')
  for (const path of ['', '?destination=acme.erp']) {
    const again = await open(path, acme, { 'last-event-id': first?.id ?? '' })
    await untilShown('acme.erp', others)
    await untilShown('acme.crm', theirs)
    await until('it is ready', () => again.events.length > 0)
    expect(again.events[0]?.name).toBe('ready')
    expect(again.text).not.toContain('acme.erp')
    again.close()
  }
  for (const one of [theirs, named, others, othersNamed]) one.close()
})

test('a session ends with its live view when somebody ends it, and sees nothing of what comes then', async () => {
  const token = await tenants.token({ name: 'ended', right: 'read', scope: { label: 'tenant=acme' } })
  const origin = `http://127.0.0.1:${tenants.admin.adminPort}`
  const signedIn = await fetch(`${origin}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: JSON.stringify({ token }),
  })
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
  const view = await openView(`${origin}/v1/live`, { headers: { cookie } })
  expect(view.status).toBe(200)
  await untilShown('acme.crm', view)
  expect((await tenants.call('DELETE', '/v1/tokens/ended')).status).toBe(200)
  const before = view.text.length
  const id = await refuse('acme.crm')
  await until('it is closed', () => view.isClosed)
  expect(view.text.slice(before)).not.toContain(id)
  expect((await openView(`${origin}/v1/live`, { headers: { cookie } })).status).toBe(401)
})
