import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { type CatalogScene, setCatalogScene } from '../../support/catalog-scene.ts'
import { until } from '../../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

let scene: CatalogScene
let tokens: AdminTokens
let admin: SluiceProcess

beforeAll(async () => {
  tokens = await makeTokens()
  scene = await setCatalogScene({
    catalog: { sources: [{ id: 'shop' }], destinations: [] },
    variables: { SLUICE_ADMIN_TOKENS_FILE: tokens.file },
  })
  admin = await startSluice(scene.variables, { role: 'admin' })
})

afterAll(async () => {
  await admin?.kill()
  scene.close()
  tokens.remove()
})

type Answer = { status: number; etag: string; json: Record<string, unknown>; text: string }

async function call(
  method: string,
  path: string,
  {
    token = tokens.admin,
    body,
    headers = {},
    process = admin,
  }: { token?: string; body?: object; headers?: Record<string, string>; process?: SluiceProcess } = {},
): Promise<Answer> {
  const answered = await fetch(`http://127.0.0.1:${process.adminPort}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answered.text()
  return { status: answered.status, etag: answered.headers.get('etag') ?? '', json: JSON.parse(text), text }
}

const isNew = { 'if-none-match': '*' }

test('an object is made, read, changed under its ETag, and removed; each change is in the audit trail', async () => {
  expect((await call('PUT', '/v1/sources/shop', { body: {}, headers: isNew })).status).toBe(200)
  const crm = {
    sources: ['shop'],
    sharedSecret: 's3cr3tSHARED1',
    hooks: [{ url: 'https://example.com/T02/s3cr3tPATH1', headers: { 'X-Team': 's3cr3tHEADER1' } }],
  }
  const path = '/v1/destinations/paused'
  const unconditional = await call('PUT', path, { body: crm })
  expect(unconditional).toMatchObject({ status: 428, json: { title: 'A condition is needed' } })
  const judged = await call('PUT', `${path}?dryRun=true`, { body: crm, headers: isNew })
  expect(judged).toMatchObject({ status: 200, json: { what: 'created' } })
  const made = await call('PUT', path, { body: crm, headers: isNew })
  expect(made).toMatchObject({ status: 200, json: { what: 'created' } })
  expect((await call('PUT', path, { body: crm, headers: isNew })).status).toBe(412)

  const shown = await call('GET', path)
  expect(shown.etag).toBe(made.etag)
  expect(shown.text).toContain('https://example.com/T02/s3cr3tPATH1')
  expect(shown.text).not.toMatch(/s3cr3tSHARED1|s3cr3tHEADER1/)
  expect((await call('GET', path, { token: tokens.read })).text).not.toContain('s3cr3t')
  const headers = { 'if-match': shown.etag }
  const destination = Object(shown.json['destination'])
  expect(await call('PUT', path, { body: destination, headers })).toMatchObject({
    json: { what: 'unchanged' },
  })

  const patched = await call('PATCH', path, { body: { state: 'paused', sharedSecret: null }, headers })
  expect(patched).toMatchObject({ status: 200, json: { what: 'changed' } })
  expect(await call('PATCH', path, { body: { state: 'on' }, headers })).toMatchObject({
    status: 412,
    etag: patched.etag,
  })
  expect((await call('GET', path)).json['destination']).not.toHaveProperty('sharedSecret')
  const faulty = await call('PATCH', path, {
    body: { sources: ['nope'] },
    headers: { 'if-match': patched.etag },
  })
  expect(faulty.status).toBe(422)
  expect(faulty.text).toContain('names the source')
  const literal = await call('PATCH', path, {
    body: { hooks: [{ url: '${CATALOG_HOOK}', headers: null }] },
    headers: { 'if-match': patched.etag },
  })
  expect(literal.status).toBe(422)
  expect(literal.text).toContain('CATALOG_')
  expect((await call('DELETE', '/v1/sources/shop', { headers: { 'if-match': '"77"' } })).status).toBe(412)
  expect((await call('DELETE', '/v1/sources/shop', { headers: { 'if-match': '"0"' } })).status).toBe(422)
  expect((await call('DELETE', path, { headers: { 'if-match': patched.etag } })).json).toMatchObject({
    what: 'removed',
    version: null,
  })
  expect((await call('GET', path)).status).toBe(404)
  const { json } = await call('GET', '/v1/audit')
  const entries = Object(json['entries']).filter(
    (one: { action: string }) => one.action === 'catalog_changed',
  )
  expect(entries).toMatchObject([
    { by: 'admin-er', destination: 'paused', detail: '- destination/paused' },
    { detail: '~ destination/paused' },
    { detail: '+ destination/paused' },
    { destination: null, detail: '+ source/shop' },
  ])
})

test('a change is listed, shown with its fields and undone; what came since has to be undone first', async () => {
  const path = '/v1/destinations/erp'
  const erp = { sources: [], sharedSecret: 's3cr3tERP', hooks: [{ url: 'https://example.com/s3cr3tERP' }] }
  const made = await call('PUT', path, { body: erp, headers: isNew })
  const patched = await call('PATCH', path, {
    body: { state: 'paused', hooks: [{ url: 'https://example.com/s3cr3tNEW' }] },
    headers: { 'if-match': made.etag },
  })
  const [first, second] = [Number(made.json['revision']), Number(patched.json['revision'])]
  const query = '/v1/catalog/history?object=destination/erp&limit=1'
  const latest = await call('GET', query)
  expect(latest.json).toMatchObject({
    changes: [{ revision: second, by: 'admin-er', undoes: null, count: 1, isWhole: true }],
  })
  expect(latest.text).toContain('s3cr3tNEW')
  const next = await call('GET', `${query}&cursor=${String(latest.json['cursor'])}`)
  expect(next.json).toMatchObject({ changes: [{ revision: first }] })
  const shown = await call('GET', `/v1/catalog/history/${second}`, { token: tokens.read })
  expect(shown.json).toMatchObject({
    objects: [{ object: 'destination/erp', what: 'changed', fields: expect.any(Array) }],
    cursor: null,
  })
  const fields = Object(shown.json['objects'])[0].fields
  expect(fields.map(({ field }: { field: string }) => field).toSorted()).toEqual(['hooks[0].url', 'state'])
  expect(shown.text).not.toContain('s3cr3t')

  const undo = (revision: number, more = '') => call('POST', `/v1/catalog/history/${revision}/undo${more}`)
  const blocked = await undo(first)
  expect(blocked.status).toBe(409)
  expect(blocked.text).toContain(`by change ${second}: undo that one first`)
  expect((await call('POST', `/v1/catalog/history/${second}/undo`, { token: tokens.operate })).status).toBe(
    403,
  )
  const coming = await undo(second, '?dryRun=true')
  const ofState = { field: 'state', before: 'paused', after: null }
  expect(coming.json).toMatchObject({
    count: 1,
    objects: [{ object: 'destination/erp', what: 'changed', fields: expect.arrayContaining([ofState]) }],
  })
  expect((await call('GET', path)).etag).toBe(patched.etag)
  const undone = await undo(second)
  expect(undone.json).toMatchObject({
    undoes: second,
    objects: [{ object: 'destination/erp', what: 'changed' }],
  })
  expect((await call('GET', path)).text).toContain('s3cr3tERP')
  expect((await undo(second)).text).toContain('was undone by change')
  expect((await undo(first)).json).toMatchObject({ objects: [{ what: 'removed' }] })
  expect((await call('GET', path)).status).toBe(404)
  expect((await undo(99_999_999_999)).status).toBe(404)
  const { json } = await call('GET', '/v1/audit?limit=2')
  expect(json['entries']).toMatchObject([
    { detail: `undoes ${first}: - destination/erp` },
    { detail: `undoes ${second}: ~ destination/erp` },
  ])
})

test('a patch of a hook that says nothing of its headers and login is refused, and says how to keep or remove them', async () => {
  const path = '/v1/destinations/patched'
  const main = {
    id: 'main',
    url: 'https://example.com/p',
    headers: { 'X-Team': 's3cr3tTEAM' },
    login: { kind: 'basic', username: 'sluice', password: 's3cr3tLOGIN' },
  }
  const made = await call('PUT', path, { body: { sources: [], hooks: [main] }, headers: isNew })
  expect(made.json).toMatchObject({ what: 'created', removed: [] })
  const patch = (hooks: readonly object[], { etag }: Answer, query = '') =>
    call('PATCH', `${path}${query}`, { body: { hooks }, headers: { 'if-match': etag } })
  const moved = { id: 'main', url: 'https://example.com/moved' }
  for (const query of ['', '?dryRun=true']) {
    const refused = await patch([moved], made, query)
    expect(refused.status).toBe(422)
    expect(refused.text).toContain(
      'hooks[0]: takes the place of the hook main, and does not say what becomes of its headers, login; send each of them as GET shows it to keep it, or null to remove it',
    )
  }
  const shown = await call('GET', path)
  expect(shown.etag).toBe(made.etag)
  const [hook] = Object(shown.json['destination']).hooks
  const kept = await patch([{ ...hook, ...moved }], made)
  expect(kept).toMatchObject({ status: 200, json: { what: 'changed', removed: [] } })
  const foreign = await patch([{ ...hook, ...moved, url: 'https://example.org/' }], kept)
  expect(foreign.status).toBe(422)
  expect(foreign.text).toContain('keeps a value that was set for another field or host')
  const bare = [{ ...moved, headers: { ...hook.headers }, login: null }]
  const judged = await patch(bare, kept, '?dryRun=true')
  expect(judged.json).toMatchObject({ what: 'changed', removed: ['hooks[0].login'] })
  expect((await call('GET', path)).etag).toBe(kept.etag)
  expect((await patch(bare, kept)).json).toMatchObject({ removed: ['hooks[0].login'] })
  const present = await call('GET', path)
  expect(present.json['destination']).toMatchObject({ hooks: [{ ...moved, headers: hook.headers }] })
  expect(present.text).not.toContain('login')
  const put = { body: { sources: [], hooks: [moved] }, headers: { 'if-match': present.etag } }
  expect((await call('PUT', path, put)).json).toMatchObject({ removed: ['hooks[0].headers'] })
})

test('a secret is rotated: the answer has the new one, and nothing else ever has', async () => {
  const path = '/v1/destinations/rotating'
  const body = { sources: [], sharedSecret: 's3cr3tOLD', hooks: [{ url: 'https://example.com/r' }] }
  await call('PUT', path, { body, headers: isNew })
  const rotate = (sent: object, more: object = {}) => call('POST', `${path}/rotate`, { body: sent, ...more })
  expect(await rotate({})).toMatchObject({ status: 409 })
  const sent = { oldSecretEndsAt: '2099-01-01T00:00:00Z' }
  expect((await rotate(sent, { token: tokens.operate })).status).toBe(403)
  expect((await rotate({ oldSecretEndsAt: '2099-99-99T00:00:00Z' })).status).toBe(422)
  const rotated = await rotate(sent)
  const secret = String(rotated.json['secret'])
  expect(rotated).toMatchObject({ status: 200, json: { state: 'both' } })
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect((await rotate(sent)).status).toBe(409)
  const shown = await call('GET', path)
  expect(shown.etag).toBe(rotated.etag)
  expect(shown.json['destination']).toMatchObject({ nextSharedSecret: expect.stringContaining('${kept:') })
  const ended = await call('POST', `${path}/rotate/end`)
  expect(ended).toMatchObject({ status: 200, json: { state: 'ended', secret: null } })
  expect((await call('POST', `${path}/rotate/end`)).status).toBe(409)
  const all = [
    shown,
    ended,
    await call('GET', path),
    await call('GET', '/v1/catalog/history?object=destination/rotating'),
    await call('GET', '/v1/audit'),
  ]
  expect(all.map(({ text }) => text).join('')).not.toMatch(/s3cr3tOLD|whsec_/)
  expect(all.at(-1)?.text).toContain('a new secret: ~ destination/rotating')
  expect((await call('POST', '/v1/destinations/of-nobody/rotate', { body: {} })).status).toBe(404)
})

test('a key of Ed25519 is rotated: its public key is all that anybody learns', async () => {
  const path = '/v1/destinations/keys'
  const body = { sources: [], hooks: [{ url: 'https://example.com/k' }] }
  await call('PUT', path, { body, headers: isNew })
  const ofKeys = async (): Promise<unknown[]> => {
    const { json } = await call('GET', `${path}/signing-keys`)
    return Object(json['keys']).map(({ whpk }: { whpk: string }) => whpk)
  }
  await until('it is known', async () => (await call('GET', `${path}/signing-keys`)).status === 200)
  expect(await ofKeys()).toEqual([])
  const rotate = (end = '', headers = {}) =>
    call('POST', `${path}/rotate${end}?ed25519=true`, { ...(end === '' && { body: {} }), headers })
  const headers = { 'idempotency-key': 'key-of-the-first-key' }
  const first = await rotate('', headers)
  expect(first).toMatchObject({ status: 200, json: { state: 'first', secret: null } })
  expect((await rotate('', headers)).text).toBe(first.text)
  expect((await rotate('/end')).status).toBe(409)
  const second = await rotate()
  expect(second.json['state']).toBe('both')
  expect((await rotate()).status).toBe(409)
  const keys = [first, second].map(({ json }) => json['publicKey'])
  await until('both are served', async () => (await ofKeys()).length === 2)
  expect(await ofKeys()).toEqual(keys)
  const ended = await rotate('/end')
  expect(ended).toMatchObject({ status: 200, json: { state: 'ended', publicKey: null } })
  await until('the old one is gone', async () => (await ofKeys()).length === 1)
  expect(await ofKeys()).toEqual(keys.slice(1))
  const all = [
    await call('GET', path),
    await call('GET', '/v1/catalog/history?object=destination/keys'),
    await call('GET', '/v1/audit'),
  ]
  expect(all.map(({ text }) => text).join('')).not.toContain('whsk_')
})

test('a request that is repeated with its key is done once, by whichever process, and answered as before', async () => {
  const other = await startSluice(scene.variables, { role: 'admin' })
  onTestFinished(() => other.kill())
  const path = '/v1/destinations/repeated'
  const body = {
    sources: [],
    signing: { standardWebhooks: true },
    sharedSecret: 'first-secret',
    hooks: [{ url: 'https://example.com/once' }],
  }
  await call('PUT', path, { body, headers: isNew })
  const headers = { 'idempotency-key': 'key-of-the-rotation' }
  const rotations = await Promise.all(
    [admin, other, admin, other].map((process) =>
      call('POST', `${path}/rotate`, { body: {}, headers, process }),
    ),
  )
  const [first] = rotations
  expect(first).toMatchObject({ status: 200, json: { state: 'both' } })
  expect(rotations.map(({ text }) => text)).toEqual(rotations.map(() => first?.text))
  expect((await call('POST', `${path}/rotate`, { body: {} })).status).toBe(409)
  const otherBody = { oldSecretEndsAt: '2099-01-01T00:00:00Z' }
  for (const process of [admin, other]) {
    const refused = await call('POST', `${path}/rotate`, { body: otherBody, headers, process })
    expect(refused).toMatchObject({ status: 422, json: { type: '/problems/other-request' } })
  }

  const undoPath = `/v1/catalog/history/${String(first?.json['revision'])}/undo`
  const undo = { headers: { 'idempotency-key': 'key-of-the-undo' } }
  const dry = await call('POST', `${undoPath}?dryRun=true`, undo)
  expect(dry.status).toBe(200)
  const undone = await call('POST', undoPath, undo)
  expect(undone.json).toMatchObject({
    count: 1,
    objects: [{ object: 'destination/repeated', what: 'changed' }],
  })
  expect((await call('POST', undoPath, { ...undo, process: other })).text).toBe(undone.text)
  expect((await call('POST', undoPath)).status).toBe(409)
  // What was undone is still known by its key.
  expect((await call('POST', `${path}/rotate`, { body: {}, headers })).text).toBe(first?.text)
  const bad = await call('POST', undoPath, { headers: { 'idempotency-key': 'with space' } })
  expect(bad.status).toBe(400)
  const history = await call('GET', '/v1/catalog/history?object=destination/repeated')
  expect(Object(history.json['changes'])).toHaveLength(3)
})

test.for(['PUT', 'PATCH', 'DELETE'])(
  '%s needs the right admin, and changes nothing without it',
  async (method) => {
    const path = '/v1/sources/of-nobody'
    const body = method === 'DELETE' ? {} : { body: {} }
    for (const token of [tokens.read, tokens.operate])
      expect((await call(method, path, { token, ...body, headers: isNew })).status).toBe(403)
    expect((await call(method, path, { token: 'sluice_wrong', ...body, headers: isNew })).status).toBe(401)
    expect((await call('GET', path)).status).toBe(404)
  },
)

test('what the API makes, commands see at once, and the list says it too', async () => {
  await call('PUT', '/v1/sources/blog', { body: { name: 'The blog' }, headers: isNew })
  const { stdout } = await runToEnd(['catalog', 'export', '--json'], scene.variables)
  expect(stdout).toContain('"The blog"')
  await expect
    .poll(async () => JSON.stringify((await call('GET', '/v1/sources')).json['sources']), { timeout: 60_000 })
    .toContain('"The blog"')
})

test('calls that change many objects are carried out once for each Idempotency-Key, also by two processes at the same moment', async () => {
  const other = await startSluice(scene.variables, { role: 'admin' })
  onTestFinished(() => other.kill())
  const hooks = [{ url: 'https://example.com/' }]
  const destinations = ['once-a', 'once-b'].map((id) => ({
    id,
    sources: ['shop'],
    hooks,
    labels: { of: 'once' },
  }))
  const keyed = { 'idempotency-key': 'apply-1' }
  const apply = { body: { sources: [{ id: 'shop' }], destinations }, headers: keyed }
  const both = await Promise.all(
    [admin, other].map((process) => call('POST', '/v1/catalog/apply', { ...apply, process })),
  )
  expect(both.map(({ status }) => status)).toEqual([200, 200])
  expect(both[0]?.json).toMatchObject({ isPreview: false, count: expect.any(Number) })
  expect(both[1]?.json).toEqual(both[0]?.json)
  const later = await call('POST', '/v1/catalog/apply', { ...apply, process: other })
  expect(later.json).toEqual(both[0]?.json)
  const another = { body: { destinations: [] }, headers: keyed }
  expect(await call('POST', '/v1/catalog/apply', another)).toMatchObject({
    status: 422,
    json: { type: '/problems/other-request' },
  })

  await until('both are followed', async () => {
    const listed = await call('GET', '/v1/destinations?label=of%3Donce', { token: tokens.read })
    return listed.text.includes('once-a') && listed.text.includes('once-b')
  })
  const order = { selection: { label: 'of=once' }, do: 'pause' }
  const headers = { 'idempotency-key': 'bulk-1' }
  const paused = await call('POST', '/v1/destinations/bulk', { body: order, headers })
  expect(paused).toMatchObject({ status: 200, json: { destinations: ['once-a', 'once-b'], skipped: [] } })
  // Without the key, a repetition would skip both, because they are paused by then.
  const repeated = await call('POST', '/v1/destinations/bulk', { body: order, headers, process: other })
  expect(repeated.json).toEqual(paused.json)
  const preview = { body: { ...order, dryRun: true }, headers }
  expect((await call('POST', '/v1/destinations/bulk', preview)).json).toMatchObject({ isPreview: true })
})

test('an object that is made anew is another one: no ETag of its former life lets it be changed', async () => {
  const path = '/v1/destinations/reborn'
  const body = { sources: ['shop'], hooks: [{ url: 'https://example.com/' }] }
  const first = await call('PUT', path, { body, headers: isNew })
  const former = { 'if-match': first.etag }
  expect((await call('DELETE', path, { headers: former })).status).toBe(200)
  const second = await call('PUT', path, { body, headers: isNew })
  expect(second.etag).not.toBe(first.etag)
  for (const method of ['PUT', 'PATCH', 'DELETE'])
    expect([method, (await call(method, path, { body, headers: former })).status]).toEqual([method, 412])
  expect((await call('DELETE', path, { headers: { 'if-match': second.etag } })).status).toBe(200)
})

test('an id that no path could name is never stored, by whichever call', async () => {
  const body = { sources: ['shop'], hooks: [{ url: 'https://example.com/' }] }
  const ids = ['a/b', 'a%2Fb', '..', 'a b', ' ', 'é', 'x'.repeat(101), '__proto__', 'head', 'destination/crm']
  for (const id of ids) {
    const put = await call('PUT', `/v1/destinations/${encodeURIComponent(id)}`, { body, headers: isNew })
    const applied = await call('POST', '/v1/catalog/apply', { body: { destinations: [{ ...body, id }] } })
    const isFine = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(id)
    expect([id, put.status, applied.status]).toEqual(isFine ? [id, 200, 200] : [id, expect.any(Number), 422])
    if (!isFine) expect([400, 404, 422]).toContain(put.status)
  }
  const named = await call('PUT', '/v1/destinations/mine', { body: { ...body, id: 'yours' }, headers: isNew })
  expect(named).toMatchObject({ status: 422 })
  const listed = await call('GET', '/v1/catalog/history?limit=100')
  expect(listed.text).not.toMatch(/a\/b|__proto__|yours/)
})

test('a secret is rotated a second time after the first rotation has ended, and never silently before', async () => {
  const path = '/v1/destinations/twice'
  const signing = { standardWebhooks: true }
  const body = {
    sources: ['shop'],
    sharedSecret: 'the-first',
    signing,
    hooks: [{ url: 'https://example.com/' }],
  }
  await call('PUT', path, { body, headers: isNew })
  const first = await call('POST', `${path}/rotate`, { body: {} })
  expect(first).toMatchObject({ status: 200, json: { state: 'both' } })
  expect((await call('POST', `${path}/rotate`, { body: {} })).status).toBe(409)
  expect((await call('POST', `${path}/rotate/end`)).status).toBe(200)
  const past = { oldSecretEndsAt: '2020-01-01T00:00:00Z' }
  const second = await call('POST', `${path}/rotate`, { body: {} })
  expect(second).toMatchObject({ status: 200, json: { state: 'both' } })
  expect(second.json['secret']).not.toBe(first.json['secret'])
  expect((await call('GET', path)).text).not.toContain('sharedSecretEndsAt')
  expect((await call('POST', `${path}/rotate`, { body: past })).status).toBe(409)
})

test('whoever has made or changed a destination is answered by it at once', async () => {
  const source = 'at-once'
  await call('PUT', `/v1/sources/${source}`, { body: {}, headers: isNew })
  for (let n = 0; n < 5; n++) {
    const id = `at-once-${n}`
    const path = `/v1/destinations/${id}`
    const body = { sources: [source], hooks: [{ url: 'https://one.example.com/hook' }] }
    const made = await call('PUT', path, { body, headers: isNew })
    expect((await call('GET', `${path}/health`)).status).toBe(200)
    const hooks = [{ url: 'https://two.example.com/hook' }]
    const changed = await call('PATCH', path, { body: { hooks }, headers: { 'if-match': made.etag } })
    const { text } = await call('GET', `/v1/destinations?source=${source}&search=${id}`)
    expect(text).toContain('https://two.example.com')
    await call('DELETE', path, { headers: { 'if-match': changed.etag } })
    expect((await call('GET', `${path}/health`)).status).toBe(404)
  }
})
