import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { ask, BrokerTooOldError, type WireBroker } from '../../../../src/kafka/wire/wire-request.ts'
import { collectGarbage } from '../../../support/collect-garbage.ts'
import { until } from '../../../support/until.ts'
import { apis, brokerOf } from '../scripted-kafka.ts'

const request = {
  apiKey: 3,
  apiName: 'Metadata',
  lowest: 4,
  highest: 12,
  write: () => Buffer.alloc(0),
  read: (body: Buffer) => body,
}

const nothing = (): void => undefined

/** Returns a broker that takes requests and never answers. `versions` is what it has said before. */
function silentBroker(versions: WireBroker['versions']): { broker: WireBroker; isCut: () => boolean } {
  let isCut = false
  const connection = {
    host: '127.0.0.1',
    port: 9092,
    clientId: 'sluice',
    sasl: null,
    authHandlers: null,
    connectionStatus: 'connected',
    socket: { cork: nothing, uncork: nothing, write: nothing, destroy: () => (isCut = true) },
    nextCorrelationId: () => 1,
    rejectRequests: nothing,
    requestQueue: {
      push: ({ sendRequest }: { sendRequest: () => void }) => sendRequest(),
      withdraw: () => false,
      destroy: nothing,
    },
  }
  const broker = {
    versions,
    connectionPool: { getConnectionByRequest: async () => connection, pool: [connection] },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `ask` uses no other members
  return { broker: broker as unknown as WireBroker, isCut: () => isCut }
}

test('a broker that has not said its versions yet is not taken for one that is too old', async () => {
  const error: unknown = await ask(silentBroker(null).broker, request).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(kafkajs.KafkaJSConnectionError)
  expect(error).toMatchObject({ retriable: true, message: expect.stringContaining('Metadata') })
})

test('a broker without the request is too old', async () => {
  const { broker } = silentBroker({ 3: { minVersion: 0, maxVersion: 3 } })
  await expect(ask(broker, request)).rejects.toBeInstanceOf(BrokerTooOldError)
})

test('no answer in time cuts the connection off, and is an error after which callers ask again', async () => {
  const { broker, isCut } = silentBroker({ 3: { minVersion: 0, maxVersion: 12 } })
  const error: unknown = await ask(broker, request, { mostMs: 1 }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(kafkajs.KafkaJSError)
  expect(error).toMatchObject({ name: 'NoAnswerError', retriable: true })
  expect(isCut()).toBe(true)
})

test('what is left of a request does not keep the bytes of its answer', async () => {
  const answerBytes = 1024 ** 2
  const left: object[] = []
  const broker = brokerOf(
    () => undefined,
    (entry) => {
      left.push(entry)
      setImmediate(() => entry.resolve({ payload: Buffer.allocUnsafeSlow(answerBytes) }))
    },
  )
  const fetch = { ...request, apiKey: apis.fetch, read: (body: Buffer) => body.length }
  collectGarbage()
  const before = process.memoryUsage().arrayBuffers
  for (let round = 0; round < 40; round++) expect(await ask(broker, fetch)).toBe(answerBytes)
  // V8 frees the bytes in another thread, some time after it has collected what had them.
  await until('the bytes are free', () => {
    collectGarbage()
    return (process.memoryUsage().arrayBuffers - before) / answerBytes < 5
  })
  expect(left).toHaveLength(40)
})
