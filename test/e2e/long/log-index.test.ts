import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LogQuery } from '../../../src/delivery-log/log-query.ts'
import { createQueryClient } from '../../../src/delivery-log/query-client.ts'
import { produce } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { until } from '../../support/until.ts'
import { runToEnd, type SluiceProcess } from '../../support/worker-process.ts'
import { type LogScene, setLogScene } from '../log-scene.ts'
import { newIds } from '../scene.ts'

const token = 'a token of sixteen or more'

let scene: LogScene

beforeEach(async () => {
  scene = await setLogScene({ SLUICE_INDEX_TOKEN: token })
})

afterEach(() => scene.end())

function ask({ queryPort }: SluiceProcess, given: string | undefined = token): LogQuery {
  return createQueryClient(`http://127.0.0.1:${queryPort}`, given)
}

const always = { fromMs: 0, toMs: Infinity }

/** Returns the message id of each row in the index, one for each row. */
async function idsIn(query: LogQuery): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const page = await query.search(always, { limit: 1_000, cursor })
    ids.push(...page.records.map(({ messageId }) => messageId))
    cursor = page.cursor
  } while (cursor !== undefined)
  return ids
}

test('what workers deliver is found a moment later', async () => {
  await scene.start('worker')
  const query = ask(await scene.start('log serve'))
  const [id = ''] = newIds(1)
  await scene.send('shop', [id])
  const found = await until('it is found', async () => {
    const records = await query.find(id)
    return records.length >= 3 ? records : undefined
  })
  expect(found.map(({ destination, kind, isEnd }) => `${destination} ${kind} ${isEnd}`).toSorted()).toEqual([
    'bad attempted false',
    'bad dead true',
    'crm attempted true',
  ])
  const { records } = await query.search({ ...always, onlyFailed: true }, { limit: 10 })
  expect(records.map(({ kind }) => kind).toSorted()).toEqual(['attempted', 'dead'])
  const status = await query.status()
  expect([status.rows, status.behindMs]).toEqual([3, 0])
})

test('nobody is answered without the token', async () => {
  const index = await scene.start('log serve')
  for (const wrong of [undefined, 'another token of sixteen']) {
    const asked = createQueryClient(`http://127.0.0.1:${index.queryPort}`, wrong).status()
    await expect(asked).rejects.toThrow('token is missing or wrong')
  }
})

test('without a token it listens on this machine alone', async () => {
  const variables = { ...scene.variables, SLUICE_INDEX_TOKEN: '', SLUICE_INDEX_HOST: '0.0.0.0' }
  const { code, stderr } = await runToEnd(['log', 'serve'], variables)
  expect([code, stderr]).toEqual([1, expect.stringContaining('set index.token (SLUICE_INDEX_TOKEN)')])
})

test('a second process that would write the same folder does not start', async () => {
  await scene.start('log serve')
  const { code, stderr } = await runToEnd(['log', 'serve'], scene.variables)
  expect([code, stderr]).toEqual([1, expect.stringContaining('is written by another process')])
})

test('killed at any time it has each record of the topic, and none twice', async () => {
  const ids: string[] = []
  const rounds = 4
  for (let round = 0; round < rounds; round++) {
    const index = await scene.start('log serve')
    const producing = (async () => {
      for (let block = 0; block < 40; block++) {
        const some = newIds(50)
        ids.push(...some)
        const states = some.map((messageId, at) => stateOf({ messageId, atMs: Date.now() - at * 100_000 }))
        await produce(`${scene.prefix}attempts`, [{ key: String(block), value: blockOf(states) }])
      }
    })()
    await until('some of it is indexed', async () => {
      return (await index.metric('sluice_log_indexed_total')) > round * 100
    })
    if (round < rounds - 1) await index.kill()
    await producing
  }
  const last = scene.running.at(-1)
  if (last === undefined) throw new Error('nothing runs')
  await until('all is indexed', async () => (await ask(last).status()).rows >= ids.length)
  expect((await idsIn(ask(last))).toSorted()).toEqual(ids.toSorted())
})

test('an index that is lost is made again from the topic', async () => {
  const ids = newIds(500)
  const value = blockOf(ids.map((messageId) => stateOf({ messageId })))
  await produce(`${scene.prefix}attempts`, [{ key: '0', value }])
  const first = await scene.start('log serve')
  await until('all is indexed', async () => (await ask(first).status()).rows === 500)
  await first.terminate()
  rmSync(scene.folder, { recursive: true, force: true })
  const second = await scene.start('log serve')
  await until('all is indexed', async () => (await ask(second).status()).rows === 500)
  expect((await idsIn(ask(second))).toSorted()).toEqual(ids.toSorted())
})

test('a restart goes on where it was', async () => {
  const first = await scene.start('log serve')
  await produce(`${scene.prefix}attempts`, [{ key: '0', value: blockOf([stateOf({ messageId: 'one' })]) }])
  await until('it is indexed', async () => (await ask(first).status()).rows === 1)
  expect((await first.terminate()).code).toBe(0)
  await produce(`${scene.prefix}attempts`, [{ key: '0', value: blockOf([stateOf({ messageId: 'two' })]) }])
  const second = await scene.start('log serve')
  await until('it is indexed', async () => (await ask(second).status()).rows === 2)
  // The row is in the file a moment before the metric counts it.
  await until('it is counted', async () => (await second.metric('sluice_log_indexed_total')) > 0)
  expect(await second.metric('sluice_log_indexed_total')).toBe(1)
})

test.each(['log serve', 'up'])(
  'while a file of the index can not be written, sluice %s goes on, says so, and indexes all of it later',
  async (role) => {
    const worker = role === 'up' ? undefined : await scene.start('worker')
    const index = await scene.start(role)
    const [first = ''] = newIds(1)
    await scene.send('shop', [first])
    await until('it is indexed', async () => (await ask(index).find(first)).length >= 3)
    const folder = join(scene.folder, `${scene.prefix}attempts`)
    const locks = readdirSync(folder)
      .filter((name) => name.endsWith('.sqlite'))
      .map((name) => new DatabaseSync(join(folder, name)))
    for (const lock of locks) lock.exec('BEGIN IMMEDIATE')
    const ids = newIds(20)
    await scene.send('shop', ids)
    await until('it says so', () =>
      index.log.some(({ msg }) => msg.includes('can not be written: trying again')),
    )
    const later = newIds(20)
    await scene.send('shop', later)
    await until('all is delivered', async () => {
      const delivering = worker ?? index
      return (await delivering.metric('sluice_deliveries_total', { verdict: 'delivered' })) >= 41
    })
    if (role === 'log serve') {
      const ready = await fetch(`http://127.0.0.1:${index.httpPort}/readyz`)
      expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('can not be written')])
    }
    for (const lock of locks) lock.close()
    await until('all is indexed', async () => (await ask(index).status()).rows === 3 * 41)
    expect(new Set(await idsIn(ask(index)))).toEqual(new Set([first, ...ids, ...later]))
    await until('it says so', () =>
      index.log.some(({ msg }) => msg === 'the delivery log is being indexed again'),
    )
    expect(index.isRunning).toBe(true)
  },
)
