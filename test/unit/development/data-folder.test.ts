import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { newClusterId, openDataFolder, runtimeOfFolder } from '../../../src/development/data-folder.ts'
import type { ClusterPlan } from '../../../src/development/running-kafka.ts'

let dataDir = ''

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
})

afterEach(() => rm(dataDir, { recursive: true, force: true }))

const plan = (changes: Partial<ClusterPlan> = {}): ClusterPlan => ({
  count: 1,
  heapMb: 256,
  dataDir,
  port: undefined,
  report: () => {},
  ...changes,
})

test('a cluster id is 16 bytes in base64 without a leading dash', () => {
  for (let runs = 0; runs < 1_000; runs++) expect(newClusterId()).toMatch(/^[\w][\w-]{21}$/)
})

test('a kept folder keeps its cluster id and its way', async () => {
  expect(await runtimeOfFolder(dataDir)).toBeUndefined()
  const first = await openDataFolder(plan(), 'java')
  await first.close()
  expect((await openDataFolder(plan(), 'java')).clusterId).toBe(first.clusterId)
  expect(await runtimeOfFolder(dataDir)).toBe('java')
})

test('a temporary folder is removed when it is closed', async () => {
  const folder = await openDataFolder(plan({ dataDir: undefined }), 'java')
  expect((await stat(folder.path)).isDirectory()).toBe(true)
  await folder.close()
  await expect(stat(folder.path)).rejects.toThrow('ENOENT')
})

test('a record that something else wrote is refused', async () => {
  await writeFile(join(dataDir, 'cluster.json'), '{"clusterId":1}')
  await expect(openDataFolder(plan(), 'java')).rejects.toThrow('is not what was written there')
})
