import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { createTopic, readAll } from '../support/kafka.ts'
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
}, 120_000)

test('a topic that was made anew changes nothing while processes run, is told, and stops their next start', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await topicScene(receiver.origin)
  await run(scene, ['catalog', 'import', scene.catalog.path])
  const exported = await run(scene, ['catalog', 'export'])
  const state = newFolder()
  const variables = { ...scene.variables, SLUICE_STATE_FOLDER: state }
  const gateway = await startSluice(variables, { role: 'gateway' })
  onTestFinished(() => gateway.kill())
  const { withAdmin } = await import('../../src/kafka/cluster/with-admin.ts')
  const { otherProgram } = await import('../support/kafka.ts')
  const topic = `${scene.prefix}catalog`
  await withAdmin(otherProgram(), (admin) => admin.deleteTopics({ topics: [topic] }))
  await createTopic(topic, { settings: { 'cleanup.policy': 'compact' } })
  await until('the gateway says so', () =>
    gateway.log.some(({ msg }) => msg.startsWith('the topic of the catalog is another one')),
  )
  expect(await gateway.metric('sluice_catalog_refused')).toBe(1)
  const answered = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('key-of-the-shop:')}` },
    body: JSON.stringify({ userId: 'u1', event: 'Bought' }),
  })
  expect(answered.status).toBe(200)
  await gateway.terminate()
  const again = await runToEnd(['gateway'], variables)
  expect(again.code).toBe(1)
  expect(again.stderr).toMatch(/ends with change 0, and this machine has seen change \d+/)
  // Secrets aren't in an export, so they are written into it.
  const restored = exported.replace(/sharedSecret:.*/, 'sharedSecret: ${CATALOG_CRM}')
  expect(await run(scene, ['catalog', 'import', '-'], restored)).toContain('+ destination/crm')
  const restarted = await startSluice(variables, { role: 'gateway' })
  onTestFinished(() => restarted.kill())
  expect(await restarted.metric('sluice_catalog_refused')).toBe(0)
}, 120_000)
