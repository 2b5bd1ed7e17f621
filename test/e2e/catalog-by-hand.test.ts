import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { type Ended, runProgram } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { startUp, type Up } from './up-process.ts'

/**
 * What a new user does in an empty folder: by command and over HTTP, as docs/catalog-topic.md says. The tests
 * share an installation, in this order.
 */

let folder: string
let receiver: CountingReceiver
let up: Up
let admin: string
let token: string
let writeKey: string

beforeAll(async () => {
  receiver = await startCountingReceiver()
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-by-hand-')))
  up = await startUp(folder)
  const { said } = up
  ;[, writeKey = ''] = /curl \S+ -u (\S+): /.exec(said) ?? []
  ;[, admin = '', token = ''] = /(http:\S+)\/openapi\.json +with Authorization: Bearer (\S+)/.exec(said) ?? []
})

afterAll(async () => {
  await up?.interrupt()
  await receiver?.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

/** Runs a command in the folder, without any setting. */
function sluice(args: readonly string[], input = ''): Promise<Ended> {
  const { PATH, HOME } = process.env
  return runProgram(inject('program'), args, { env: { PATH, HOME }, cwd: folder, input })
}

/** Runs a command that has to succeed, and returns its output. */
async function done(args: readonly string[], input = ''): Promise<string> {
  const { code, stdout, stderr } = await sluice(args, input)
  expect(stderr.replace(/^.*ExperimentalWarning.*$/m, '')).toBe('')
  expect(code).toBe(0)
  return stdout
}

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${admin}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, etag: response.headers.get('etag') ?? '', body: JSON.parse(text || '{}') }
}

const ofCommands = ['one', 'two', 'three', 'four', 'five']
const ofCalls = ['six', 'seven', 'eight', 'nine', 'ten']

function hookOf(id: string) {
  return [{ url: receiver.url(`/${id}`), headers: { 'X-Team': `team of ${id}` } }]
}

async function send(messageId: string): Promise<void> {
  const response = await fetch(`${up.origin}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
    body: JSON.stringify({ messageId, userId: 'u1', event: 'Hello' }),
  })
  expect(response.status).toBe(200)
}

async function arrived(id: string): Promise<number> {
  return (await receiver.count(`/${id}`)).delivered
}

/** The revisions of all changes, newest first. */
async function revisions(): Promise<readonly string[]> {
  const listed = await done(['catalog', 'history', '--limit', '200', '--json'])
  return listed
    .trim()
    .split('\n')
    .map((line) => String(JSON.parse(line).revision))
}

let atFirst: string

test('ten destinations are made by command and over HTTP, and all of them get the next message', async () => {
  atFirst = await done(['catalog', 'export'])
  for (const id of ofCommands) {
    const made = await done(
      ['destinations', 'create', id, '-'],
      JSON.stringify({ sources: ['app'], hooks: hookOf(id) }),
    )
    expect(made).toMatch(new RegExp(`^destination/${id}: created, version \\d+\\n$`))
  }
  for (const id of ofCalls) {
    const given = { sources: ['app'], sharedSecret: `secret of ${id}`, hooks: hookOf(id) }
    const path = `/v1/destinations/${id}`
    expect((await ask('PUT', path, given)).status).toBe(428)
    expect((await ask('PUT', path, given, { 'if-none-match': '*' })).status).toBe(200)
    expect((await ask('PUT', path, given, { 'if-none-match': '*' })).status).toBe(412)
  }
  await until('all ten are in force', async () => {
    const { body } = await ask('GET', '/v1/destinations?limit=100')
    return body.total === 10
  })
  await send('to-all')
  for (const id of [...ofCommands, ...ofCalls])
    await until(`${id} has it`, async () => (await arrived(id)) === 1)
})

test('a bad destination is refused alone, by command and over HTTP, with the field', async () => {
  const bad = { sources: ['app'], hooks: [{ url: 'ftp://example.com' }] }
  const command = await sluice(['destinations', 'create', 'bad', '-'], JSON.stringify(bad))
  expect(command).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('destination/bad: hooks[0].url'),
  })
  const call = await ask('PUT', '/v1/destinations/bad', bad, { 'if-none-match': '*' })
  expect(call.status).toBe(422)
  expect(JSON.stringify(call.body)).toContain('hooks[0].url')
  expect(await done(['destinations', 'list'])).not.toContain('bad')
})

test('one is paused and resumed by command, another one by a patch with its version, and no message is lost', async () => {
  expect(await done(['destinations', 'pause', 'one'])).toContain('destination/one: changed')
  const seen = await ask('GET', '/v1/destinations/six')
  const pause = () => ask('PATCH', '/v1/destinations/six', { state: 'paused' }, { 'if-match': seen.etag })
  expect((await pause()).status).toBe(200)
  const late = await pause()
  expect(late.status).toBe(412)
  const paused = async (): Promise<boolean> => {
    const { body } = await ask('GET', '/v1/destinations?state=paused')
    return body.total === 2
  }
  await until('both are paused', paused)
  await send('while-paused')
  await until('the others have it', async () => (await arrived('two')) === 2)
  expect([await arrived('one'), await arrived('six')]).toEqual([1, 1])
  await done(['destinations', 'resume', 'one'])
  const { etag } = await ask('GET', '/v1/destinations/six')
  expect((await ask('PATCH', '/v1/destinations/six', { state: 'on' }, { 'if-match': etag })).status).toBe(200)
  for (const id of ['one', 'six']) await until(`${id} has what waited`, async () => (await arrived(id)) === 2)
})

test('a secret is made and replaced, is shown once, and what GET gave is put without losing it', async () => {
  const first = await done(['destinations', 'rotate', 'one'])
  expect(first).toMatch(/shown this once: \S{20,}\n/)
  const called = await ask('POST', '/v1/destinations/six/rotate', { oldSecretEndsAt: '2099-01-01T00:00:00Z' })
  expect(called).toMatchObject({ status: 200, body: { state: 'both', secret: expect.any(String) } })
  const { body, etag } = await ask('GET', '/v1/destinations/six')
  expect(JSON.stringify(body)).not.toContain(called.body.secret)
  expect(body.destination.nextSharedSecret).toMatch(/^\$\{kept:20/)
  const put = await ask('PUT', '/v1/destinations/six', body.destination, { 'if-match': etag })
  expect(put).toMatchObject({ status: 200, etag })
  expect((await ask('POST', '/v1/destinations/six/rotate/end')).body.state).toBe('ended')
})

test('all of it is undone by the history, the newest change first, and comes back by undoing these over HTTP', async () => {
  const made = await revisions()
  const kept = await done(['catalog', 'export'])
  // The last change is the first source, which `sluice up` has made.
  for (const revision of made.slice(0, -1))
    expect(await done(['catalog', 'undo', revision, '--yes'])).toContain(`undoes ${revision}`)
  expect(await done(['catalog', 'export'])).toBe(atFirst)
  const undos = (await revisions()).slice(0, made.length - 1)
  for (const revision of undos)
    expect((await ask('POST', `/v1/catalog/history/${revision}/undo`)).status).toBe(200)
  // The times at which secrets were set are the same too.
  expect(await done(['catalog', 'export'])).toBe(kept)
})

test('a file of 5,000 destinations is imported, and its export is a fixed point without secrets', async () => {
  const file = join(folder, 'many.json')
  const destinations = Array.from({ length: 5_000 }, (_, index) => ({
    id: `d${index}`,
    sources: ['app'],
    sharedSecret: `planted-${index}`,
    hooks: [{ url: `https://d${index}.example.com/planted-path` }],
  }))
  const { sources } = JSON.parse(await done(['catalog', 'export', '--json']))
  writeFileSync(file, JSON.stringify({ sources, destinations, expect: { destinations: 5_000 } }))
  expect(await done(['catalog', 'import', file])).toContain('objects changed')
  const exported = await done(['catalog', 'export'])
  expect(exported).not.toMatch(/planted-\d/)
  writeFileSync(join(folder, 'exported.yaml'), exported)
  expect(await done(['catalog', 'diff', 'exported.yaml'])).toBe('')
  expect(await done(['catalog', 'import', 'exported.yaml'])).toBe('Nothing differs from exported.yaml.\n')
  expect(await done(['catalog', 'export'])).toBe(exported)
  const [imported = ''] = await revisions()
  expect(await done(['catalog', 'undo', imported, '--yes'])).toContain(`undoes ${imported}`)
  const { body } = await ask('GET', '/v1/destinations/one')
  expect(body.destination.sharedSecret).toMatch(/^\$\{kept:/)
})
