import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

/**
 * What an operator sees at night: which destinations fail, and why. All tests share a deployment, in this
 * order.
 */

/** A broker that only this file uses, because the last test suspends it. */
let kafka: RunningKafka
let receiver: Receiver
let scene: Scene
let tokens: AdminTokens
let worker: SluiceProcess
let admin: SluiceProcess
let isMended = false

const failing = newIds(30)
/** So many that some wait during all of these tests, on a slow machine too. */
const slow = newIds(600)
const held = newIds(4)

beforeAll(async () => {
  receiver = await startReceiver({
    '/down': (request, response, nth) => answer(isMended ? 200 : 503)(request, response, nth),
    '/slow': (_request, response) => void setTimeout(() => response.writeHead(200).end(), 1_000),
    '/fine': answer(200),
  })
  tokens = await makeTokens()
  kafka = await startKafka({ brokers: [], ways: ['java'] })
  const hookOf = (path: string) => [{ id: 'main', url: `${receiver.origin}${path}` }]
  scene = await setScene({
    brokers: kafka.brokers,
    catalog: {
      sources: ['shop', 'till', 'web', 'app'].map((id) => ({ id })),
      destinations: [
        { id: 'a-fine', sources: ['app'], hooks: hookOf('/fine') },
        { id: 'b-held', sources: ['shop'], hooks: hookOf('/fine'), state: 'paused' },
        { id: 'c-slow', sources: ['web'], hooks: hookOf('/slow'), maxInFlight: 1 },
        { id: 'd-down', name: 'Acme', labels: { tenant: 'acme' }, sources: ['till'], hooks: hookOf('/down') },
      ],
    },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_RETRY_LADDER: '10m',
      SLUICE_RETRY_THEN: '10m',
    },
  })
  worker = await startSluice(scene.variables)
  admin = await startSluice(scene.variables, { role: 'admin' })
  await scene.send('app', newIds(3))
  await scene.send('shop', held)
  await scene.send('web', slow)
  await scene.send('till', failing)
})

afterAll(async () => {
  await Promise.all([worker?.kill(), admin?.kill()])
  await receiver?.stop()
  tokens?.remove()
  scene?.close()
  await kafka?.stop()
})

type Attention = { readonly destination: string; readonly condition: string; readonly why: string }
type Shown = Readonly<Record<string, unknown>> & {
  readonly asOf: string
  readonly attention: readonly Attention[]
  readonly unknown: readonly string[]
  readonly workers: readonly Readonly<Record<string, unknown>>[]
}

async function run(...args: readonly string[]): Promise<string> {
  return (await runSluice(args, scene.variables)).stdout
}

/** Runs a command until its output is as expected: a worker may tell late, and each command reads anew what it tells. */
function untilSaid(expected: RegExp, ...args: readonly string[]): Promise<string> {
  return until(`sluice ${args.join(' ')} says ${expected}`, async () => {
    const said = await run(...args)
    return expected.test(said) ? said : undefined
  })
}

async function ask(path: string): Promise<Shown & { readonly destinations: readonly { id: string }[] }> {
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
    headers: { authorization: `Bearer ${tokens.read}` },
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** Returns the status if it tells all that there is to tell. */
function ifWhole(now: Shown): Shown | undefined {
  const isTried = now.attention.some(({ why }) => why.includes('next try'))
  return now.attention.length === 3 && now.unknown.length === 0 && isTried ? now : undefined
}

async function worksAgain(): Promise<boolean> {
  const { attention } = await ask('/v1/status')
  return attention.every(({ destination }) => destination !== 'd-down')
}

test('the status names the failing destination first, then the slow one and the paused one, each with the reason', async () => {
  const told = await until('all is told', async () => ifWhole(await ask('/v1/status')))
  // On a busy machine, a worker may tell late. Then the status says of a moment that something is unknown.
  const status = await until('the command tells all', async () =>
    ifWhole(JSON.parse(await run('status', '--json'))),
  )
  expect(Object.keys(status)).toEqual(Object.keys(told))
  const { host } = new URL(receiver.origin)
  expect(status.attention).toMatchObject([
    { destination: 'd-down', name: 'Acme', condition: 'failing', next: 'sluice destinations status d-down' },
    { destination: 'c-slow', condition: 'paced' },
    { destination: 'b-held', condition: 'paused' },
  ])
  const [down, paced, paused] = status.attention.map(({ why }) => why)
  expect(down).toMatch(new RegExp(`^503 from ${host} for \\d+ (s|min).*, next try in \\d+ (s|min)$`))
  expect(paced).toMatch(/ \d+ wait, oldest \d+ (s|min)/)
  expect(paused).toMatch(/^paused in the catalog, 4 wait, oldest \d+ (s|min)$/)
  expect(status).toMatchObject({ destinations: { total: 4, failing: 1, paced: 1, paused: 1, healthy: 1 } })
  expect(status.workers[0]).toMatchObject({ version: expect.stringMatching(/^\d/) })
  const text = await untilSaid(/destinations +4: 1 failing, 1 paced, 1 paused, 1 healthy/, 'status')
  expect(text).toMatch(/^Sluice, as of 20\S+Z\n/)
  expect(text).toMatch(/\nd-down +failing +20\S+Z +503 from .* sluice destinations status d-down\n/)
})

test('one destination says which URL fails, since when and with what answers, and lists find it by its condition', async () => {
  const text = await untilSaid(
    /URL main +http:\/\/127\.0\.0\.1:\d+ +fails since 20\S+Z .*status 503 × \d+; breaker/,
    'destinations',
    'status',
    'd-down',
  )
  expect(text).toContain('sluice log search --destination d-down --failed')
  await untilSaid(/d-down +on +failing/, 'destinations', 'list', '--state', 'failing')
  const worst = ['destinations', 'list', '--worst', '--limit', '2', '--search', '-']
  await untilSaid(/\nd-down .*\nc-slow .*\nand 2 more\n/, ...worst)
})

test('the admin API says the same, in parts of any size', async () => {
  const { attention } = await ask('/v1/status')
  expect(attention.map(({ destination }) => destination)).toEqual(['d-down', 'c-slow', 'b-held'])
  expect(await ask('/v1/destinations?state=failing')).toMatchObject({
    total: 1,
    destinations: [{ id: 'd-down', health: { condition: 'failing' }, hooks: [{ failing: {} }] }],
  })
  const ids: string[] = []
  let cursor: unknown = ''
  do {
    const more = cursor === '' ? '' : `&cursor=${String(cursor)}`
    const part = await ask(`/v1/destinations?sort=worst&limit=3${more}`)
    ids.push(...part.destinations.map(({ id }) => id))
    cursor = part['cursor']
  } while (cursor !== null)
  expect(ids).toEqual(['d-down', 'c-slow', 'b-held', 'a-fine'])
  const health = await ask('/v1/destinations/d-down/health')
  expect(health).toMatchObject({ state: 'on', hooks: [{ id: 'main', failing: { lastSuccessAt: null } }] })
  expect((await ask('/v1/destinations?label=tenant%3Dacme')).destinations).toHaveLength(1)
})

test('a repaired endpoint needs no attention any more', async () => {
  isMended = true
  await run('destinations', 'retry-now', 'd-down')
  // It may still get fewer requests at once for a while, and an open breaker counts for 30 s.
  await until('it works again', worksAgain, { timeoutMs: 90_000 })
  const mended = /URL main .*no failures are told/
  expect(await untilSaid(mended, 'destinations', 'status', 'd-down')).toMatch(mended)
})

test('while Kafka is away, the admin API answers with an older picture', async () => {
  const broker = kafka.nodes?.[0]?.pid ?? 0
  process.kill(broker, 'SIGSTOP')
  try {
    const before = await ask('/v1/status')
    const asked = Date.now()
    await until('the picture is old', async () => {
      const { asOf } = await ask('/v1/destinations')
      return Date.now() - Date.parse(asOf) > 6_000
    })
    const after = await ask('/v1/destinations/b-held/health')
    expect(Date.parse(after.asOf)).toBeLessThanOrEqual(asked + 2_000)
    expect(after).toMatchObject({ health: { condition: 'paused', waiting: 4 } })
    expect(Date.parse(before.asOf)).toBeLessThanOrEqual(Date.parse(after.asOf))
  } finally {
    process.kill(broker, 'SIGCONT')
  }
  await until(
    'the picture is new',
    async () => Date.now() - Date.parse((await ask('/v1/status')).asOf) < 6_000,
  )
})

test('the words of a killed worker expire, and what is not known any more is said', async () => {
  await worker.kill()
  const status = await until(
    'nobody tells',
    async () => {
      const now = await ask('/v1/status')
      return now.workers.length === 0 ? now : undefined
    },
    { timeoutMs: 60_000 },
  )
  expect(status.unknown).toEqual(['What fails and what waits: no worker has told anything in the last 20 s.'])
  expect(status).toMatchObject({ lag: null, waiting: null, units: null, attention: [] })
  expect(status).toMatchObject({ destinations: { unknown: 3, paused: 1 } })
  expect(await run('status')).toContain('No destination is known to need attention.')
})
