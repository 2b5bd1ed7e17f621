import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureJars } from '../../src/development/jars.ts'
import { supportedKafka } from '../../src/topics/broker-versions.ts'
import { randomPrefix, readAll } from '../support/kafka.ts'
import { answer, inTurn, type Receiver, startReceiver } from '../support/receiver.ts'
import { type SingleBroker, startSingleBroker } from '../support/single-broker.ts'
import { until } from '../support/until.ts'
import { runSluice, startSluice, writeCatalog } from '../support/worker-process.ts'

/**
 * The last patch release of the oldest supported minor version. All other tests run on the newest version.
 */
const oldest = `${supportedKafka.oldest}.2`
const downloadMs = 10 * 60_000

let broker: SingleBroker
let receiver: Receiver

beforeAll(async () => {
  broker = await startSingleBroker({ version: oldest })
  receiver = await startReceiver({ '/hook': inTurn(answer(503), answer(200)), '/refusing': answer(404) })
}, downloadMs)

afterAll(async () => {
  await receiver?.stop()
  await broker?.stop()
})

function hook(path: string) {
  return [{ url: `${receiver.origin}${path}` }]
}

/** Runs a command that Sluice printed, with the tool of the oldest version, as the script of Kafka does. */
async function kafkaTopics(command: string): Promise<void> {
  const jars = await ensureJars(() => undefined, oldest)
  const [, ...args] = command.split(/\s+/)
  const flags = ['-XX:TieredStopAtLevel=1', '-cp', `${jars}/*`, 'kafka.admin.TopicCommand']
  await promisify(execFile)('java', [...flags, ...args])
}

test(`the oldest Kafka takes the topics as they are printed, and what is sent is delivered, retried and buried`, async () => {
  const catalog = writeCatalog({
    sources: [{ id: 'shop', writeKeys: ['KEY'] }],
    destinations: [
      { id: 'crm', sources: ['shop'], hooks: hook('/hook') },
      { id: 'refusing', sources: ['shop'], hooks: hook('/refusing') },
    ],
  })
  const prefix = randomPrefix()
  const variables = {
    SLUICE_KAFKA_BROKERS: broker.direct,
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_TOPICS_PARTITIONS: '2',
    SLUICE_RETRY_LADDER: '1s',
    SLUICE_CATALOG_FILE: catalog.path,
  }
  const printed = await runSluice(['topics', 'print', '--format', 'kafka-topics'], variables)
  const commands = printed.stdout.replaceAll('\\\n', '').trim().split('\n')
  await kafkaTopics(commands[0] ?? '')
  const applied = await runSluice(['topics', 'apply'], variables)
  expect(applied.stdout).not.toContain(`created    ${prefix}events`)
  expect(applied.stdout).not.toContain('corrected')
  const worker = await startSluice(variables)
  const gateway = await startSluice(variables, { role: 'gateway' })
  try {
    const response = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from('KEY:').toString('base64')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ userId: 'u1', event: 'Bought' }),
    })
    expect(response.status).toBe(200)
    await until('it is delivered at the second try', () => receiver.requestsTo('/hook').length === 2)
    const buried = await readAll(`${prefix}dead-letters`, { brokers: [broker.direct], count: 1 })
    expect(buried.map(({ headers }) => headers['reason'])).toEqual(['failed_for_good'])
    expect(await worker.terminate()).toMatchObject({ code: 0 })
  } finally {
    await worker.kill()
    await gateway.kill()
    catalog.remove()
  }
})
