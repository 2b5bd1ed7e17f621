import { execFile } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { runProgram } from '../../support/sluice-process.ts'
import { until } from '../../support/until.ts'
import { newIds } from '../scene.ts'
import { startUp } from '../up-process.ts'

/**
 * What a new user does with the catalog, from an empty `sluice up`: by commands, by curl, and back again.
 */

type Walk = {
  readonly receiver: CountingReceiver
  readonly folder: string
  /** Runs a command in the folder that has to succeed. Returns its output. */
  readonly run: (args: string, input?: string) => Promise<string>
  /** Runs a command that has to fail. Returns what it says. */
  readonly fails: (args: string, input?: string) => Promise<string>
  /** Calls the admin API with curl. */
  readonly curl: (
    path: string,
    options: readonly string[],
    body?: object,
  ) => Promise<{ readonly status: number; readonly text: string }>
  /** Sends a message to the first source, and returns its id. */
  readonly send: () => Promise<string>
}

async function begin(): Promise<Walk> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-by-hand-')))
  const receiver = await startCountingReceiver()
  const up = await startUp(folder)
  onTestFinished(async () => {
    await up.interrupt()
    await receiver.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  })
  const { PATH, HOME } = process.env
  const [, writeKey = ''] = /curl \S+ -u (\S+): /.exec(up.said) ?? []
  const [, admin = '', token = ''] =
    /(http:\S+)\/openapi\.json +with Authorization: Bearer (\S+)/.exec(up.said) ?? []
  const sluice = (args: string, input = '') =>
    runProgram(inject('program'), args.split(' '), { env: { PATH, HOME }, cwd: folder, input })
  return {
    receiver,
    folder,
    async run(args, input) {
      const { code, stdout, stderr } = await sluice(args, input)
      expect([args, code, stderr]).toEqual([args, 0, expect.any(String)])
      return stdout
    },
    async fails(args, input) {
      const { code, stderr } = await sluice(args, input)
      expect([args, code]).toEqual([args, 1])
      return stderr
    },
    async curl(path, options, body) {
      const data =
        body === undefined ? [] : ['-H', 'content-type: application/json', '-d', JSON.stringify(body)]
      const args = ['-sS', '-w', '\n%{http_code}', '-H', `authorization: Bearer ${token}`]
      const { stdout } = await promisify(execFile)('curl', [...args, ...options, ...data, `${admin}${path}`])
      const at = stdout.lastIndexOf('\n')
      return { status: Number(stdout.slice(at + 1)), text: stdout.slice(0, at) }
    },
    async send() {
      const [messageId = ''] = newIds(1)
      const answered = await fetch(`${up.origin}/v1/track`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
        body: JSON.stringify({ messageId, userId: 'u1', event: 'Hello' }),
      })
      expect(answered.status).toBe(200)
      return messageId
    },
  }
}

const byCommand = ['a0', 'a1', 'a2', 'a3', 'a4']
const byCurl = ['b0', 'b1', 'b2', 'b3', 'b4']
const isNew = ['-X', 'PUT', '-H', 'if-none-match: *']

async function makeTen({ receiver, run, fails, curl }: Walk): Promise<void> {
  for (const id of byCommand)
    expect(await run(`destinations create ${id} --url ${receiver.url(`/${id}`)} --source app`)).toContain(
      `destination/${id}: created`,
    )
  for (const id of byCurl) {
    const body = {
      sources: ['app'],
      sharedSecret: `first-secret-of-${id}`,
      signing: { standardWebhooks: true },
      hooks: [{ url: receiver.url(`/${id}`) }],
    }
    expect(await curl(`/v1/destinations/${id}`, isNew, body)).toMatchObject({ status: 200 })
  }
  // A bad one is refused alone.
  const bad = { sources: ['ap'], hooks: [{ url: 'https://example.com/' }] }
  const refused = await curl('/v1/destinations/bad', isNew, bad)
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('names the source \\"ap\\"')
  expect(await fails('destinations set bad -', stringify(bad))).toContain('names the source "ap"')
}

/** Waits until each of these has as many messages as it is said. */
async function untilDelivered({ receiver }: Walk, counts: Readonly<Record<string, number>>): Promise<void> {
  for (const [id, count] of Object.entries(counts))
    await until(`${id} has ${count}`, async () => (await receiver.count(`/${id}`)).delivered === count, {
      timeoutMs: 30_000,
    })
}

const all = (count: number) => Object.fromEntries([...byCommand, ...byCurl].map((id) => [id, count]))

/** Waits until the worker follows the last change. A change is in force within a second. */
async function untilInForce({ run, curl }: Walk): Promise<void> {
  const [latest = ''] = (await run('catalog history --limit 1 --json')).split('\n')
  const { revision } = Object(JSON.parse(latest))
  await until('the change is in force', async () =>
    (await curl('/v1/sources', [])).text.includes(`"catalogVersion":"r${String(revision)}"`),
  )
}

test('ten destinations are made by commands and by curl; one is rotated, one is paused and resumed, one is slowed down, a bad one is refused alone, and all of it is undone', async () => {
  const walk = await begin()
  const { run, fails, curl, receiver } = walk
  expect(await run('destinations list')).toContain('has no destinations yet')
  await makeTen(walk)
  await untilInForce(walk)
  expect((await run('destinations list')).split('\n').filter((line) => /^[ab]\d /.test(line))).toHaveLength(
    10,
  )
  await walk.send()
  await untilDelivered(walk, all(1))

  expect(await run('destinations rotate b0')).toMatch(/shown this once: whsec_\S+/)
  await run('destinations rotate b0 --end')
  await run('destinations pause a1')
  expect(await run('destinations set a2 --rate 20 --max-in-flight 8 --timeout 2s')).toMatch(
    /^destination\/a2: changed, version \d+\n {4}rateLimit: \(none\) → \{"perSecond":20\}\n {4}maxInFlight: \(none\) → 8\n {4}timeout: \(none\) → "2s"\n$/,
  )
  expect(await run('destinations set a2 --rate none')).toContain('rateLimit: {"perSecond":20} → (none)')
  expect(await fails('destinations set a2 --timeout 1h')).toContain('timeout')
  expect(await run('destinations get a2')).toMatch(/maxInFlight: 8\ntimeout: 2s/)
  await untilInForce(walk)
  await walk.send()
  await untilDelivered(walk, { ...all(2), a1: 1 })
  expect(await run('destinations list --state paused')).toMatch(/^a1 /m)
  await run('destinations resume a1')
  await untilDelivered(walk, { a1: 2 })

  const history = await run('catalog history --limit 100 --json')
  const changes = history
    .trim()
    .split('\n')
    .map((line) => Object(JSON.parse(line)))
  // Ten were made, and b0, a1 and a2 were changed twice each. The first change of all made the source.
  expect(changes).toHaveLength(17)
  const [oldest] = changes.slice(-1)
  expect(oldest.objects).toEqual([{ object: 'source/app', what: 'created' }])
  for (const { revision } of changes.slice(0, -1))
    expect(await run(`catalog undo ${String(revision)} --yes`)).toContain(String(revision))
  expect(await run('destinations list')).toContain('has no destinations yet')
  const gone = await curl('/v1/destinations/b0', [])
  expect(gone.status).toBe(404)
  // An undo is a change too: with the destination, its secret comes back.
  const [undoOfFirst] = (await run('catalog history destination/b0 --limit 1 --json')).split('\n')
  await run(`catalog undo ${String(Object(JSON.parse(undoOfFirst ?? '')).revision)} --yes`)
  const back = await curl('/v1/destinations/b0', [])
  expect(back.text).toContain('"sharedSecret":"${kept:')
  await untilInForce(walk)
  await walk.send()
  await untilDelivered(walk, { b0: 3, a0: 2 })
  expect((await receiver.count('/a1')).repeats).toBe(0)
}, 600_000)

const many = 5_000

function withoutSecrets(text: string): string {
  return text.replaceAll(/(?:sharedSecret|Authorization): .*/g, '').trim()
}

test('a file of 5,000 destinations is imported in one change, and its export is a fixed point without a secret', async () => {
  const { run, curl, folder } = await begin()
  const catalog = {
    sources: [{ id: 'app', writeKeys: ['wk_of_the_app'] }],
    destinations: Array.from({ length: many }, (_, index) => ({
      id: `d${String(index).padStart(4, '0')}`,
      sources: ['app'],
      labels: { tenant: `t${index % 50}` },
      sharedSecret: `s3cr3t-of-${index}`,
      hooks: [
        { url: `https://d${index}.example.com/hook`, headers: { Authorization: `Bearer s3cr3t-${index}` } },
      ],
    })),
  }
  writeFileSync(join(folder, 'all.yaml'), stringify(catalog))
  expect(await run('catalog import all.yaml --dry-run')).toContain('5,001 objects would change')
  expect(await run('catalog import all.yaml')).toContain('5,001 objects changed')
  const exported = await run('catalog export')
  expect(exported).not.toContain('s3cr3t')
  expect(exported.match(/sharedSecret: "?\$\{kept:/g)).toHaveLength(many)
  expect(await run('catalog import -', exported)).toContain('Nothing differs')
  expect(await run('catalog export')).toBe(exported)
  // Without what stands for secrets, the file and its export are the same.
  expect(withoutSecrets(exported)).toBe(withoutSecrets(stringify(catalog, { lineWidth: 0 })))
  await until('the API has all of them', async () => {
    const { text } = await curl('/v1/destinations?limit=1', [])
    return text.includes(`"total":${many}`)
  })
  const [change = ''] = (await run('catalog history --limit 1 --json')).split('\n')
  const { revision, count } = Object(JSON.parse(change))
  expect(count).toBe(many + 1)
  await run(`catalog undo ${String(revision)} --yes`)
  expect(await run('destinations list')).toContain('has no destinations yet')
}, 600_000)
