import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runToEnd, startSluice } from '../support/worker-process.ts'
import { setScene } from './scene.ts'

/** Tests of destinations in a folder of small files: by the Job of `deploy/examples/gitops`, and as the catalog itself. */

const example = resolve(import.meta.dirname, '../../deploy/examples/gitops')
const mounted = '/etc/sluice/destinations'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-e2e-gitops-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A folder as the kubelet mounts a ConfigMap. `edit`: changes the files of the next version. */
function mountedFolder(from?: string) {
  const folder = newFolder()
  let version = 0
  return {
    folder,
    edit(change: (files: string) => void): void {
      const next = `..v${++version}`
      const present = join(folder, '..data')
      mkdirSync(join(folder, next))
      if (version > 1) cpSync(`${present}/`, join(folder, next), { recursive: true })
      else if (from !== undefined) cpSync(from, join(folder, next), { recursive: true })
      change(join(folder, next))
      symlinkSync(next, `${present}_tmp`)
      renameSync(`${present}_tmp`, present)
      const names = readdirSync(join(folder, next))
      for (const name of readdirSync(folder)) if (!name.startsWith('..')) rmSync(join(folder, name))
      for (const name of names) symlinkSync(join('..data', name), join(folder, name))
    },
  }
}

test('the Job of the example makes what Git has, leaves what others made, and removes what is gone from Git', async () => {
  const keys = join(newFolder(), 'keys')
  writeFileSync(keys, newKeyLine())
  const job = parse(readFileSync(join(example, 'apply-job.yaml'), 'utf8'))
  const [container] = job.spec.template.spec.containers
  const env: readonly { readonly name: string; readonly value: string }[] = container.env
  // The brokers and the keys are others here.
  const placed = new Set(['SLUICE_KAFKA_BROKERS', 'SLUICE_CATALOG_KEYS_FILE'])
  const own = env.filter(({ name }) => !placed.has(name)).map(({ name, value }) => [name, value])
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: {
      ...Object.fromEntries(own),
      SLUICE_CATALOG_KEYS_FILE: keys,
      CATALOG_CRM_SECRET: 'from-the-secret',
    },
  })
  onTestFinished(() => scene.close())
  const git = mountedFolder(join(example, 'destinations'))
  git.edit(() => undefined)
  const args: readonly string[] = container.args
  const runJob = () =>
    runToEnd(
      args.map((arg) => (arg === mounted ? git.folder : arg)),
      scene.variables,
    )
  const first = await runJob()
  expect(first.stderr).toBe('')
  for (const id of ['source/shop', 'destination/crm', 'destination/erp'])
    expect(first.stdout).toContain(`+ ${id}`)
  expect((await runJob()).stdout).toContain('Nothing differs.')

  const byHand = 'id: by-hand\nsources: [shop]\nhooks: [{ url: https://example.com/ }]\n'
  const made = await runToEnd(['apply', '-f', '-', '--yes'], scene.variables, { input: byHand })
  expect(made.code).toBe(0)
  git.edit((files) => {
    rmSync(join(files, 'erp.yaml'))
    const crm = readFileSync(join(files, 'crm.yaml'), 'utf8')
    writeFileSync(join(files, 'crm.yaml'), `${crm}state: paused\n`)
  })
  const second = await runJob()
  expect(second).toMatchObject({ code: 0, stdout: expect.stringContaining('- destination/erp') })
  const listed = await runToEnd(['destinations', 'list', '--json'], scene.variables)
  expect(listed.stdout).toContain('by-hand')
  expect(listed.stdout).not.toContain('erp')

  git.edit((files) =>
    writeFileSync(join(files, 'bad.yaml'), byHand.replace('https:', 'ftp:').replace('by-hand', 'bad')),
  )
  const faulty = await runJob()
  expect(faulty.code).toBe(1)
  expect(faulty.stderr).toContain('bad.yaml: destination/bad: hooks[0].url')
  expect((await runToEnd(['destinations', 'list'], scene.variables)).stdout).not.toContain('bad')
})

test('a worker whose catalog is a folder goes on with all files but the faulty one, and a restart keeps its messages', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const files = mountedFolder()
  const destination = (id: string, more = ''): string =>
    `id: ${id}\nsources: [shop]\nhooks: [{ url: "${receiver.origin}/${id}" }]\n${more}`
  files.edit((to) => {
    writeFileSync(join(to, 'sources.yaml'), 'sources: [{ id: shop }]\n')
    for (const id of ['crm', 'erp']) writeFileSync(join(to, `${id}.yaml`), destination(id))
  })
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: { SLUICE_CATALOG_FILE: files.folder },
  })
  onTestFinished(() => scene.close())
  const worker = await startSluice(scene.variables, { role: 'worker' })
  onTestFinished(() => worker.kill())
  const bodies = (id: string): number => receiver.requestsTo(`/${id}`).length
  await scene.send('shop', ['one'])
  await until('both have it', () => bodies('crm') === 1 && bodies('erp') === 1)

  files.edit((to) => {
    writeFileSync(join(to, 'crm.yaml'), destination('crm', 'rateLimit: fast\n'))
    writeFileSync(join(to, 'new.yaml'), destination('new'))
  })
  await until('the fault is told', async () => (await worker.metric('sluice_catalog_refused')) === 1)
  expect(await worker.metric('sluice_catalog_destinations')).toBe(3)
  const status = async (): Promise<string> => (await runToEnd(['status'], scene.variables)).stdout
  const told = await until('the status names the faulty file', async () => {
    const text = await status()
    return text.includes('Whether what') && text.includes('has the present catalog') ? text : undefined
  })
  expect(told.match(/crm\.yaml:4:\d+: crm: rateLimit: .+;/g)).toHaveLength(2)
  await scene.send('shop', ['two'])
  await until('all have it', () => bodies('crm') === 2 && bodies('erp') === 2 && bodies('new') === 1)

  await worker.terminate()
  const again = await startSluice(scene.variables, { role: 'worker' })
  onTestFinished(() => again.kill())
  expect(await again.metric('sluice_catalog_refused')).toBe(1)
  await scene.send('shop', ['three'])
  await until('the others have it', () => bodies('erp') === 3 && bodies('new') === 2)
  expect(bodies('crm')).toBe(2)
  files.edit((to) => writeFileSync(join(to, 'crm.yaml'), destination('crm')))
  await until('what waited arrives once the file is mended', () => bodies('crm') === 3)
  expect(await again.metric('sluice_catalog_refused')).toBe(0)
  await until('the status says nothing of it any more', async () => !(await status()).includes('crm.yaml'))
})
