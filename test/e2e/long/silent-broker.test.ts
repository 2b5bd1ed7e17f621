import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../../src/development/kafka.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { type SilentBroker, startSilentBroker } from '../../support/silent-broker.ts'
import { until } from '../../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { newIds, type Scene, setScene, unhurried } from '../scene.ts'

/** A Kafka broker that only this file uses, because the file restarts it. */
let kafka: RunningKafka
let broker: KafkaNode
/** The first address of `kafka.brokers`, which accepts connections and never answers. */
let silent: SilentBroker
let scene: Scene
let receiver: CountingReceiver
let tokens: AdminTokens
/** Where the index of the delivery log is kept. */
let folder: string

beforeAll(async () => {
  silent = await startSilentBroker()
  receiver = await startCountingReceiver()
  tokens = await makeTokens()
  folder = await mkdtemp(join(tmpdir(), 'sluice-index-'))
  kafka = await startKafka({ brokers: [], ways: ['java'] })
  const [node] = kafka.nodes ?? []
  if (node === undefined) throw new Error('there is no broker to restart')
  broker = node
  scene = await setScene({
    brokers: kafka.brokers,
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['shop-key'] }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/crm') }] }],
    },
    variables: unhurried,
  })
})

afterAll(async () => {
  scene.close()
  silent.stop()
  tokens.remove()
  await kafka.stop()
  await rm(folder, { recursive: true, force: true })
  await receiver.stop()
})

function behindSilent(): Record<string, string> {
  const live = scene.variables['SLUICE_KAFKA_BROKERS'] ?? ''
  return { ...scene.variables, SLUICE_KAFKA_BROKERS: `${silent.address},${live}` }
}

async function readiness({ httpPort }: SluiceProcess): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${httpPort}/readyz`)
  return `${response.status} ${await response.text()}`
}

test('a command does its work though the first address never answers', async () => {
  const message = '{"type":"track","userId":"u1","event":"Sent","messageId":"by-command"}'
  const { stdout } = await runSluice(['send', '--source', 'shop', message], behindSilent())
  expect(stdout).toContain('sent by-command')
  expect(silent.accepted).toBeGreaterThan(0)
})

test('if no address can be used, the error says what each of them did', async () => {
  const other = await startSilentBroker()
  const addresses = [silent.address, '127.0.0.1:1', other.address]
  const message = '{"type":"track","userId":"u1","event":"Sent"}'
  const { stderr } = await runSluice(
    ['send', '--source', 'shop', message],
    { ...scene.variables, SLUICE_KAFKA_BROKERS: addresses.join() },
    { expectedCode: 1 },
  )
  other.stop()
  expect(stderr).toContain(`${silent.address}: it accepts connections, and does not answer (within 2 s)`)
  expect(stderr).toContain('127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1')
  expect(stderr).toContain(`${other.address}: it accepts connections, and does not answer (within 2 s)`)
})

test('roles start though the first address never answers, and outlive a restart of the other broker', async () => {
  const others = { SLUICE_ADMIN_TOKENS_FILE: tokens.file, SLUICE_INDEX_FOLDER: folder }
  const [worker, gateway, index, admin] = await Promise.all([
    startSluice(behindSilent()),
    startSluice(behindSilent(), { role: 'gateway' }),
    startSluice({ ...behindSilent(), ...others }, { role: 'log serve' }),
    startSluice({ ...behindSilent(), ...others }, { role: 'admin' }),
  ])
  try {
    await broker.kill('SIGKILL')
    await until('the gateway is not ready', async () => (await readiness(gateway)).startsWith('503'))
    await broker.start()
    for (const role of [worker, gateway, index, admin])
      await until('it is ready again', async () => (await readiness(role)).startsWith('200'), {
        timeoutMs: 40_000,
      })
    const before = (await receiver.count('/crm')).requests
    await scene.send('shop', newIds(10))
    await until(
      'messages are delivered',
      async () => (await receiver.count('/crm')).requests >= before + 10,
      {
        timeoutMs: 30_000,
      },
    )
    expect(await Promise.all([readiness(worker), readiness(gateway)])).toEqual([
      expect.stringMatching(/^200/),
      expect.stringMatching(/^200/),
    ])
  } finally {
    await Promise.all([worker, gateway, index, admin].map((role) => role.kill()))
  }
})
