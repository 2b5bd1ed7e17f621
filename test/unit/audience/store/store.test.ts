import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { levelStores, type StateStore } from '../../../../src/audience/store/store.ts'

let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-store-'))
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

async function open(): Promise<StateStore> {
  const opened = await levelStores.open(join(folder, 'unit-0'))
  if (!opened.ok) throw new Error(`the store is ${opened.why}`, { cause: opened.cause })
  return opened.store
}

test('what was written is read, in the order of the keys', async () => {
  const store = await open()
  await store.write([
    { type: 'put', key: 'b', value: 'ü' },
    { type: 'put', key: 'a', value: '1' },
    { type: 'put', key: 'c', value: '3' },
    { type: 'put_bytes', key: 'z', value: Buffer.from([0xff, 0x00]) },
  ])
  await store.write([{ type: 'del', key: 'c' }])
  expect(await store.getMany(['c', 'b', 'a'])).toEqual([undefined, 'ü', '1'])
  expect(await store.getBytes('z')).toEqual(Buffer.from([0xff, 0x00]))
  expect(await store.getBytes('y')).toBeUndefined()
  const reader = store.range({ from: 'a', to: 'c' })
  expect(await reader.next(1)).toEqual([['a', '1']])
  await store.write([{ type: 'put', key: 'bb', value: 'late' }])
  expect(await reader.next(10)).toEqual([['b', 'ü']])
  expect(await reader.next(10)).toEqual([])
  await reader.close()
  await store.close()
})

test('what was written is no longer in memory, whether or not the garbage collector has come', async () => {
  const megabytes = 100
  const storeFile = resolve(import.meta.dirname, '../../../../src/audience/store/store.ts')
  const writing = `
    import { levelStores } from ${JSON.stringify(storeFile)}
    const { store } = await levelStores.open(process.argv[1])
    const value = 'x'.repeat(1_000)
    const operations = Array.from({ length: 1_000 }, (_, number) => ({ type: 'put', key: 'k' + number, value }))
    const write = async (times) => {
      for (let time = 0; time < times; time++) await store.write(operations)
    }
    await write(10)
    const before = process.memoryUsage.rss()
    await write(${megabytes})
    console.log((process.memoryUsage.rss() - before) / 1024 ** 2)
    await store.close()
  `
  // The process has room for all short-lived objects, so that they aren't collected during the measurement.
  const args = [
    '--max-semi-space-size=256',
    '--min-semi-space-size=256',
    '--input-type=module',
    '-e',
    writing,
  ]
  const writer = spawn(process.execPath, [...args, join(folder, 'unit-0')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  expect(Number(await text(writer.stdout))).toBeLessThan(megabytes / 2)
})

test('a store that is in use is not taken for a broken one', async () => {
  const store = await open()
  expect(await levelStores.open(join(folder, 'unit-0'))).toMatchObject({ ok: false, why: 'locked' })
  await store.close()
})

test('a store whose files were damaged is broken, and can be made anew', async () => {
  const store = await open()
  await store.write([{ type: 'put', key: 'a', value: '1' }])
  await store.close()
  const location = join(folder, 'unit-0')
  for (const file of await readdir(location)) {
    if (file.startsWith('MANIFEST')) await writeFile(join(location, file), 'damaged')
  }
  expect(await levelStores.open(location)).toMatchObject({ ok: false, why: 'broken' })
  await levelStores.remove(location)
  const anew = await open()
  expect(await anew.getMany(['a'])).toEqual([undefined])
  await anew.close()
})

test('of a process that is killed all batches are there up to one, and nothing of the next', async () => {
  const module = resolve(import.meta.dirname, '../../../../src/audience/store/store.ts')
  const program = `
    import { levelStores } from ${JSON.stringify(module)}
    const { store } = await levelStores.open(${JSON.stringify(join(folder, 'unit-0'))})
    for (let round = 1; ; round++) {
      await store.write(Array.from({ length: 50 }, (_, key) => ({ type: 'put', key: 'k' + key, value: String(round) })))
      if (round % 10 === 0) console.log(round)
    }`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let written = 0
  for await (const chunk of child.stdout) {
    written = Number(String(chunk).trim().split('\n').at(-1))
    if (written >= 200) break
  }
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  const store = await open()
  const values = new Set(await store.getMany(Array.from({ length: 50 }, (_, key) => `k${key}`)))
  expect(values.size).toBe(1)
  expect(Number([...values][0])).toBeGreaterThanOrEqual(written)
  await store.close()
})
