import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LogRecord } from '../../src/delivery-log/log-record.ts'
import { hexOfHash, createUserHash } from '../../src/delivery-log/user-hash.ts'
import { readLog } from '../support/delivery-log.ts'
import { otherProgram, produce, readAll } from '../support/kafka.ts'
import { answer, inTurn, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene, unhurried } from './scene.ts'

const userKey = 'a key of more than sixteen characters'
const secret = 'planted-secret-0b5c'
const sharedSecret = 'planted-shared-secret-77aa'

let receiver: Receiver
let scene: Scene
let running: SluiceProcess[]

beforeEach(async () => {
  receiver = await startReceiver({
    '/fine': answer(200),
    '/bad': answer(400, {}, `no: ${secret}`),
    '/later': inTurn(answer(503), answer(200)),
  })
  const hookOf = (path: string) => ({
    url: `${receiver.origin}${path}`,
    headers: { Authorization: `Bearer ${secret}` },
  })
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }, { id: 'off' }],
      destinations: [
        { id: 'fine', sources: ['shop'], sharedSecret, hooks: [{ id: 'main', ...hookOf('/fine') }] },
        { id: 'bad', sources: ['shop'], hooks: [{ id: 'main', ...hookOf('/bad') }] },
        { id: 'later', sources: ['shop'], hooks: [{ id: 'main', ...hookOf('/later') }] },
        { id: 'away', sources: ['shop'], state: 'off', hooks: [{ id: 'main', ...hookOf('/away') }] },
      ],
    },
    variables: {
      ...unhurried,
      SLUICE_RETRY_LADDER: '500ms',
      SLUICE_RETRY_THEN: '500ms',
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_ATTEMPTS_USER_KEY: userKey,
    },
  })
  running = []
})

afterEach(async () => {
  await Promise.all(running.map((one) => one.kill()))
  scene.close()
  await receiver.stop()
})

async function start(variables: Record<string, string> = {}): Promise<SluiceProcess> {
  const worker = await startSluice({ ...scene.variables, ...variables }, { role: 'worker' })
  running.push(worker)
  return worker
}

const topic = () => `${scene.prefix}attempts`

async function logOf(messageId: string, count: number): Promise<LogRecord[]> {
  return until('the log has all of it', async () => {
    const records = (await readLog(topic())).filter((record) => record.messageId === messageId)
    return records.length >= count ? records : undefined
  })
}

async function deleteTopic(): Promise<void> {
  const admin = otherProgram().admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [topic()] })
  await admin.disconnect()
}

test('the log tells what became of each delivery of a message', async () => {
  await start()
  const [id = ''] = newIds(1)
  await scene.send('shop', [id])
  const records = await logOf(id, 7)
  const told = (destination: string) =>
    records
      .filter((record) => record.destination === destination)
      .map(({ kind, isEnd, hook, attempt, verdict, outcome, status, reason }) => ({
        kind,
        isEnd,
        hook,
        attempt,
        verdict,
        outcome,
        status,
        reason,
      }))
  const nothing = { hook: '', verdict: '', outcome: '', status: 0, reason: '', isEnd: false }
  const tried = { ...nothing, kind: 'attempted', hook: 'main', attempt: 1, outcome: 'answer' }
  expect(told('fine')).toEqual([{ ...tried, isEnd: true, verdict: 'delivered', status: 200 }])
  expect(told('bad')).toEqual([
    { ...tried, verdict: 'final', status: 400 },
    { ...nothing, kind: 'dead', isEnd: true, attempt: 1, reason: 'failed_for_good' },
  ])
  expect(told('later')).toEqual([
    { ...tried, verdict: 'retry', status: 503 },
    { ...nothing, kind: 'parked', attempt: 1, reason: 'failed' },
    { ...tried, attempt: 2, isEnd: true, verdict: 'delivered', status: 200 },
  ])
  expect(told('away')).toEqual([
    { ...nothing, kind: 'filtered', isEnd: true, attempt: 0, reason: 'destination_off' },
  ])
})

test('each record says where the message is, and of which source, kind and user', async () => {
  await start()
  const [id = ''] = newIds(1)
  await scene.send('shop', [id])
  const records = await logOf(id, 7)
  const [event] = await readAll(`${scene.prefix}events`)
  const user = hexOfHash(createUserHash(userKey), `user-${id}`)
  const delivered = records.filter(({ kind }) => kind !== 'filtered')
  expect(delivered.map(({ source, messageType, user: found }) => [source, messageType, found])).toEqual(
    delivered.map(() => ['shop', 'track', user]),
  )
  const origin = { topic: `${scene.prefix}events`, partition: event?.partition, offset: event?.offset }
  expect(records.map((record) => record.origin)).toEqual(records.map(() => origin))
  expect(records.map(({ unit }) => unit)).toEqual(records.map(() => event?.partition))
  const due = records.find(({ kind }) => kind === 'parked')
  expect((due?.dueMs ?? 0) - (due?.atMs ?? 0)).toBe(500)
})

test('a record that nobody can read is in the log with its place', async () => {
  await start()
  await produce(`${scene.prefix}events`, [{ key: 'k', value: '{', headers: { 'source-id': 'shop' } }])
  const [dead] = await until('it is told', async () => {
    const all = await readLog(topic())
    return all.length > 0 ? all : undefined
  })
  expect(dead).toMatchObject({ kind: 'dead', isEnd: true, destination: '', messageId: '' })
  expect(dead?.origin).toMatchObject({ topic: `${scene.prefix}events`, offset: 0 })
})

test('nothing in the topic says who a user is, or what is secret', async () => {
  await start()
  const ids = newIds(20)
  await scene.send('shop', ids)
  await until('all is in the log', async () => (await readLog(topic())).length >= 102)
  const bytes = Buffer.concat((await readAll(topic())).map(({ value }) => value ?? Buffer.alloc(0)))
  for (const planted of ['user-', secret, sharedSecret, userKey, 'Order Completed'])
    expect(bytes.indexOf(planted)).toBe(-1)
})

test('without the topic a worker starts, says so, delivers and counts what it drops', async () => {
  await deleteTopic()
  const worker = await start()
  const said = worker.log.find(({ msg }) => msg.includes('run sluice topics apply'))
  expect(said).toMatchObject({ level: 'warn', topic: topic(), problem: 'does not exist' })
  const ids = newIds(50)
  await scene.send('shop', ids)
  await until('all are delivered', () => receiver.requestsTo('/fine').length >= 50)
  await until('all is settled', async () => (await scene.lag()) === 0)
  await until('what is dropped is counted', async () => {
    return (await worker.metric('sluice_log_records_dropped_total')) > 0
  })
})

test('switched off it writes nothing', async () => {
  const worker = await start({ SLUICE_ATTEMPTS_ENABLED: 'false' })
  await scene.send('shop', newIds(5))
  await until('all is settled', async () => (await scene.lag()) === 0)
  await worker.terminate()
  expect(await readAll(topic())).toEqual([])
})

test('what was begun before the end of a worker is in the log', async () => {
  const worker = await start()
  const ids = newIds(30)
  await scene.send('shop', ids)
  await until('all are delivered', () => receiver.requestsTo('/fine').length >= 30)
  await worker.terminate()
  const fine = (await readLog(topic())).filter(({ destination }) => destination === 'fine')
  expect(fine.map(({ messageId }) => messageId).toSorted()).toEqual(ids.toSorted())
})

test('many successes a second have few records, which stand for all', async () => {
  const worker = await start({ SLUICE_ATTEMPTS_SUCCESSES: '5' })
  const ids = newIds(500)
  await scene.send('shop', ids)
  await until('all are delivered', () => receiver.requestsTo('/fine').length >= 500)
  await until('all is settled', async () => (await scene.lag()) === 0)
  await worker.terminate()
  const fine = (await readLog(topic())).filter(({ destination }) => destination === 'fine')
  expect(fine.length).toBeLessThan(250)
  expect(fine.reduce((sum, { weight }) => sum + weight, 0)).toBe(500)
})
