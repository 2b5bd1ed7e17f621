import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  onTestFinished,
  test,
} from 'vitest'
import { otherProgram, produce } from '../support/kafka.ts'
import { blockOf, stateOf } from '../support/log-blocks.ts'
import { until } from '../support/until.ts'
import { type Ended, runToEnd, type SluiceProcess } from '../support/worker-process.ts'
import { type LogScene, setLogScene } from './log-scene.ts'
import { newIds } from './scene.ts'

const userKey = 'a key of more than sixteen characters'
/** The number of an order. It is so long that no time or id has it by chance. */
const order = 471_100_815_000

let scene: LogScene

const setLog = async () => {
  scene = await setLogScene({ SLUICE_ATTEMPTS_USER_KEY: userKey })
}

const log = (args: readonly string[], variables: Record<string, string> = {}): Promise<Ended> =>
  runToEnd(['log', ...args], { ...scene.variables, ...variables })

const saidBy = async (...args: string[]): Promise<string> => (await log(args)).stderr

describe('of a message of which the index has both deliveries', () => {
  const [id = ''] = newIds(1)
  let index: SluiceProcess

  beforeAll(async () => {
    await setLog()
    await scene.start('worker')
    index = await scene.start('log serve')
    await scene.send('shop', [id])
    await until('it is indexed', async () => (await index.metric('sluice_log_indexed_total')) >= 3)
  })
  afterAll(() => scene.end())

  test('find shows the life of a message and what it said; by the files, or by HTTP', async () => {
    const url = { SLUICE_INDEX_URL: `http://127.0.0.1:${index.queryPort}` }
    for (const variables of [{}, url]) {
      const { code, stdout } = await log(['find', id], variables)
      expect(code).toBe(0)
      expect(stdout).toContain(`Message ${id}: track of source shop`)
      expect(stdout).toContain(`"event":"Order Completed"`)
      expect(stdout).toMatch(/crm: delivered\n {2}\S+ {2}attempted {3}200 in [\d.]+ ms {2}main, try 1\n/)
      expect(stdout).toMatch(/bad: dead\n.*400 in .*\n.*dead {8}failed_for_good {2}try 1\n/)
    }
  })

  test('search finds by user, destination and failure, and says with its exit code that there is nothing', async () => {
    const json = async (...args: string[]) => {
      const { code, stdout } = await log(['search', '--json', ...args])
      const lines = stdout.split('\n').filter((line) => line !== '')
      return { code, ids: lines.map((line) => String(JSON.parse(line).messageId)) }
    }
    expect(await json('--user', `user-${id}`)).toEqual({ code: 0, ids: [id, id, id] })
    expect(await json('--destination', 'crm')).toEqual({ code: 0, ids: [id] })
    expect(await json('--failed')).toEqual({ code: 0, ids: [id, id] })
    expect(await json('--destination', 'nobody')).toEqual({ code: 3, ids: [] })
    expect((await log(['search', '--kind', 'lost'])).code).toBe(2)
    const table = await log(['search', '--destination', 'crm'])
    expect(table.stdout).toMatch(/^time .*\n\S+ +crm +attempted +200 in/)
  })

  test('a search that finds nothing says which of its ids the catalog lacks', async () => {
    expect(await saidBy('search', '--destination', 'cmr')).toContain(
      'The catalog has no destination "cmr": did you mean crm?',
    )
    expect(await saidBy('stats', '--source', 'shpo')).toContain(
      'The catalog has no source "shpo": did you mean shop?',
    )
    expect(await saidBy('search', '--destination', 'crm', '--status', '418')).toBe('')
  })

  test('a search by user says what to set where there is no key', async () => {
    const { code, stderr } = await log(['search', '--user', 'u1'], { SLUICE_ATTEMPTS_USER_KEY: '' })
    expect([code, stderr]).toEqual([1, expect.stringContaining('SLUICE_ATTEMPTS_USER_KEY')])
  })

  test('stats count by the minute', async () => {
    const { stdout } = await log(['stats', '--json'])
    const minutes = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
    const sum = (name: string) => minutes.reduce((total, minute) => total + Number(minute[name]), 0)
    expect([sum('succeeded'), sum('failed'), sum('dead')]).toEqual([1, 1, 1])
  })

  test('find says of a message that was never sent what its reason means, and what to correct', async () => {
    const [odd = ''] = newIds(1)
    await scene.send('odd', [odd])
    const found = await until('it is indexed', async () => {
      const { stdout } = await log(['find', odd])
      return stdout.includes('filter_failed') && stdout
    })
    expect(found).toMatch(/^odd: A condition of the destination.*sluice filter test/m)
    expect(found).toContain(
      `odd: it is a dead letter. To send it again: sluice replay dead-letters --destination odd --message-id ${odd}`,
    )
  })
})

describe('where a field of messages is indexed', () => {
  const ids = newIds(3)

  beforeAll(async () => {
    scene = await setLogScene({
      SLUICE_ATTEMPTS_USER_KEY: userKey,
      SLUICE_ATTEMPTS_INDEX: 'properties.orderId,properties.products.sku',
    })
    await scene.start('worker')
    const index = await scene.start('log serve')
    const [first = '', second = '', other = ''] = ids
    const sent = [orderText(first, order), orderText(second, order), orderText(other, order + 1)]
    await produce(
      `${scene.prefix}events`,
      sent.map((value) => ({ key: 'u1', value, headers: { 'source-id': 'shop' } })),
    )
    await until('it is indexed', async () => (await index.metric('sluice_log_indexed_total')) >= 9)
  })
  afterAll(() => scene.end())

  test('find says where an order is: what became of each of its messages', async () => {
    const { code, stdout } = await log(['find', String(order)])
    expect(code).toBe(0)
    const heads = stdout.split('\n').filter((line) => line.startsWith('Message '))
    expect(heads).toEqual(ids.slice(0, 2).map((id) => `Message ${id}: track of source shop`))
    expect(stdout).toContain('crm: delivered')
    expect(stdout).toContain('bad: dead')
  })

  test('search finds by the value, and neither the value nor its field is in the index', async () => {
    const { code, stdout } = await log([
      'search',
      '--value',
      String(order + 1),
      '--destination',
      'bad',
      '--json',
    ])
    const found = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).messageId]))
    expect([code, new Set(found)]).toEqual([0, new Set([ids[2]])])
    expect((await log(['search', '--value', String(order + 2)])).code).toBe(3)
    const files = readdirSync(scene.folder, { recursive: true, withFileTypes: true }).filter((file) =>
      file.isFile(),
    )
    expect(files.length).toBeGreaterThan(0)
    for (const file of files) {
      const bytes = readFileSync(join(file.parentPath, file.name))
      expect([file.name, bytes.includes(String(order)), bytes.includes('orderId')]).toEqual([
        file.name,
        false,
        false,
      ])
    }
  })

  test('without the key, a search says what to set, and find finds no value', async () => {
    const variables = { SLUICE_ATTEMPTS_USER_KEY: '', SLUICE_ATTEMPTS_INDEX: '' }
    const { code, stderr } = await log(['search', '--value', String(order)], variables)
    expect([code, stderr]).toEqual([1, expect.stringContaining('SLUICE_ATTEMPTS_USER_KEY')])
    expect((await log(['find', String(order)], variables)).code).toBe(3)
  })
})

describe('without a worker', () => {
  beforeEach(setLog)
  afterEach(() => scene.end())

  test('find says where Kafka no longer has the message', async () => {
    const origin = { originTopic: `${scene.prefix}events`, originPartition: 0, originOffset: 0 }
    const state = stateOf({ messageId: 'gone', ...origin })
    await produce(`${scene.prefix}attempts`, [{ key: '0', value: blockOf([state]), partition: 0 }])
    await produce(`${scene.prefix}events`, [{ key: 'k', value: '{}', partition: 0 }])
    const admin = otherProgram().admin()
    await admin.connect()
    // Without this call, the client knows nothing of the topic.
    await admin.fetchTopicOffsets(`${scene.prefix}events`)
    const partitions = [{ partition: 0, offset: '1' }]
    await admin.deleteTopicRecords({ topic: `${scene.prefix}events`, partitions })
    await admin.disconnect()
    const index = await scene.start('log serve')
    await until('it is indexed', async () => (await index.metric('sluice_log_indexed_total')) === 1)
    expect((await log(['find', 'gone'])).stdout).toContain('events/0/0: Kafka no longer has it')
  })

  test('tail follows the topic without an index, and ends with Ctrl-C', async () => {
    const args = [inject('program'), 'log', 'tail', '--failed', '--destination', 'bad', '--json']
    const child = spawn(process.execPath, args, { env: { PATH: process.env['PATH'], ...scene.variables } })
    onTestFinished(() => void child.kill('SIGKILL'))
    const lines: string[] = []
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
    const state = { destination: 'bad', verdict: 3, status: 400, isEnd: false }
    let count = 0
    await until('it follows', async () => {
      const states = [stateOf({ messageId: `m${count++}`, ...state }), stateOf({ messageId: 'fine' })]
      await produce(`${scene.prefix}attempts`, [{ key: '0', value: blockOf(states) }])
      return lines.length > 0
    })
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ destination: 'bad', kind: 'attempted', status: 400 })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGINT')
    expect(await ended).toBe(0)
  })

  test('tail says that the catalog lacks its destination, and goes on', async () => {
    const args = [inject('program'), 'log', 'tail', '--destination', 'bda']
    const child = spawn(process.execPath, args, { env: { PATH: process.env['PATH'], ...scene.variables } })
    onTestFinished(() => void child.kill('SIGKILL'))
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await until('it says so', () =>
      said.includes('has no destination "bda": did you mean bad? Until there is one, nothing comes.'),
    )
    expect(child.exitCode).toBe(null)
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGINT')
    expect(await ended).toBe(0)
  })

  test('scan finds messages by what they say, and says what it has read', async () => {
    const [id = '', other = ''] = newIds(2)
    await produce(`${scene.prefix}events`, [
      { key: 'u1', value: orderText(id, 4711), headers: { 'source-id': 'shop' } },
      { key: 'u1', value: orderText(other, 4712), headers: { 'source-id': 'shop' } },
    ])
    const { code, stdout, stderr } = await log(['scan', 'properties.orderId=4711', '--source', 'shop'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('2 of 2 messages were read; 1 found.')])
    expect(stdout).toMatch(new RegExp(`^\\S+  shop  track  ${id}\n  {"type":"track",.*}\n$`))
    expect((await log(['scan', 'orderId'])).code).toBe(2)
    const elsewhere = await log(['scan', 'properties.orderId=4711', '--source', 'shpo'])
    expect([elsewhere.code, elsewhere.stderr]).toEqual([3, expect.stringContaining('did you mean shop?')])
  })

  test('without an index the commands say how to get one', async () => {
    const { code, stderr } = await log(['find', 'm'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('run `sluice log serve`')])
  })
})

test.each(['bash', 'zsh', 'fish'])('there is a script by which %s completes', async (shell) => {
  const { code, stdout } = await runToEnd(['completion', shell], {})
  expect([code, stdout]).toEqual([0, expect.stringContaining('sluice')])
})

test('shells complete commands and flags', async () => {
  expect((await runToEnd(['complete', '--', 'log', 's'], {})).stdout).toContain('search\t')
  expect((await runToEnd(['complete', '--', 'log', 'search', '--des'], {})).stdout).toContain('--destination')
})

function orderText(messageId: string, orderId: number): string {
  return JSON.stringify({ type: 'track', userId: 'u1', event: 'Order', messageId, properties: { orderId } })
}
