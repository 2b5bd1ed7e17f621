import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { faultsOf } from './additions.ts'
import { type Outcome, programs, run } from './programs.ts'
import { fieldOf, isObject, readObject, sentMessages, type SentMessage } from './sent-message.ts'
import { startTap, type Tap } from './tap.ts'

const secret = 'ein Geheimnis 🔑'
const tracks = 2_000
/** The number of large calls. Together they have more bytes than two batches may have. */
const large = 40
const mostProgramMs = 100_000

let receiver: Receiver
let scene: Scene
let gateway: SluiceProcess
let worker: SluiceProcess

beforeAll(async () => {
  receiver = await startReceiver()
  scene = await setScene({
    catalog: {
      sources: programs.map(({ name }) => ({ id: name, writeKeys: [`key-of-${name}`] })),
      destinations: programs.map(({ name }) => ({
        id: name,
        sources: [name],
        sharedSecret: secret,
        hooks: [{ url: `${receiver.origin}/${name}` }],
      })),
    },
    variables: { ...unhurried, SLUICE_LOG_ATTEMPTS: 'false' },
  })
  ;[gateway, worker] = await Promise.all([
    startSluice(scene.variables, { role: 'gateway' }),
    startSluice(scene.variables),
  ])
})

afterAll(async () => {
  await gateway.kill()
  await worker.kill()
  scene.close()
  await receiver.stop()
})

describe.each(programs)('$name', (program) => {
  let tap: Tap
  let outcome: Outcome
  let sent: SentMessage[]
  let arrivals: ReceivedRequest[]

  beforeAll(async () => {
    tap = await startTap(gateway.gatewayPort)
    const orders = {
      endpoint: tap.url,
      writeKey: `key-of-${program.name}`,
      mode: 'once',
      tracks,
      large,
    } as const
    const running = run(program, orders, mostProgramMs)
    running.stop()
    outcome = await running.outcome
    sent = tap.exchanges().flatMap(sentMessages)
    const path = `/${program.name}`
    await until('all has arrived', () => receiver.requestsTo(path).length >= sent.length)
    arrivals = receiver.requestsTo(path)
  }, mostProgramMs + 60_000)

  afterAll(() => tap.stop())

  test('its client sees nothing but success', () => {
    expect(outcome).toMatchObject({ failures: [], said: '', succeeded: outcome.made })
    expect(outcome.made).toBeGreaterThan(1_000)
  })

  test('each request is answered as Segment answers, once', () => {
    const posts = tap.exchanges().filter(({ method }) => method === 'POST')
    expect(new Set(posts.map(({ answer }) => `${answer.status} ${answer.body}`))).toEqual(
      new Set(['200 {"success":true}']),
    )
    expect(posts.filter(({ headers }) => headers['x-retry-count'] !== undefined)).toEqual([])
    const ids = sent.map(({ message }) => message['messageId'])
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBe(outcome.made)
  })

  test('it sent all kinds of calls, several batches, and the keys that are hard to keep', () => {
    expect(new Set(sent.map(({ kind, message }) => kind ?? message['type']))).toEqual(new Set(program.kinds))
    expect(new Set(sent.map(({ exchange }) => exchange)).size).toBeGreaterThan(5)
    expect(sent.some(({ exchange }) => exchange.headers['content-encoding'] === 'gzip')).toBe(program.gzip)
    expect(sent.some(({ message }) => hasProtoKey(message))).toBe(program.keepsProto)
  })

  test('all of it arrives at the webhook, once, with its content unchanged', () => {
    const byId = Map.groupBy(arrivals, ({ body }) => readObject(body)['messageId'])
    const faults = sent.flatMap((message) => {
      const id = message.message['messageId']
      const [arrived, ...others] = byId.get(id) ?? []
      if (arrived === undefined) return [`${String(id)} is missing`]
      const repeats = others.length === 0 ? [] : [`${String(id)} came ${others.length + 1} times`]
      return [...repeats, ...faultsOf(message, readObject(arrived.body))]
    })
    expect(faults).toEqual([])
    expect(arrivals.length).toBe(sent.length)
  })

  test('the webhook verifies the signature as the documentation shows', () => {
    const unverified = arrivals.filter(({ headers, body }) => {
      const written = JSON.stringify(readObject(body))
      return headers['x-signature'] !== createHmac('sha1', secret).update(written).digest('hex')
    })
    expect(unverified).toEqual([])
  })
})

function hasProtoKey(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasProtoKey)
  if (!isObject(value)) return false
  return Object.keys(value).some((name) => name === '__proto__' || hasProtoKey(fieldOf(value, name)))
}
