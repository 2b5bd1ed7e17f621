import { setTimeout as passTime } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { type ClientProgram, type Outcome, programs, run, type Running } from './programs.ts'
import { sentMessages } from './sent-message.ts'
import { type Exchange, startTap, type Tap } from './tap.ts'

const stoppedMs = 60_000
const everyMs = 40
const mostProgramMs = 240_000

/** A Kafka broker that only this test file uses, because the file stops it. */
let kafka: RunningKafka
let receiver: CountingReceiver
let scene: Scene
let gateway: SluiceProcess
let worker: SluiceProcess
let clients: Client[]
let stoppedAtMs: number
let goingOnAtMs: number

type Client = { program: ClientProgram; tap: Tap; running: Running; outcome: Outcome | undefined }

beforeAll(async () => {
  kafka = await startKafka({ brokers: [], ways: ['java'] })
  const broker = brokerOf(kafka)
  receiver = await startCountingReceiver()
  scene = await setScene({
    brokers: kafka.brokers,
    catalog: {
      sources: programs.map(({ name }) => ({ id: name, writeKeys: [`key-of-${name}`] })),
      destinations: programs.map(({ name }) => ({
        id: name,
        sources: [name],
        hooks: [{ url: receiver.url(`/${name}`) }],
      })),
    },
    variables: { ...unhurried, SLUICE_LOG_ATTEMPTS: 'false' },
  })
  ;[gateway, worker] = await Promise.all([
    startSluice(scene.variables, { role: 'gateway' }),
    startSluice(scene.variables),
  ])
  clients = await Promise.all(programs.map(startClient))
  await until('all of them have sent', () => clients.every(hasSentSince(0)))

  process.kill(broker.pid ?? 0, 'SIGSTOP')
  stoppedAtMs = Date.now()
  await passTime(stoppedMs)
  goingOnAtMs = Date.now()
  process.kill(broker.pid ?? 0, 'SIGCONT')

  await until('all of them send again', () => clients.every(hasSentSince(goingOnAtMs)), {
    timeoutMs: 90_000,
    everyMs: 250,
  })
  for (const client of clients) {
    client.running.stop()
  }
  for (const client of clients) {
    client.outcome = await client.running.outcome
  }
})

afterAll(async () => {
  await gateway.kill()
  await worker.kill()
  for (const { tap } of clients) await tap.stop()
  scene.close()
  await receiver.stop()
  await kafka.stop()
})

async function startClient(program: ClientProgram): Promise<Client> {
  const tap = await startTap(gateway.gatewayPort)
  const orders = { endpoint: tap.url, writeKey: `key-of-${program.name}`, mode: 'steady', everyMs } as const
  return { program, tap, running: run(program, orders, mostProgramMs), outcome: undefined }
}

function brokerOf({ nodes = [] }: RunningKafka): KafkaNode {
  const [node] = nodes
  if (node === undefined) throw new Error('there is no broker to stop')
  return node
}

/** Returns the requests of a client that held messages and got an answer with this status. */
function answered({ tap }: Client, status: number): Exchange[] {
  return tap
    .exchanges()
    .filter((exchange) => exchange.answer.status === status && sentMessages(exchange).length > 0)
}

function hasSentSince(sinceMs: number): (client: Client) => boolean {
  return (client) => answered(client, 200).filter(({ startedMs }) => startedMs > sinceMs).length >= 3
}

function idsOf(exchanges: readonly Exchange[]): Set<string> {
  return new Set(exchanges.flatMap(sentMessages).map(({ message }) => String(message['messageId'])))
}

describe('Kafka hangs for a minute while clients send', () => {
  test('nothing is answered 200 in that time', () => {
    const soonMs = stoppedAtMs + 500
    const wrong = clients.flatMap((client) =>
      answered(client, 200).filter(({ answer: { atMs } }) => atMs > soonMs && atMs < goingOnAtMs),
    )
    expect(wrong).toEqual([])
  })

  test('clients were told to send it again', () => {
    const told = clients.map((client) => [client.program.name, answered(client, 503).length > 0])
    expect(told).toEqual(programs.map(({ name }) => [name, true]))
    const answers = clients.flatMap((client) => answered(client, 503)).map(({ answer }) => answer)
    expect(answers.filter(({ headers }) => !/^[1-3]$/.test(headers.get('retry-after') ?? ''))).toEqual([])
  })

  test.each(programs.map(({ name }, index) => ({ name, index })))(
    'what $name was answered 200 for is at the webhook, all of it',
    async ({ name, index }) => {
      const client = clients[index]
      if (client?.outcome === undefined) throw new Error('it has not ended')
      const acknowledged = idsOf(answered(client, 200))
      await until(
        'as many have arrived',
        async () => (await receiver.count(`/${name}`)).distinct >= acknowledged.size,
        { timeoutMs: 60_000, everyMs: 250 },
      )
      const arrived = await receiver.arrivals(`/${name}`)
      expect([...acknowledged].filter((id) => !arrived.has(id))).toEqual([])
      expect(acknowledged.size).toBeGreaterThanOrEqual(client.outcome.succeeded)
      expect(acknowledged.size + client.outcome.failures.length).toBeGreaterThanOrEqual(client.outcome.made)
    },
  )

  test('gateway and worker go on by themselves', async () => {
    expect([gateway.isRunning, worker.isRunning]).toEqual([true, true])
    expect(await readiness(gateway)).toBe(200)
    expect(await readiness(worker)).toBe(200)
  })
})

async function readiness({ httpPort }: SluiceProcess): Promise<number> {
  return (await fetch(`http://127.0.0.1:${httpPort}/readyz`)).status
}
