import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { freePorts } from '../../../src/development/free-ports.ts'
import { newIds, type Scene, setScene } from '../../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

let scene: Scene
let tokens: AdminTokens
let receiver: Receiver
let folder: string
let asking: Record<string, string>
const running: SluiceProcess[] = []

beforeAll(async () => {
  receiver = await startReceiver({ '/crm': answer(200), '/bad': answer(500), '/mine': answer(202) })
  tokens = await makeTokens()
  folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  const [port = 0] = await freePorts(1)
  const hookOf = (path: string) => [{ id: 'main', url: `${receiver.origin}${path}` }]
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'crm', sources: ['shop'], sharedSecret: 'only-sluice-has-this', hooks: hookOf('/crm') },
        { id: 'bad', sources: ['shop'], hooks: hookOf('/bad') },
      ],
    },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_ADMIN_PORT: String(port),
      SLUICE_INDEX_FOLDER: folder,
      SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1',
    },
  })
  asking = { SLUICE_ADMIN_URL: `http://127.0.0.1:${port}`, SLUICE_ADMIN_TOKEN: tokens.operate }
  running.push(
    ...(await Promise.all(
      ['worker', 'log serve', 'admin'].map((role) => startSluice(scene.variables, { role })),
    )),
  )
})

afterAll(async () => {
  await Promise.all(running.map((one) => one.kill()))
  scene.close()
  await receiver.stop()
  tokens.remove()
  rmSync(folder, { recursive: true, force: true })
})

type Listening = { readonly lines: string[]; readonly said: string[]; end(): Promise<unknown> }

function listen(...args: string[]): Listening {
  const env = { PATH: process.env['PATH'], ...asking }
  const child = spawn(process.execPath, [inject('program'), 'listen', ...args], { env, cwd: folder })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [lines, said]: [string[], string[]] = [[], []]
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  createInterface({ input: child.stderr }).on('line', (line) => said.push(line))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  return {
    lines,
    said,
    end() {
      child.kill('SIGINT')
      return ended
    },
  }
}

/** Sends messages until one is shown, because the log is followed from its end as it is then. */
async function untilFollowed({ lines }: Listening): Promise<void> {
  await until(
    'the log is followed',
    async () => {
      if (lines.length === 0) await scene.send('shop', newIds(1))
      return lines.length > 0
    },
    { everyMs: 500 },
  )
}

const requestsOf = (path: string, id: string) =>
  receiver.requestsTo(path).filter(({ body }) => String(body).includes(id))

test('a request is shown and forwarded as it was made, with a signature by a secret of its own', async () => {
  const [id = ''] = newIds(1)
  const forward = `${receiver.origin}/mine`
  const listening = listen('--destination', 'crm', '--forward', forward, '--secret', 'a-secret-of-mine')
  await until('it listens', () => listening.said.some((line) => line.includes('Forwarding to')))
  await untilFollowed(listening)
  await scene.send('shop', [id])
  const mine = await until('it is forwarded', () => requestsOf('/mine', id)[0])
  const [original] = requestsOf('/crm', id)
  expect(mine.body).toEqual(original?.body)
  const signature = createHmac('sha1', 'a-secret-of-mine').update(String(mine.body)).digest('hex')
  expect(mine.headers).toMatchObject({
    ...(original && named(original.headers)),
    'x-signature': signature,
  })
  await until('it says so', () => listening.lines.some((line) => line.includes('/mine status 202')))
  const line = await until('it is shown', () => listening.lines.find((one) => one.includes(id)))
  expect(line).toMatch(/→ crm 200 in [\d.]+ ms/)
  expect(await listening.end()).toBe(0)
  expect(listening.lines.join('\n')).not.toContain('only-sluice-has-this')
})

/** The headers that both requests have in common. */
function named(headers: Record<string, unknown>): object {
  const names = ['user-agent', 'content-type', 'accept', 'x-sluice-message-id', 'x-sluice-attempt']
  return Object.fromEntries(names.map((name) => [name, headers[name]]))
}

test('when the API is away it says so, and goes on where it was', async () => {
  const [before = '', during = ''] = newIds(2)
  const listening = listen('--source', 'shop', '--json')
  await until('it listens', () => listening.said.length > 0)
  await untilFollowed(listening)
  await scene.send('shop', [before])
  const seen = (id: string) =>
    listening.lines.filter((line) => JSON.parse(line).messageId === id).map((line) => JSON.parse(line))
  await until('both attempts are shown', () => seen(before).length === 2)
  const admin = running.pop()
  await admin?.terminate()
  await until('it says that it is interrupted', () =>
    listening.said.some((line) => line.startsWith('Interrupted: ')),
  )
  await scene.send('shop', [during])
  await until(
    'both were made',
    () => requestsOf('/crm', during).length + requestsOf('/bad', during).length === 2,
  )
  running.push(await startSluice(scene.variables, { role: 'admin' }))
  await until('it goes on', () => seen(during).length === 2)
  await until('it says so', () => listening.said.includes('Listening again.'))
  const answers = seen(during).map(({ destination, status }) => `${destination} ${status}`)
  expect(new Set(answers)).toEqual(new Set(['bad 500', 'crm 200']))
  expect(seen(before)).toHaveLength(2)
  expect(await listening.end()).toBe(0)
})

test('a token that may not do this is told, and nothing is tried again', async () => {
  const { code, stderr } = await runToEnd(['listen'], { ...asking, SLUICE_ADMIN_TOKEN: 'sluice_wrong' })
  expect([code, stderr]).toEqual([1, expect.stringContaining('answered 401')])
  const none = await runToEnd(['listen'], { SLUICE_ADMIN_URL: asking['SLUICE_ADMIN_URL'] ?? '' })
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('SLUICE_ADMIN_TOKEN')])
})

test('a sample goes to the URLs of a destination by the API, and the exit code says what came of it', async () => {
  const sent = await runToEnd(['trigger', 'audience-enter', '--to', 'crm'], asking)
  expect([sent.code, sent.stdout]).toEqual([
    0,
    expect.stringMatching(/crm got audience-enter .*\n.*status 200/),
  ])
  const [, id = ''] = /(sample-audience-enter-[\w-]+)/.exec(sent.stdout) ?? []
  expect(JSON.parse(String(requestsOf('/crm', id)[0]?.body)).traits).toEqual({ sample_audience: true })
  const refused = await runToEnd(['trigger', 'track', '--to', 'bad'], asking)
  expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('status 500')])
})

test('a sample of a source takes the whole way', async () => {
  const { stdout } = await runToEnd(['trigger', 'page', '--source', 'shop', '--json'], scene.variables)
  const { messageId } = JSON.parse(stdout)
  await until('it arrives', () => requestsOf('/crm', messageId).length > 0)
  expect((await runToEnd(['trigger', 'page'], asking)).code).toBe(2)
})

test.each([
  [['--destination', 'crn'], 'There is no destination "crn"'],
  [['--source', 'shp'], 'The catalog has no source "shp"'],
])('who listens with %j, which the catalog lacks, is told, and goes on', async (flags, expected) => {
  const listening = listen(...flags)
  const said = await until('it is told', () => listening.said.find((line) => line.includes(expected)))
  expect(said).toContain('Until there is one, nothing comes.')
  expect(await listening.end()).toBe(0)
})

test('who listens with what the catalog has is told nothing of it', async () => {
  const listening = listen('--destination', 'crm', '--source', 'shop')
  const [id = ''] = newIds(1)
  await until('it listens', () => listening.said.length > 0)
  await untilFollowed(listening)
  await scene.send('shop', [id])
  await until('it is shown', () => listening.lines.some((line) => line.includes(id)))
  expect(listening.said).toHaveLength(1)
  expect(await listening.end()).toBe(0)
})
