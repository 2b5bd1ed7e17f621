import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { listOf, recordOf } from '../../src/catalog/plain-data.ts'
import type { Definition } from '../../src/catalog-log/definitions.ts'
import { type CatalogKeys, newKeyLine } from '../../src/catalog-log/keys.ts'
import { headOf, RecordSeals } from '../../src/catalog-log/record.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { makeTokens } from '../support/admin.ts'
import { catalogKeys, openDesk } from '../support/catalog-log.ts'
import { produce, readAll, type SeenRecord } from '../support/kafka.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'

const secrets = { crm: 'the-header-secret-of-crm', erp: 'the-header-secret-of-erp' } as const
const refused = 'a record of the catalog was refused: what was in force before it stays in force'
const unusable = 'an object of the catalog can not be used: its earlier version stays in force'

type Running = {
  readonly scene: Scene
  readonly topic: string
  readonly receiver: Receiver
  /** The endpoint to which somebody wants to carry messages and secrets. */
  readonly thief: Receiver
  readonly keys: CatalogKeys
  readonly worker: SluiceProcess
  readonly gateway: SluiceProcess
  readonly admin: SluiceProcess
  readonly token: string
}

async function start(): Promise<Running> {
  const [receiver, thief] = await Promise.all([startReceiver(), startReceiver()])
  const folder = mkdtempSync(join(tmpdir(), 'sluice-forgeries-'))
  const tokens = await makeTokens()
  onTestFinished(async () => {
    await Promise.all([receiver.stop(), thief.stop()])
    tokens.remove()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  })
  writeFileSync(join(folder, 'keys'), newKeyLine())
  const destination = (id: keyof typeof secrets) => ({
    id,
    sources: ['shop'],
    hooks: [{ id: 'main', url: `${receiver.origin}/${id}`, headers: { 'X-Key': secrets[id] } }],
  })
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['key-of-the-shop'] }],
      destinations: [destination('crm'), destination('erp')],
    },
    variables: {
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: join(folder, 'keys'),
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_STATE_FOLDER: join(folder, 'state'),
    },
  })
  onTestFinished(() => scene.close())
  await runSluice(['catalog', 'import', scene.catalog.path], scene.variables)
  const run = async (role: string): Promise<SluiceProcess> => {
    const one = await startSluice(scene.variables, { role })
    onTestFinished(() => one.kill())
    return one
  }
  const [worker, gateway, admin] = [await run('worker'), await run('gateway'), await run('admin')]
  const topic = `${scene.prefix}catalog`
  const keys = catalogKeys(readFileSync(join(folder, 'keys'), 'utf8').trim())
  return { scene, topic, receiver, thief, keys, worker, gateway, admin, token: tokens.admin }
}

/** Expects that the next message goes to both endpoints with their secrets, and to nobody else. */
async function expectDelivered({ gateway, receiver, thief }: Running): Promise<void> {
  const before = receiver.requests.length
  const answered = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('key-of-the-shop:')}` },
    body: JSON.stringify({ userId: 'u1', event: 'Bought' }),
  })
  expect(answered.status).toBe(200)
  await until('both get it', () => receiver.requests.length === before + 2)
  for (const { path, headers } of receiver.requests.slice(before))
    expect(headers['x-key']).toBe(path === '/crm' ? secrets.crm : secrets.erp)
  expect(thief.requests).toEqual([])
}

/** Waits until all processes that follow the topic have logged a line so often. */
async function untilAllSay({ worker, gateway, admin }: Running, text: string, times: number): Promise<void> {
  for (const { log } of [worker, gateway, admin])
    await until(`it is said ${times} times: ${text}`, () => {
      const found = log.filter(({ msg }) => msg === text).length
      if (found > times) throw new Error(`it is said ${found} times`)
      return found === times
    })
}

async function untilTrouble({ worker, gateway }: Running, kind: string, value: 0 | 1): Promise<void> {
  for (const one of [worker, gateway])
    await until(
      `the trouble ${kind} is ${value}`,
      async () => (await one.metric('sluice_catalog_topic_trouble', { kind })) === value,
    )
}

/** Waits until the status over HTTP says of the worker's topic what is expected. */
async function untilStatus(
  { admin, token }: Running,
  expected: (trouble: unknown) => boolean,
): Promise<void> {
  await until('the status says so', async () => {
    const answered = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/status`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const [told] = listOf(recordOf(await answered.json())['workers'])
    return expected(recordOf(told)['catalogTrouble'])
  })
}

function recordAt(records: readonly SeenRecord[], key: string): SeenRecord {
  const found = records.find((record) => record.key === key)
  if (found === undefined) throw new Error(`there is no record ${key}`)
  return found
}

function hookOf(definition: Definition): Definition {
  return recordOf(listOf(definition['hooks'])[0])
}

/** Writes a change set as somebody with the key could. `edit` changes what an object has now. */
async function forge(running: Running, id: string, edit: (now: Definition) => Definition) {
  const { objects } = await openDesk(running.topic, running.keys).look()
  const now = objects.get(`destination/${id}`)
  if (now === undefined) throw new Error('there is no such destination')
  await write(running, `destination/${id}`, edit(now.definition))
  return objects
}

/** Writes a change of one object, with a signature. */
async function write({ topic, keys }: Running, object: string, content: object | null): Promise<void> {
  const { head } = await openDesk(topic, keys).look()
  const seals = new RecordSeals(topic, keys)
  if (head === undefined) throw new Error('the topic is empty')
  const revision = head.revision + 1
  const records = [
    seals.write(object, content, revision),
    seals.head({ ...head, revision, changeId: `written-${revision}`, by: 'mallory' }),
  ]
  await produce(
    topic,
    records.map(({ key = null, value, headers = {} }) => ({
      key,
      value,
      headers: { revision: String(headers['revision']), mac: String(headers['mac']) },
    })),
  )
}

test('records of somebody without the key, with another key, or of the past are refused and told, and nothing changes', async () => {
  const running = await start()
  const { scene, topic, thief } = running
  await expectDelivered(running)
  const first = await readAll(topic)
  await runSluice(['destinations', 'pause', 'crm'], scene.variables)
  await runSluice(['destinations', 'resume', 'crm'], scene.variables)
  const crm = recordAt(first, 'destination/crm')
  const evil = { id: 'crm', sources: ['shop'], hooks: [{ url: `${thief.origin}/crm` }] }
  const { mac = '' } = crm.headers
  const last = (await readAll(topic)).at(-1)
  expect(headOf(JSON.parse(String(last?.value)))).toBeDefined()
  await produce(topic, [
    // Nobody has signed it.
    { key: 'destination/crm', value: JSON.stringify(evil) },
    // A signature that was guessed, of a key that exists.
    {
      key: 'destination/crm',
      value: JSON.stringify(evil),
      headers: { revision: '9999999999', mac: mac.replace(/[0-9a-f]+$/, '0'.repeat(64)) },
    },
    // It was signed, and is old: the destination as it was first.
    { key: 'destination/crm', value: crm.value, headers: crm.headers },
    // The signed record of another destination, with its sealed secrets.
    { key: 'destination/erp', value: crm.value, headers: crm.headers },
    { key: 'destination/erp', value: null },
    { key: 'destination/new', value: JSON.stringify({ ...evil, id: 'new' }) },
    { key: 'head', value: last?.value ?? null },
  ])
  await untilAllSay(running, refused, 7)
  const problems = running.worker.log.flatMap(({ msg, problem }) => (msg === refused ? [problem] : []))
  const foreign = 'was not written by Sluice'
  const changed = 'was changed by somebody without the key, or belongs to another installation'
  const old = 'is older than the records before it: it was written again'
  expect(problems).toEqual([foreign, changed, old, changed, foreign, foreign, foreign])
  await untilTrouble(running, 'overwritten', 1)
  await untilStatus(running, (trouble) => String(trouble).includes('destination/crm, destination/erp, head'))
  const said = (await runSluice(['status'], scene.variables)).stdout
  expect(said).toContain('Somebody without the key has overwritten records of the topic')
  await expectDelivered(running)

  // The next change ends the doubt about the head, and an import the doubt about the rest.
  const { stdout } = await runSluice(['catalog', 'export'], scene.variables)
  await runSluice(['catalog', 'import', '-', '--repair'], scene.variables, { input: stdout })
  await untilTrouble(running, 'overwritten', 0)
  await untilStatus(running, (trouble) => trouble === null)
  await expectDelivered(running)
  await running.worker.terminate()
  const again = await startSluice(scene.variables)
  onTestFinished(() => again.kill())
  expect(await again.metric('sluice_catalog_topic_trouble', { kind: 'copy' })).toBe(0)
  await expectDelivered({ ...running, worker: again })
})

test('a sealed secret that is carried to another object or host is never opened, not even if its record is signed', async () => {
  const running = await start()
  const { scene, receiver, thief, admin, token } = running
  await expectDelivered(running)
  const objects = await forge(running, 'erp', (now) => now)
  const stolen = hookOf(objects.get('destination/crm')?.definition ?? {})['headers']
  await forge(running, 'erp', (now) => ({ ...now, hooks: [{ ...hookOf(now), headers: stolen }] }))
  await untilAllSay(running, unusable, 1)
  await forge(running, 'crm', (now) => {
    const { url } = hookOf(now)
    const moved = String(url).replace(receiver.origin, thief.origin)
    return { ...now, hooks: [{ ...hookOf(now), url: moved }] }
  })
  await untilAllSay(running, unusable, 2)
  const told = running.worker.log.filter(({ msg }) => msg === unusable)
  expect(told.map(({ id, problem }) => [id, problem])).toEqual([
    ['erp', expect.stringContaining('X-Key was sealed for another place')],
    ['crm', expect.stringContaining('was sealed for another place')],
  ])
  await untilTrouble(running, 'unusable', 1)
  expect(await running.worker.metric('sluice_catalog_refused')).toBe(1)
  await untilStatus(running, (trouble) => /destination\/erp.*destination\/crm/s.test(String(trouble)))
  await expectDelivered(running)

  // Over HTTP, what is kept of one destination can't be given to another one, or sent to another host.
  const call = async (method: string, id: string, body?: unknown, version = '') => {
    const answered = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/destinations/${id}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json', 'if-match': version }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answered.status, json: recordOf(await answered.json()) }
  }
  await runSluice(['destinations', 'set', 'crm', '-'], scene.variables, {
    input: stringify({
      sources: ['shop'],
      hooks: [{ id: 'main', url: `${receiver.origin}/crm`, headers: { 'X-Key': secrets.crm } }],
    }),
  })
  const { json } = await call('GET', 'crm')
  const { hooks, ...rest } = recordOf(json['destination'])
  const hook = recordOf(listOf(hooks)[0])
  expect(JSON.stringify(hook['headers'])).toMatch(/\$\{kept:/)
  const elsewhere = { ...rest, hooks: [{ ...hook, url: `${thief.origin}/crm` }] }
  const refusal = await call('PUT', 'crm', elsewhere, `"${Number(json['version'])}"`)
  expect([refusal.status, JSON.stringify(refusal.json)]).toEqual([
    422,
    expect.stringContaining('keeps a value that was set for another field or host'),
  ])
  const mended = { ...rest, id: 'erp', hooks: [{ ...hook, url: `${receiver.origin}/erp` }] }
  const erp = await call('GET', 'erp')
  const carried = await call('PUT', 'erp', mended, `"${Number(erp.json['version'])}"`)
  expect([carried.status, JSON.stringify(carried.json)]).toEqual([
    422,
    expect.stringContaining('keeps a value that is not set'),
  ])
  const own = [{ ...hook, url: `${receiver.origin}/erp`, headers: { 'X-Key': secrets.erp } }]
  const set = await call('PUT', 'erp', { ...mended, hooks: own }, `"${Number(erp.json['version'])}"`)
  expect(set.status).toBe(200)
  await untilTrouble(running, 'unusable', 0)
  await expectDelivered(running)
})

test('what a later version has written is named by every process that can not use it, with the time and what to do, and all else goes on', async () => {
  const running = await start()
  const { scene } = running
  await expectDelivered(running)
  const sinceMs = Date.now()
  await forge(running, 'crm', (now) => ({ ...now, priority: 5 }))
  await write(running, 'rule/vip', { id: 'vip' })
  await untilTrouble(running, 'unusable', 1)
  await untilStatus(running, (trouble) => /destination\/crm.*rule\/vip/s.test(String(trouble)))
  // Its earlier version stays in force.
  await expectDelivered(running)

  const { stdout } = await runSluice(['status'], scene.variables)
  expect(stdout).toMatch(/destination\/crm: can not be used since 20[^(]* \(.*priority/s)
  expect(stdout).toContain('What this command can not use of the catalog.')
  expect(stdout).toMatch(/Whether \S+:\d+ has the present catalog/)
  expect(stdout).toContain(
    'update this process, give it the same keys (catalog.keysFile), or set the object anew',
  )
  expect(stdout).toContain('that this one does not know, and does not use (rule/vip). Update this process.')
  const since = /since (20\S+)/.exec(stdout)?.[1] ?? ''
  expect(Date.parse(since)).toBeGreaterThanOrEqual(sinceMs)
  const listed = await runSluice(['destinations', 'list'], scene.variables)
  expect(listed.stdout).toMatch(/^erp /m)
  expect(listed.stdout).not.toMatch(/^crm /m)
  expect(listed.stderr).toContain('destination/crm: can not be used')
  const unknown = await unknownIn(running)
  expect(unknown.filter((text) => /rule\/vip/.test(text))).toHaveLength(2)
  expect(unknown).toContainEqual(expect.stringContaining('Whether the process that answers here'))

  // Whoever sets it anew, and takes the other one away, mends it.
  const hooks = [{ id: 'main', url: `${running.receiver.origin}/crm`, headers: { 'X-Key': secrets.crm } }]
  const input = stringify({ sources: ['shop'], hooks })
  await runSluice(['destinations', 'set', 'crm', '-'], scene.variables, { input })
  await write(running, 'rule/vip', null)
  await untilTrouble(running, 'unusable', 0)
  await untilStatus(running, (trouble) => trouble === null)
  await until('the admin knows it too', async () => (await unknownIn(running)).length === 0)
  await expectDelivered(running)
})

/** Returns what the status over HTTP doesn't know. */
async function unknownIn({ admin, token }: Running): Promise<readonly string[]> {
  const answered = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/status`, {
    headers: { authorization: `Bearer ${token}` },
  })
  return listOf(recordOf(await answered.json())['unknown']).map(String)
}
