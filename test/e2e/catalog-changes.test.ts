import { createHmac } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { otherProgram, readAll } from '../support/kafka.ts'
import { type CatalogScene, setCatalogScene } from '../support/catalog-scene.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runSluice, runToEnd, startSluice } from '../support/worker-process.ts'
import { newIds } from './scene.ts'

/** Tests of the commands that change the catalog in its topic, with one installation. */

let scene: CatalogScene
let receiver: Receiver

beforeAll(async () => {
  receiver = await startReceiver()
  scene = await setCatalogScene({ variables: { CATALOG_CRM: 's3cr3tOFcrm' } })
  await run(['sources', 'set', 'shop', '-'], 'name: Web shop')
})

afterAll(async () => {
  scene.close()
  await receiver.stop()
})

/** Runs a command that has to succeed, and returns its output. */
async function run(args: readonly string[], input?: string): Promise<string> {
  return (await runSluice(args, scene.variables, input === undefined ? {} : { input })).stdout
}

/** Runs a command that has to fail, and returns its exit code and what it says. */
async function failed(args: readonly string[], input = ''): Promise<{ code: number | null; said: string }> {
  const { code, stderr, stdout } = await runToEnd(args, scene.variables, { input })
  expect(code).not.toBe(0)
  return { code, said: stderr + stdout }
}

function signedWith({ headers, body }: ReceivedRequest, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers
  try {
    new Webhook(secret.startsWith('whsec_') ? secret : Buffer.from(secret).toString('base64')).verify(body, {
      'webhook-id': String(id),
      'webhook-timestamp': String(timestamp),
      'webhook-signature': String(signature),
    })
    return true
  } catch {
    return false
  }
}

function hasXSignatureOf({ headers, body }: ReceivedRequest, secret: string): boolean {
  return headers['x-signature'] === createHmac('sha1', secret).update(body).digest('hex')
}

test('a secret is rotated: first both are valid, then only the new one, and an undo brings the old one back', async () => {
  const crm = `sources: [shop]
sharedSecret: \${CATALOG_CRM}
signing: { standardWebhooks: true }
hooks: [{ url: '${receiver.origin}/crm' }]`
  expect(await run(['destinations', 'create', 'crm', '-'], crm)).toContain('destination/crm: created')
  expect((await failed(['destinations', 'create', 'crm', '-'], crm)).said).toContain(
    'already: `set` replaces it',
  )
  const worker = await startSluice({ ...scene.variables, SLUICE_STATE_FOLDER: join(scene.folder, 'state') })
  let sent = 0
  /** Sends a message when the worker uses the latest change, and returns the request that comes of it. */
  const sentNow = async (): Promise<ReceivedRequest> => {
    const { revision } = JSON.parse(await run(['catalog', 'history', '--limit', '1', '--json']))
    await until('the worker uses the change', async () =>
      worker.log.some(({ msg, version }) => msg === 'the catalog has changed' && version === `r${revision}`),
    )
    await scene.send('shop', newIds(1))
    sent++
    await until('the message arrives', () => receiver.requestsTo('/crm').length === sent)
    const request = receiver.requestsTo('/crm').at(-1)
    if (request === undefined) throw new Error('no request')
    return request
  }
  try {
    const rotated = await run(['destinations', 'rotate', 'crm', '--by', 'ann'])
    const secret = /shown this once: (whsec_\S+)/.exec(rotated)?.[1] ?? ''
    expect(secret).not.toBe('')
    expect((await failed(['destinations', 'rotate', 'crm'])).said).toContain('has a next secret already')
    const both = await sentNow()
    expect(['s3cr3tOFcrm', secret].map((one) => signedWith(both, one))).toEqual([true, true])
    expect(hasXSignatureOf(both, 's3cr3tOFcrm')).toBe(true)

    expect(await run(['destinations', 'rotate', 'crm', '--end'])).toContain('with the new secret only')
    expect((await failed(['destinations', 'rotate', 'crm', '--end'])).said).toContain('has no next secret')
    const ended = await sentNow()
    expect(['s3cr3tOFcrm', secret].map((one) => signedWith(ended, one))).toEqual([false, true])
    expect(hasXSignatureOf(ended, secret)).toBe(true)

    const [{ revision }] = (await run(['catalog', 'history', 'destination/crm', '--json']))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(await run(['catalog', 'undo', String(revision), '--yes'])).toContain('nextSharedSecret')
    const back = await sentNow()
    expect(['s3cr3tOFcrm', secret].map((one) => signedWith(back, one))).toEqual([true, true])
    const shown = await run(['catalog', 'history', 'destination/crm'])
    expect(shown).toContain('nextSharedSecret: (none) → (secret, set ')
    const topics = await Promise.all(
      ['catalog', 'catalog-history', 'replay-jobs'].map((name) => readAll(`${scene.prefix}${name}`)),
    )
    const all = JSON.stringify([
      shown,
      await worker.wholeLog(),
      topics.flat().map(({ value }) => String(value)),
    ])
    expect(all).not.toContain('s3cr3tOFcrm')
    expect(all).not.toContain(secret)
  } finally {
    await worker.terminate()
  }
})

test('without Standard Webhooks, a rotation says when the old secret ends; without a secret, it makes the first', async () => {
  await run(
    ['destinations', 'create', 'plain', '-'],
    `sources: []\nhooks: [{ url: '${receiver.origin}/plain' }]`,
  )
  expect(await run(['destinations', 'rotate', 'plain'])).toContain('had no secret')
  expect((await failed(['destinations', 'rotate', 'plain'])).said).toContain('--old-ends-at')
  const ends = ['destinations', 'rotate', 'plain', '--old-ends-at', '2099-01-01T00:00:00Z', '--json']
  expect(JSON.parse(await run(ends))).toMatchObject({ state: 'both' })
  expect(await run(['destinations', 'get', 'plain'])).toContain('sharedSecretEndsAt: 2099-01-01T00:00:00Z')
  await run(['destinations', 'rotate', 'plain', '--end'])
  expect(await run(['destinations', 'get', 'plain'])).not.toMatch(/nextSharedSecret|sharedSecretEndsAt/)
})

function destination(id: string, more = ''): string {
  return `sources: [shop]\nlabels: { tenant: acme }\nhooks: [{ url: 'https://example.com/${id}' }]\n${more}`
}

test('files are applied as they are seen: the difference first, only what they name, and pruned by label only', async () => {
  const files = join(scene.folder, 'acme')
  mkdirSync(files)
  writeFileSync(join(files, 'one.yaml'), `id: one\n${destination('one', 'sharedSecret: ${CATALOG_CRM}')}`)
  const fragment = {
    sources: [{ id: 'acme-app' }],
    destinations: [
      {
        id: 'two',
        sources: ['acme-app'],
        labels: { tenant: 'acme' },
        hooks: [{ url: 'https://example.com/two' }],
      },
    ],
  }
  writeFileSync(join(files, 'two.json'), JSON.stringify(fragment))
  writeFileSync(join(files, 'notes.txt'), 'no part of it')
  await run(
    ['destinations', 'set', 'of-nobody', '-'],
    `sources: []\nhooks: [{ url: 'https://example.com/n' }]`,
  )
  await run(['destinations', 'set', 'old', '-'], destination('old'))
  await run(['destinations', 'set', 'other', '-'], destination('other').replace('acme', 'globex'))

  const apply = ['apply', '-f', files]
  expect((await failed(apply)).said).toContain('Nobody can answer')
  const first = await run([...apply, '--yes'])
  expect(first.split('\n').slice(0, 3)).toEqual([
    '+ source/acme-app',
    '+ destination/one',
    '+ destination/two',
  ])
  expect(first).toContain('3 objects changed: change ')
  expect(await run([...apply, '--yes'])).toContain('Nothing differs.')

  writeFileSync(
    join(files, 'one.yaml'),
    `id: one\n${destination('one', 'sharedSecret: ${CATALOG_CRM}\nmaxInFlight: 3')}`,
  )
  const prune = [...apply, '--prune', '--selector', 'tenant=acme']
  const { stdout: dry, stderr: warned } = await runSluice([...prune, '--dry-run'], scene.variables)
  expect(warned).toContain('source/acme-app lacks the label tenant=acme, so a later --prune leaves it')
  expect(warned).not.toContain('destination/')
  expect(dry).toBe(
    '~ destination/one\n    maxInFlight: (none) → 3\n- destination/old\n2 objects would change, of which 1 is removed\n',
  )
  expect((await failed([...apply, '--prune', '--yes'])).said).toContain('--prune needs --selector')
  expect(await run([...prune, '--yes'])).toContain('2 objects changed, of which 1 is removed')
  const exported = await run(['catalog', 'export', '--json'])
  const ids = JSON.parse(exported).destinations.map(({ id }: { id: string }) => id)
  expect(ids).toEqual(expect.arrayContaining(['of-nobody', 'one', 'other', 'two']))
  expect(ids).not.toContain('old')

  // Files that were not mounted, or that a program has left empty, remove no customer.
  const ofNothing = ['apply', '-f', '-', '--prune', '--selector', 'tenant=acme', '--yes']
  expect((await failed(ofNothing, 'destinations: []')).said).toContain(
    'so all 2 objects that have it would be removed. Nothing was changed.',
  )
  expect(await run([...ofNothing, '--allow-empty', '--dry-run'], 'destinations: []')).toContain(
    '2 objects would change, of which 2 are removed',
  )

  writeFileSync(
    join(files, 'two.json'),
    JSON.stringify({ destinations: [{ ...fragment.destinations[0], sources: ['nope'] }] }),
  )
  const faulty = await failed([...apply, '--yes'])
  expect(faulty.said).toContain(`${join(files, 'two.json')}: destination/two: sources[0]: names the source`)
  writeFileSync(join(files, 'three.yml'), 'destinations: [{ id: one }]')
  expect((await failed(apply)).said).toContain(`has destination/one, and so has ${join(files, 'one.yaml')}`)
})

/** Applies a file with a source and a destination, both with the id `night` and these fields. */
async function applyNight(ofSource: object, ofDestination: object) {
  const hooks = [{ url: 'https://example.com/night' }]
  const input = JSON.stringify({
    sources: [{ id: 'night', ...ofSource }],
    destinations: [{ id: 'night', sources: ['night'], hooks, ...ofDestination }],
  })
  return runSluice(['apply', '-f', '-', '--yes'], scene.variables, { input })
}

async function presentNight() {
  const { sources, destinations } = JSON.parse(await run(['catalog', 'export', '--json']))
  return { source: sources.find(isNight), destination: destinations.find(isNight) }
}

function isNight({ id }: { id: string }): boolean {
  return id === 'night'
}

test('a pause, a rotated secret and a write key outlive files that do not have them, and go if the files say so', async () => {
  await applyNight({}, {})
  await run(['sources', 'key', 'night'])
  await run(['destinations', 'rotate', 'night'])
  await run(['destinations', 'pause', 'night'])
  const { stdout, stderr } = await applyNight({}, { name: 'Night shift' })
  expect(stdout).toMatch(/^~ destination\/night\n +name: .*\n1 object changed/)
  expect(stderr).toContain('destination/night stays paused, because the files do not say its state')
  const kept = await presentNight()
  expect(kept.source.writeKeys).toHaveLength(1)
  expect(kept.destination).toMatchObject({
    name: 'Night shift',
    state: 'paused',
    sharedSecret: expect.stringMatching(/^\$\{kept:/),
  })

  await applyNight({ writeKeys: [] }, { state: 'on', sharedSecret: null })
  const present = await presentNight()
  expect(present.source.writeKeys).toEqual([])
  expect(present.destination).not.toHaveProperty('sharedSecret')
  expect(present.destination.state ?? 'on').toBe('on')
})

test('a file is compared with the topic: the exit code says whether they differ', async () => {
  const exported = JSON.parse(await run(['catalog', 'export', '--json']))
  expect(await run(['catalog', 'diff', '-'], JSON.stringify(exported))).toBe('')
  const [first, ...rest] = exported.sources
  const changed = { ...exported, sources: [{ ...first, name: 'Renamed' }, ...rest, { id: 'new-one' }] }
  const differs = await failed(['catalog', 'diff', '-'], JSON.stringify(changed))
  expect(differs.code).toBe(1)
  expect(differs.said).toContain(`~ source/${first.id}\n    name: `)
  expect(differs.said).toContain('+ source/new-one')
  expect((await failed(['catalog', 'diff', '-'], 'sources: 7')).code).toBe(2)
})

test('write keys of a source are made by Sluice, and removed by their beginning', async () => {
  await run(['sources', 'set', 'blog', '-'], 'writeKeys: [wk_of-old-days]')
  const key = /: (wk_\S+)$/m.exec(await run(['sources', 'key', 'blog', '--by', 'ann']))?.[1] ?? ''
  expect(await run(['sources', 'get', 'blog'])).toContain(key)
  expect(await run(['sources', 'list'])).toMatch(/blog +blog +events +true +2 +0/)
  expect((await failed(['sources', 'key', 'blog', '--end', 'wk_', '--yes'])).said).toContain('2 write keys')
  await run(['sources', 'key', 'blog', '--end', 'wk_of', '--yes'])
  expect(JSON.parse(await run(['sources', 'get', 'blog', '--json'])).source.writeKeys).toEqual([key])
  await run(['sources', 'rm', 'blog', '--yes'])
  expect((await failed(['sources', 'get', 'blog'])).code).toBe(2)
  const audit = (await readAll(`${scene.prefix}replay-jobs`)).map(({ value }) => String(value)).join('\n')
  expect(audit).toContain('a new write key: ~ source/blog')
})

test('without its topic of the history, the catalog is not changed, and the command says what to do', async () => {
  const topic = `${scene.prefix}catalog-history`
  await withAdmin(otherProgram(), (admin) => admin.deleteTopics({ topics: [topic] }))
  const order = ['destinations', 'set', 'late', '-']
  const late = `sources: []\nhooks: [{ url: 'https://example.com/late' }]`
  const { said } = await failed(order, late)
  expect(said).toContain('`sluice topics apply` creates what is missing')
  expect((await failed(['destinations', 'get', 'late'])).code).toBe(2)
  await run(['topics', 'apply'])
  expect(await run(order, late)).toContain('destination/late: created')
  expect((await failed(['catalog', 'undo', '1', '--yes'])).said).toContain('The history begins with change')
})
