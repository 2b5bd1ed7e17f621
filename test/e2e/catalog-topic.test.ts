import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { createTopic, otherProgram, readAll } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runSluice, runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

/** Tests of real processes whose catalog is in its topic. */

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-e2e-catalog-topic-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function start(variables: Record<string, string>, role: string): Promise<SluiceProcess> {
  const one = await startSluice({ ...variables, SLUICE_STATE_FOLDER: newFolder() }, { role })
  onTestFinished(() => one.kill())
  return one
}

async function topicScene(origin: string): Promise<Scene> {
  const keys = join(newFolder(), 'keys')
  writeFileSync(keys, newKeyLine())
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['key-of-the-shop'] }],
      destinations: [
        { id: 'crm', sources: ['shop'], sharedSecret: '${CATALOG_CRM}', hooks: [{ url: `${origin}/crm` }] },
      ],
    },
    variables: {
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: keys,
      CATALOG_CRM: 'the-secret-of-crm',
    },
  })
  onTestFinished(() => scene.close())
  return scene
}

/** Runs a command that has to succeed, and returns its output. */
async function run(scene: Scene, args: readonly string[], input?: string): Promise<string> {
  return (await runSluice(args, scene.variables, input === undefined ? {} : { input })).stdout
}

test('destinations are made, paused, resumed and removed by commands while a worker and a gateway run', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await topicScene(receiver.origin)
  const worker = await start(scene.variables, 'worker')
  expect(worker.log.some(({ msg }) => msg.startsWith('the catalog has no destinations'))).toBe(true)
  const file = scene.catalog.path
  expect(await run(scene, ['catalog', 'import', file, '--dry-run'])).toContain('2 objects would change')
  expect(await run(scene, ['catalog', 'import', file])).toContain('+ destination/crm')
  expect(await run(scene, ['catalog', 'import', file])).toContain('Nothing differs')
  const gateway = await start(scene.variables, 'gateway')
  await until(
    'the worker has the catalog',
    async () => (await worker.metric('sluice_catalog_destinations')) === 1,
  )

  const answered = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('key-of-the-shop:')}` },
    body: JSON.stringify({ userId: 'u1', event: 'Bought' }),
  })
  expect(answered.status).toBe(200)
  const first = await until('the message arrives, signed', () => receiver.requestsTo('/crm')[0])
  expect(first?.headers['x-signature']).toMatch(/^[0-9a-f]{40}$/)

  await run(
    scene,
    ['destinations', 'set', 'erp', '-'],
    `sources: [shop]\nhooks: [{ url: '${receiver.origin}/erp' }]`,
  )
  await until(
    'the worker has the new one',
    async () => (await worker.metric('sluice_catalog_destinations')) === 2,
  )
  await run(scene, ['destinations', 'pause', 'erp', '--by', 'ann'])
  const paused = await until('the worker says so', () =>
    worker.log.find(
      ({ msg, by }) => msg === 'the catalog has changed' && Array.isArray(by) && by.includes('ann'),
    ),
  )
  expect(JSON.stringify(paused)).toContain('erp: on → paused')
  const ids = newIds(5)
  await scene.send('shop', ids)
  await until('crm gets them', () => receiver.requestsTo('/crm').length === 6)
  expect(receiver.requestsTo('/erp')).toHaveLength(0)
  expect(await run(scene, ['destinations', 'resume', 'erp'])).toContain('destination/erp: changed')
  await until('erp gets what waited', () => receiver.requestsTo('/erp').length === 5)

  const exported = await run(scene, ['catalog', 'export'])
  expect(exported).toMatch(/sharedSecret: "?\$\{kept:/)
  expect(exported).not.toContain('the-secret-of-crm')
  expect(await run(scene, ['catalog', 'import', '-'], exported)).toContain('Nothing differs')
  const topic = (await readAll(`${scene.prefix}catalog`)).map(({ value }) => String(value)).join('\n')
  expect(topic).not.toContain('the-secret-of-crm')

  const faulty = await runToEnd(['destinations', 'set', 'bad', '-'], scene.variables, {
    input: 'sources: [shopp]\nhooks: [{ url: https://example.com }]',
  })
  expect(faulty.code).toBe(1)
  expect(faulty.stderr).toContain('destination/bad: sources[0]: names the source "shopp"')
  await run(scene, ['destinations', 'rm', 'erp', '--yes'])
  await until(
    'the worker has one left',
    async () => (await worker.metric('sluice_catalog_destinations')) === 1,
  )
  expect(await worker.metric('sluice_catalog_refused')).toBe(0)
})

test('a topic that was made anew stops nothing: processes and restarts go on with the last good copy, until it is restored', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await topicScene(receiver.origin)
  await run(scene, ['catalog', 'import', scene.catalog.path])
  await run(scene, ['tokens', 'create', '--name', 'console', '--right', 'read', '--all'])
  const backup = join(newFolder(), 'backup.jsonl')
  expect(await run(scene, ['catalog', 'export', '--sealed', backup])).toContain('1 destination and 1 token')
  expect(readFileSync(backup, 'utf8')).not.toContain('the-secret-of-crm')
  const variables = { ...scene.variables, SLUICE_STATE_FOLDER: newFolder() }
  const gateway = await startSluice(variables, { role: 'gateway' })
  onTestFinished(() => gateway.kill())
  const topic = `${scene.prefix}catalog`
  await makeAnew(topic)
  await until('the gateway says so', () =>
    gateway.log.some(({ msg }) => msg.startsWith('the topic of the catalog is another one')),
  )
  expect(await gateway.metric('sluice_catalog_refused')).toBe(1)
  expect(await gateway.metric('sluice_catalog_topic_trouble', { kind: 'other_topic' })).toBe(1)
  expect(await track(gateway)).toBe(200)
  await gateway.terminate()

  const again = await startSluice(variables, { role: 'gateway' })
  onTestFinished(() => again.kill())
  const said = again.log.find(({ msg }) => msg.includes('the last good copy on this machine is in force'))
  expect(said).toMatchObject({ offset: expect.any(Number), topicId: expect.any(String) })
  expect(await again.metric('sluice_catalog_topic_trouble', { kind: 'copy' })).toBe(1)
  expect(await track(again)).toBe(200)
  // The copy on the disk is a backup too.
  const copied = await runSluice(['catalog', 'export', '--sealed', '-', '--copy'], variables)
  expect(copied.stdout.split('\n').length).toBe(readFileSync(backup, 'utf8').split('\n').length)

  // Somebody who doesn't know makes a destination in the new topic. Nobody uses it.
  const source = `sources: [{ id: shop }]\ndestinations: [{ id: new, sources: [shop], hooks: [{ url: '${receiver.origin}/new' }] }]`
  await runSluice(['apply', '-f', '-', '--yes'], scene.variables, { input: source })
  const refused = await runToEnd(['catalog', 'restore', backup, '--yes'], scene.variables)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(/2 objects changed after this export .*source\/shop, destination\/new/)
  expect(await again.metric('sluice_catalog_topic_trouble', { kind: 'copy' })).toBe(1)
  const preview = await run(scene, ['catalog', 'restore', backup, '--replace-newer', '--dry-run'])
  expect(preview).toMatch(
    /~ source\/shop[\s\S]*\+ destination\/crm[\s\S]*\+ token\/console[\s\S]*- destination\/new/,
  )
  await run(scene, ['catalog', 'restore', backup, '--replace-newer', '--yes', '--by', 'ann'])
  const twice = await run(scene, ['catalog', 'restore', backup, '--replace-newer', '--yes'])
  expect(twice).toContain('Nothing differs')
  await until('the gateway follows the topic again', () =>
    again.log.some(({ msg }) => msg === 'the topic of the catalog is followed again'),
  )
  expect(await again.metric('sluice_catalog_topic_trouble', { kind: 'copy' })).toBe(0)
  expect(await again.metric('sluice_catalog_refused')).toBe(0)
  expect(await track(again)).toBe(200)
  expect(await run(scene, ['tokens', 'list'])).toContain('console')

  // The topic was made with settings of the cluster.
  const worker = await start({ ...scene.variables, SLUICE_TOPICS_CHECK: 'warn' }, 'worker')
  const first = await until(
    'messages are signed with the restored secret',
    () => receiver.requestsTo('/crm')[0],
  )
  const expected = createHmac('sha1', 'the-secret-of-crm').update(first.body).digest('hex')
  expect(first.headers['x-signature']).toBe(expected)
  await run(scene, ['destinations', 'pause', 'crm'])
  await until('changes come as before', () =>
    worker.log.some(({ changes }) => JSON.stringify(changes)?.includes('paused')),
  )
})

test('a topic that was made anew is accepted although a clock was ahead, with the number that processes name', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await topicScene(receiver.origin)
  await run(scene, ['catalog', 'import', scene.catalog.path])
  const inAnHour = Math.floor(Date.now() / 1_000) + 3_600
  await run(scene, ['catalog', 'accept', '--yes', '--after', String(inAnHour)])
  const worker = await start({ ...scene.variables, SLUICE_TOPICS_CHECK: 'warn' }, 'worker')
  await makeAnew(`${scene.prefix}catalog`)
  await until('the worker says so', () =>
    worker.log.some(({ msg }) => msg.startsWith('the topic of the catalog is another one')),
  )
  // Its number is lower than what the worker has seen, because it is made of the present time.
  await run(scene, ['catalog', 'import', scene.catalog.path])
  const command = `sluice catalog accept --after ${inAnHour + 1}`
  await until('the status says what to do', async () => (await run(scene, ['status'])).includes(command))
  await run(scene, ['catalog', 'accept', '--yes', '--after', String(inAnHour + 1)])
  await until('the worker follows the topic again', () =>
    worker.log.some(({ msg }) => msg === 'the topic of the catalog is followed again'),
  )
  expect(await worker.metric('sluice_catalog_refused')).toBe(0)
})

test('a topic whose records Kafka deletes takes no changes until its cleanup policy is mended', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await topicScene(receiver.origin)
  await run(scene, ['catalog', 'import', scene.catalog.path])
  const topic = `${scene.prefix}catalog`
  for (const policy of ['delete', 'compact,delete']) {
    await setTopic(topic, 'cleanup.policy', policy)
    const refused = await runToEnd(['destinations', 'pause', 'crm'], scene.variables)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain(`has cleanup.policy=${policy} instead of compact`)
  }
  const gateway = await start(scene.variables, 'gateway')
  await until(
    'the gateway tells it',
    async () => (await gateway.metric('sluice_catalog_topic_trouble', { kind: 'cleanup_policy' })) === 1,
  )
  await setTopic(topic, 'cleanup.policy', 'compact')
  expect(await run(scene, ['destinations', 'pause', 'crm'])).toContain('destination/crm: changed')
})

test('a change that Kafka does not accept is answered as not made, and is not made later', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await topicScene(receiver.origin)
  await run(scene, ['catalog', 'import', scene.catalog.path])
  const topic = `${scene.prefix}catalog`
  const historyOf = async (): Promise<number> =>
    (await run(scene, ['catalog', 'history', '--json'])).trim().split('\n').length
  expect(await historyOf()).toBe(1)
  // Kafka refuses every write to the topic.
  await setTopic(topic, 'max.message.bytes', '50')
  const refused = await runToEnd(['destinations', 'pause', 'crm'], scene.variables)
  expect(refused.code).not.toBe(0)
  expect(refused.stdout).not.toContain('changed')
  await setTopic(topic, 'max.message.bytes', '1048588')
  expect(await run(scene, ['destinations', 'get', 'crm'])).not.toContain('paused')
  expect(await historyOf()).toBe(1)
  expect(await run(scene, ['destinations', 'pause', 'crm'])).toContain('destination/crm: changed')
  expect(await historyOf()).toBe(2)
})

async function track(gateway: SluiceProcess): Promise<number> {
  const { status } = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('key-of-the-shop:')}` },
    body: JSON.stringify({ userId: 'u1', event: 'Bought' }),
  })
  return status
}

async function makeAnew(topic: string): Promise<void> {
  await withAdmin(otherProgram(), (admin) => admin.deleteTopics({ topics: [topic] }))
  await createTopic(topic, { settings: { 'cleanup.policy': 'compact' } })
}

async function setTopic(topic: string, name: string, value: string): Promise<void> {
  // Settings that are not named get their defaults.
  const cleanup = { name: 'cleanup.policy', value: 'compact' }
  const configEntries = [...(name === cleanup.name ? [] : [cleanup]), { name, value }]
  await withAdmin(otherProgram(), async (admin) => {
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] })
    // A broker learns of it a moment after the controller has taken it.
    await until('the broker knows it', async () => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: 2, name: topic, configNames: [name] }],
      })
      return resources[0]?.configEntries[0]?.configValue === value
    })
  })
}
