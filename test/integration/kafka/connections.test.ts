import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createKafka } from '../../../src/kafka/cluster/client.ts'
import { metadataRequest } from '../../../src/kafka/wire/metadata-request.ts'
import { openPartwiseCluster, type PartwiseCluster } from '../../../src/kafka/cluster/partwise-cluster.ts'
import { listOffsetsRequest } from '../../../src/kafka/wire/offset-requests.ts'
import { ask, type WireBroker } from '../../../src/kafka/wire/wire-request.ts'
import { type CloudKafka, startCloudKafka } from '../../support/cloud-kafka.ts'
import { otherProgram } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { quietLog } from '../../support/emitted-lines.ts'

const apiKeys = { listOffsets: 2, metadata: 3 } as const
const topic = 'events'
const log = quietLog

let kafka: CloudKafka
let opened: PartwiseCluster
let broker: WireBroker

beforeAll(async () => {
  kafka = await startCloudKafka()
  const admin = otherProgram([kafka.direct]).admin()
  await admin.connect()
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 100 }] })
  await admin.disconnect()
})

afterAll(() => kafka.stop())

beforeEach(async () => {
  const settings = { brokers: [kafka.address], clientId: 'sluice', ssl: false } as const
  opened = openPartwiseCluster(
    createKafka(
      { ...settings, saslMechanism: 'none', saslUsername: undefined, saslPassword: undefined },
      log,
      'impatient',
    ),
  )
  await opened.cluster.connect()
  await opened.cluster.addTargetTopic(topic)
  broker = await opened.findBroker(1)
})

afterEach(async () => {
  kafka.manners = {}
  await opened.close()
})

/** Asks for the ends of a hundred partitions. The answer has a few kilobytes. Returns the number of ends. */
function askForEnds(): Promise<number> {
  const questions = Array.from({ length: 100 }, (_, partition) => ({
    topic,
    partition,
    currentLeaderEpoch: -1,
  }))
  return ask(broker, listOffsetsRequest(questions, 'end')).then(({ length }) => length)
}

/**
 * Returns the connection pool of a broker, which a test can destroy. kafkajs does this when a caller could
 * not connect.
 */
function closable(one: WireBroker): { connectionPool: { destroy(): Promise<void> } } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- declared are the parts for requests
  return one as unknown as { connectionPool: { destroy(): Promise<void> } }
}

/** Makes the next answer to ListOffsets get lost, half or whole. */
function loseNext(how: 'half' | 'all'): void {
  let isLost = false
  kafka.manners = {
    loses({ apiKey }) {
      if (isLost || apiKey !== apiKeys.listOffsets) return undefined
      isLost = true
      return how
    },
  }
}

describe('a connection that ends', () => {
  test('in the middle of an answer spoils no later one', async () => {
    for (let round = 0; round < 3; round++) {
      loseNext('half')
      await expect(askForEnds()).rejects.toThrow('Closed connection')
      expect(await askForEnds()).toBe(100)
    }
  })

  test('takes no request with it that comes afterwards, however many come', async () => {
    loseNext('half')
    await expect(askForEnds()).rejects.toThrow('Closed connection')
    expect(await Promise.all(Array.from({ length: 20 }, askForEnds))).toEqual(
      Array.from({ length: 20 }, () => 100),
    )
  })

  test('because one request has no answer, rejects the others on it, and the next ones have a new one', async () => {
    kafka.manners = { loses: ({ apiKey }) => (apiKey === apiKeys.listOffsets ? 'all' : undefined) }
    const others = [askForEnds(), askForEnds()].map((asked) => asked.catch((error: unknown) => String(error)))
    kafka.manners.loses = () => 'all'
    await expect(ask(broker, metadataRequest([topic]), { mostMs: 500 })).rejects.toThrow(
      'the broker did not answer Metadata within 500 ms',
    )
    for (const other of await Promise.all(others))
      expect(other).toContain('did not answer Metadata within 500 ms')
    kafka.manners = {}
    expect(await askForEnds()).toBe(100)
  })
})

describe('a connection that is being opened', () => {
  test('stays when another caller, who could not connect, closes the pool', async () => {
    const { connectionPool } = closable(broker)
    await connectionPool.destroy()
    const asked = askForEnds()
    await connectionPool.destroy()
    expect(await asked).toBe(100)
  })

  test('is closed with the client, and its caller hears of it at once', async () => {
    await closable(broker).connectionPool.destroy()
    const asked = askForEnds().catch(String)
    opened.cut('enough')
    expect(await asked).toContain('the connection to the broker was closed')
    await until('no connection is open', () => kafka.openConnections === 0)
  })
})

test('the close of a pool waits for the answers that come, and later requests get a connection of their own', async () => {
  kafka.manners = { loses: () => 'a second' }
  const [asked] = await untilAsked(askForEnds)
  kafka.manners = {}
  const closed = closable(broker).connectionPool.destroy()
  expect(await askForEnds()).toBe(100)
  await closed
  expect(await asked).toBe(100)
  expect(await askForEnds()).toBe(100)
})

test('a cut reaches a connection that is closing, though another one has taken its place', async () => {
  kafka.manners = { loses: () => 'all' }
  const [asked] = (await untilAsked(askForEnds)).map((answer) => answer.catch(String))
  kafka.manners = {}
  const closed = closable(broker).connectionPool.destroy()
  expect(await askForEnds()).toBe(100)
  opened.cut('enough')
  expect(await asked).toContain('enough')
  await closed
})

/**
 * Starts a request, and waits until the broker has received it. The returned list contains the promise of the
 * answer. Without the list, `await` would wait for the answer.
 */
async function untilAsked(begin: () => Promise<number>): Promise<Promise<number>[]> {
  const before = kafka.requests.length
  const asked = begin()
  await until('the broker is asked', () => kafka.requests.length > before)
  return [asked]
}

describe('closing', () => {
  test('waits for the answers that come', async () => {
    kafka.manners = { loses: () => 'a second' }
    const asked = await untilAsked(askForEnds)
    await opened.close()
    expect(await Promise.all(asked)).toEqual([100])
  })

  test('ends though an answer never comes, and rejects its request', async () => {
    kafka.manners = { loses: () => 'all' }
    const asked = (await untilAsked(askForEnds)).map((answer) => answer.catch(String))
    await opened.close()
    expect((await Promise.all(asked)).join()).toContain('the connection to the broker was closed')
  })

  test('at once leaves no request without an end', async () => {
    kafka.manners = { loses: () => 'all' }
    const asked = (await untilAsked(askForEnds)).map((answer) => answer.catch(String))
    opened.cut('enough')
    expect((await Promise.all(asked)).join()).toContain('enough')
  })
})
