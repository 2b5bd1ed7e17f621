import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeTokens } from '../support/admin.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, setScene } from './scene.ts'

/** Tests of real processes whose catalog file is cut off, or whose variables come from files. */

async function openReceiver(): Promise<Receiver> {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  return receiver
}

async function start(variables: Record<string, string>, role = 'worker'): Promise<SluiceProcess> {
  const one = await startSluice(variables, { role })
  onTestFinished(() => one.kill())
  return one
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-e2e-catalog-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const customers = Array.from({ length: 10 }, (_, index) => `customer-${index}`)

test('a catalog that was cut off is refused by name while processes run and when they start again, until it says so itself', async () => {
  const receiver = await openReceiver()
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['key-of-the-shop'] }],
      destinations: customers.map((id) => ({
        id,
        sources: ['shop'],
        hooks: [{ url: `${receiver.origin}/${id}` }],
      })),
    },
    variables: { SLUICE_STATE_FOLDER: newFolder() },
  })
  onTestFinished(() => scene.close())
  const { path } = scene.catalog
  const worker = await start(scene.variables)
  const gateway = await start({ ...scene.variables, SLUICE_STATE_FOLDER: newFolder() }, 'gateway')

  const whole = readFileSync(path, 'utf8')
  const half = whole.slice(0, whole.indexOf('  - id: customer-5'))
  writeFileSync(path, half)
  const refusal = await until('the worker refuses it', () =>
    worker.log.find(({ level, msg }) => level === 'error' && msg.startsWith('the catalog file has faults')),
  )
  expect(JSON.stringify(refusal)).toContain(
    'lacks 5 of the 10 destinations of the catalog in force: customer-5,',
  )
  expect(await worker.metric('sluice_catalog_destinations')).toBe(10)
  expect(await worker.metric('sluice_catalog_refused')).toBe(1)
  const ids = newIds(1)
  await scene.send('shop', ids)
  await until('each customer gets its message', () =>
    customers.every((id) => receiver.requestsTo(`/${id}`).length > 0),
  )

  writeFileSync(path, 'sources: []\ndestinations: []\n')
  await until('the gateway refuses a catalog without entries', () =>
    gateway.log.some((line) => JSON.stringify(line).includes('lacks 1 of the 1 sources')),
  )
  const answered = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('key-of-the-shop:')}` },
    body: JSON.stringify({ userId: 'u1', event: 'Bought' }),
  })
  expect(answered.status).toBe(200)

  writeFileSync(path, half)
  await worker.terminate()
  const again = await runToEnd(['worker'], scene.variables)
  expect(again.code).toBe(1)
  expect(again.stdout + again.stderr).toContain(
    'of the catalog that was last in force here: customer-5, customer-6,',
  )
  expect(again.stdout + again.stderr).toContain('write expect: { destinations: 5 } into it')

  writeFileSync(path, `expect: { destinations: 5 }\n${half}`)
  const renewed = await start(scene.variables)
  expect(await renewed.metric('sluice_catalog_destinations')).toBe(5)
  expect(renewed.log.find(({ msg }) => msg.includes('has changed since'))).toMatchObject({
    changes: { destinations: customers.slice(5).map((id) => `-${id}`) },
  })
  await until('the gateway takes it as well', () =>
    gateway.log.some(({ msg }) => msg === 'the catalog has changed'),
  )
})

test('an edit that no process can read hides from nobody which destinations fail, and is told by each process', async () => {
  const receiver = await startReceiver({ '/crm': answer(503) })
  onTestFinished(() => receiver.stop())
  const tokens = await makeTokens()
  onTestFinished(() => tokens.remove())
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: `${receiver.origin}/crm` }] }],
    },
    variables: { SLUICE_ADMIN_TOKENS_FILE: tokens.file },
  })
  onTestFinished(() => scene.close())
  const [, admin] = await Promise.all([start(scene.variables), start(scene.variables, 'admin')])
  await scene.send('shop', newIds(5))
  writeFileSync(scene.catalog.path, 'sources: [\n')

  const status = async (...args: string[]) => (await runToEnd(['status', ...args], scene.variables)).stdout
  const text = await until('the worker and the command tell it', async () => {
    const now = await status()
    return now.includes('has the present catalog') && now.includes('that these fail: crm.') ? now : undefined
  })
  expect(text).toMatch(/destinations +\?/)
  expect(JSON.parse(await status('--json'))).toMatchObject({ destinations: { total: null } })
  const told = await until('the admin API tells it', async () => {
    const response = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/status`, {
      headers: { authorization: `Bearer ${tokens.read}` },
    })
    const { unknown }: { unknown: readonly string[] } = JSON.parse(await response.text())
    return unknown.find((line) => line.startsWith('Whether the process that answers here'))
  })
  expect(told).toContain('and what it said before stays in force')
  const list = await runToEnd(['destinations', 'list'], scene.variables)
  expect(list).toMatchObject({ code: 1, stderr: expect.stringContaining('it has a fault') })
})

test('the URL of a hook comes from a file of variables, and a new one needs no restart and is never shown', async () => {
  const receiver = await openReceiver()
  const folder = newFolder()
  /** Moves to a new version of the folder, as the kubelet does with a Secret. */
  const mount = (version: string, value: string): void => {
    mkdirSync(join(folder, version))
    writeFileSync(join(folder, version, 'CATALOG_HOOK'), value)
    symlinkSync(version, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  mount('..one', `${receiver.origin}/planted-first-path\n`)
  symlinkSync('..data/CATALOG_HOOK', join(folder, 'CATALOG_HOOK'))
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: '${CATALOG_HOOK}' }] }],
    },
    variables: { SLUICE_CATALOG_VARIABLES_FOLDER: folder, SLUICE_LOG_LEVEL: 'trace' },
  })
  onTestFinished(() => scene.close())
  const worker = await start(scene.variables)
  await scene.send('shop', newIds(1))
  await until('it came to the first URL', () => receiver.requestsTo('/planted-first-path').length > 0)

  mount('..two', `${receiver.origin}/planted-second-path\n`)
  await until('the new URL is in force', () =>
    worker.log.some((line) => JSON.stringify(line['changes']) === '{"destinations":["crm: hooks"]}'),
  )
  await scene.send('shop', newIds(1))
  await until('it came to the second URL', () => receiver.requestsTo('/planted-second-path').length > 0)

  rmSync(join(folder, '..two', 'CATALOG_HOOK'))
  writeFileSync(scene.catalog.path, `# edited\n${readFileSync(scene.catalog.path, 'utf8')}`)
  await until('a variable that is gone is named', () =>
    worker.log.some((line) => JSON.stringify(line).includes('CATALOG_HOOK is missing or empty')),
  )
  const metrics = await worker.metrics()
  await worker.terminate()
  expect(JSON.stringify(worker.log) + worker.stderr + metrics).not.toContain('planted')
})

test('a gateway is not ready until its catalog has a source, so that a pod with an empty one replaces no other', async () => {
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: { SLUICE_STATE_FOLDER: newFolder() },
  })
  onTestFinished(() => scene.close())
  const gateway = await startSluice(scene.variables, { role: 'gateway', isUnready: true })
  onTestFinished(() => gateway.kill())
  const probe = () => fetch(`http://127.0.0.1:${gateway.httpPort}/readyz`)
  const refused = await until('it has started', async () => {
    const probed = await probe()
    const text = await probed.text()
    return probed.status === 503 && !text.includes('starting') && text
  })
  expect(refused).toContain('the catalog has no sources, so no write key is known')
  scene.catalog.rewrite({ sources: [{ id: 'shop', writeKeys: ['key-of-the-shop'] }], destinations: [] })
  await until('it is ready', async () => (await probe()).ok)
})
