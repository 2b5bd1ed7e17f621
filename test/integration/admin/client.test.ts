import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { AdminProblem, type BulkOrder, createAdminClient } from '../../../clients/admin/client.js'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { type CatalogScene, setCatalogScene } from '../../support/catalog-scene.ts'
import { answer, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

let scene: CatalogScene
let tokens: AdminTokens
let admin: SluiceProcess

beforeAll(async () => {
  tokens = await makeTokens()
  scene = await setCatalogScene({
    variables: { SLUICE_ADMIN_TOKENS_FILE: tokens.file },
  })
  admin = await startSluice(scene.variables, { role: 'admin' })
})

afterAll(async () => {
  await admin?.kill()
  scene.close()
  tokens.remove()
})

const clientOf = (token = tokens.admin) =>
  createAdminClient({ baseUrl: `http://127.0.0.1:${admin.adminPort}/`, token })

/** Returns the problem with which a call was refused. */
async function problemOf(call: Promise<unknown>): Promise<AdminProblem> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof AdminProblem) return error
  throw new Error('the call was not refused', { cause: error })
}

test('a client makes, reads and changes a destination under its version, and an old version is refused with advice', async () => {
  const client = clientOf()
  const crm = { path: { destination: 'acme.crm:eu' } }
  await client.put('/v1/sources/{source}', {
    path: { source: 'shop' },
    body: { id: 'shop', labels: { tenant: 'acme' } },
    ifNoneMatch: '*',
  })
  const made = await client.put('/v1/destinations/{destination}', {
    path: { destination: 'crm' },
    body: { id: 'crm', sources: ['shop'], hooks: [{ url: 'https://example.com/hook' }] },
    ifNoneMatch: '*',
  })
  expect(made.data.what).toBe('created')
  expect(made.etag).toBe(`"${made.data.version}"`)
  const path = { destination: 'crm' }
  const seen = await client.get('/v1/destinations/{destination}', { path })
  expect(seen.data['destination']).toMatchObject({ id: 'crm', sources: ['shop'] })
  const pause = { path, body: { state: 'paused' }, ifMatch: seen.etag ?? '' }
  const tried = await client.patch('/v1/destinations/{destination}', { ...pause, query: { dryRun: true } })
  expect(tried.data.what).toBe('changed')
  expect((await client.patch('/v1/destinations/{destination}', pause)).data.what).toBe('changed')

  const outdated = await problemOf(client.patch('/v1/destinations/{destination}', pause))
  expect(outdated).toMatchObject({ type: '/problems/outdated', status: 412, name: 'AdminProblem' })
  expect(outdated.message).toContain('look at it again')
  expect(await problemOf(client.get('/v1/destinations/{destination}', crm))).toMatchObject({
    type: '/problems/not-found',
  })
})

test('a request that is repeated with its key is carried out once', async () => {
  const client = clientOf()
  const rotate = () =>
    client.post('/v1/destinations/{destination}/rotate', {
      path: { destination: 'crm' },
      body: {},
      idempotencyKey: 'once-4711',
    })
  const first = await rotate()
  expect(first.data.secret).toMatch(/^whsec_/)
  expect((await rotate()).data).toEqual(first.data)
})

test('the pages of a list come one after the other, and all of it is there', async () => {
  const client = clientOf()
  const ids = ['p1', 'p2', 'p3', 'p4', 'p5']
  for (const id of ids)
    await client.put('/v1/destinations/{destination}', {
      path: { destination: id },
      body: { id, sources: ['shop'], hooks: [{ url: 'https://example.com/hook' }], labels: { tenant: 'p' } },
      ifNoneMatch: '*',
    })
  const query = { label: 'tenant=p', limit: 2 }
  // The list follows the topic, and has a change within a second.
  await until('the list has all of them', async () => {
    return (await client.get('/v1/destinations', { query })).data.total === ids.length
  })
  const sizes: number[] = []
  const listed: string[] = []
  for await (const { destinations } of client.getPages('/v1/destinations', { query })) {
    sizes.push(destinations.length)
    listed.push(...destinations.map(({ id }) => id))
  }
  expect(sizes).toEqual([2, 2, 1])
  expect(listed).toEqual(ids)
})

test('a token that is not in force is refused by type, and a call can be given up', async () => {
  expect(await problemOf(clientOf('sluice_none').get('/v1/health'))).toMatchObject({
    type: '/problems/no-token',
    status: 401,
  })
  expect((await clientOf(tokens.read).get('/v1/health')).data.token).toMatchObject({ right: 'read' })
  const given = clientOf().get('/v1/health', { signal: AbortSignal.abort() })
  await expect(given).rejects.toMatchObject({ name: 'AbortError' })
})

test('an answer of a proxy is no problem detail of sluice admin, and an id that a URL would lose is refused', async () => {
  const proxy = await startReceiver({ '/sluice/v1/health': answer(502) })
  onTestFinished(() => proxy.stop())
  const client = createAdminClient({ baseUrl: `${proxy.origin}/sluice`, token: 'sluice_x' })
  expect(await problemOf(client.get('/v1/health'))).toMatchObject({ type: 'about:blank', status: 502 })
  await expect(client.delete('/v1/tokens/{token}', { path: { token: '..' } })).rejects.toBeInstanceOf(
    TypeError,
  )
})

test('the client is one small file without imports, so that a browser runs it as it is', () => {
  const text = readFileSync('clients/admin/client.js', 'utf8')
  expect(text).not.toMatch(/\bimport\b|\brequire\b|\bprocess\b/)
  expect(gzipSync(text).length).toBeLessThan(2_000)
})

test('many destinations are paused and labelled in one change, which is shown first and can be undone', async () => {
  const client = clientOf()
  const bulk = async (body: BulkOrder, token = tokens.admin) =>
    (await clientOf(token).post('/v1/destinations/bulk', { body })).data
  const selection = { label: 'tenant=p' }
  const preview = await bulk({ selection, do: 'pause', dryRun: true })
  expect(preview).toMatchObject({ isPreview: true, selected: 5, revision: null, skipped: [], unknown: [] })
  expect(preview.destinations).toEqual(['p1', 'p2', 'p3', 'p4', 'p5'])
  const states = async () => {
    const { data } = await client.get('/v1/destinations', { query: selection })
    return new Set(data.destinations.map(({ state }) => state))
  }
  expect(await states()).toEqual(new Set(['on']))

  const made = await bulk({ selection, do: 'pause' })
  await until('all are paused', async () => (await states()).has('paused'))
  const again = await bulk({ selection: { destinations: ['p1', 'nobody'] }, do: 'pause' })
  expect(again).toMatchObject({
    destinations: [],
    skipped: [{ destination: 'p1', why: 'it is paused already' }],
    unknown: ['nobody'],
    revision: null,
  })
  const history = await client.get('/v1/catalog/history', { query: { limit: 1 } })
  expect(history.data.changes).toMatchObject([{ revision: made.revision, count: 5 }])
  const path = { revision: String(made.revision) }
  await client.post('/v1/catalog/history/{revision}/undo', { path })
  await until('all are on again', async () => !(await states()).has('paused'))

  await bulk({
    selection: { destinations: ['p1', 'p2'] },
    do: 'label',
    labels: { tier: 'gold', tenant: null },
  })
  await until('the labels are there', async () => {
    const { data } = await client.get('/v1/destinations', { query: { label: 'tier=gold' } })
    return data.total === 2 && data.destinations.every(({ labels }) => labels['tenant'] === undefined)
  })
  const retried = await bulk({ selection, do: 'retry-now', dryRun: true }, tokens.operate)
  expect(retried.destinations).toEqual(['p3', 'p4', 'p5'])
})

test.each([
  ['without a condition', 'admin', { selection: {}, do: 'pause' }, 400],
  [
    'labels that nobody wants',
    'admin',
    { selection: { label: 'a=b' }, do: 'pause', labels: { a: 'b' } },
    400,
  ],
  ['no label', 'admin', { selection: { label: 'a=b' }, do: 'label' }, 400],
  ['a label that is none', 'admin', { selection: { label: 'acme' }, do: 'pause' }, 400],
  ['a change without the right admin', 'operate', { selection: { label: 'a=b' }, do: 'pause' }, 403],
  ['an order without the right operate', 'read', { selection: { label: 'a=b' }, do: 'retry-now' }, 403],
] as const)('a bulk call with %s is refused', async (_what, right, body, status) => {
  const asked = clientOf(tokens[right]).post('/v1/destinations/bulk', { body })
  expect(await problemOf(asked)).toMatchObject({ status })
})

function run(...args: string[]) {
  return runToEnd(['destinations', ...args, '--label', 'tenant=p'], scene.variables)
}

test('the command line pauses and resumes many in the same way', async () => {
  const preview = await run('pause', '--dry-run')
  expect([preview.code, preview.stdout]).toEqual([0, '3 destinations would be paused\n'])
  expect(preview.stderr).toContain('~ destination/p3')
  expect((await run('pause')).stderr).toContain('give --yes')
  expect((await run('pause', '--yes')).stdout).toMatch(/^3 destinations paused: change \d+\n$/)
  expect((await run('pause', '--yes')).stdout).toContain('There is nothing to pause.')
  expect((await run('resume', '--yes')).stdout).toMatch(/^3 destinations resumed: change \d+\n$/)
  expect((await run('pause', 'p3')).stderr).toContain('and not both')
})

test('a change set of 5,000 objects is made in one change, shown first, and pruned by a label', async () => {
  const client = clientOf()
  const destinations = Array.from({ length: 5_000 }, (_, at) => ({
    id: `many-${at}`,
    name: 'A customer with a name of usual length',
    sources: ['shop'],
    labels: { fleet: 'many' },
    hooks: [{ url: `https://customer-${at}.example.com/hooks/sluice` }],
  }))
  expect(JSON.stringify({ destinations }).length).toBeGreaterThan(64 * 1_024)
  const apply = async (body: object, dryRun = false) =>
    (await client.post('/v1/catalog/apply', { body, query: { dryRun } })).data
  expect(await apply({ destinations }, true)).toMatchObject({ isPreview: true, count: 5_000 })
  expect(await apply({ destinations })).toMatchObject({ isPreview: false, count: 5_000 })
  expect(await apply({ destinations })).toMatchObject({ count: 0, objects: [] })
  const [one, two] = destinations
  const bad = { destinations: [one, { ...two, sources: ['nothing'] }] }
  expect(await problemOf(apply(bad))).toMatchObject({ type: '/problems/faulty' })
  expect(await problemOf(apply({ destinations: [one, one] }))).toMatchObject({ status: 400 })
  const pruned = await apply({ destinations: [one], prune: 'fleet=many' }, true)
  expect(pruned.count).toBe(4_999)
  expect(pruned.objects[0]).toMatchObject({ what: 'removed' })
  const empty = await problemOf(apply({ destinations: [], prune: 'fleet=many' }))
  expect(empty).toMatchObject({ status: 400, detail: expect.stringContaining('all 5000 objects') })
  expect(await apply({ prune: 'fleet=many', allowEmpty: true }, true)).toMatchObject({ count: 5_000 })
})
