import { createHmac, createSecretKey } from 'node:crypto'
import type { KafkaMessage } from 'kafkajs'
import { type Dispatcher, Pool } from 'undici'
import { plainKafka } from '../support/plain-kafka.ts'

/**
 * Does the least that a program of this stack must do (`node floor.ts BROKERS TOPIC GROUP ORIGIN IN_FLIGHT
 * [SECRET]`). kafkajs reads, and undici posts each value as it is to one URL. The program doesn't judge
 * answers, retry, commit or log. With SECRET, it parses each body, writes it in canonical form and signs it,
 * as a first version of a worker would.
 */

const [brokers = '', topic = '', groupId = '', origin = '', inFlight = '', secret] = process.argv.slice(2)
const limit = Number(inFlight)
const key = secret === undefined ? undefined : createSecretKey(secret, 'utf8')
/** Reading stops if more values than this wait for a connection. */
const pauseAt = 8_000
/** Reading begins again when at most this many values wait. */
const resumeAt = 2_000

const pool = new Pool(origin, { connections: limit, pipelining: 1 })
const headers = ['User-Agent', 'Sluice/1.0', 'Content-Type', 'application/json']
let waiting: KafkaMessage[] = []
let head = 0
let open = 0
let isPaused = false

const handler = {
  onRequestStart() {},
  onResponseStart(_controller: unknown, status: number) {
    if (status !== 200) throw new Error(`the receiver answered ${status}`)
  },
  onResponseData() {},
  onResponseEnd() {
    open--
    postWaiting()
  },
  onResponseError(_controller: unknown, error: Error) {
    throw error
  },
}

function postWaiting(): void {
  for (let message = waiting[head]; message !== undefined && open < limit; message = waiting[head]) {
    head++
    open++
    pool.dispatch(requestOf(message), handler)
  }
  if (head > resumeAt) {
    waiting = waiting.slice(head)
    head = 0
  }
  setPaused(isPaused ? waiting.length - head > resumeAt : waiting.length - head > pauseAt)
}

function requestOf({ value }: KafkaMessage): Dispatcher.DispatchOptions {
  if (key === undefined || value === null) return { path: '/hook', method: 'POST', headers, body: value }
  const body = Buffer.from(JSON.stringify(JSON.parse(value.toString('utf8'))))
  const signature = createHmac('sha1', key).update(body).digest('hex')
  return { path: '/hook', method: 'POST', headers: [...headers, 'X-Signature', signature], body }
}

function setPaused(next: boolean): void {
  if (next === isPaused) return
  isPaused = next
  if (next) consumer.pause([{ topic }])
  else consumer.resume([{ topic }])
}

/** The session timeout. As the worker's, it is longer than the time for which the others have their turns. */
const sessionTimeout = 120_000
const consumer = plainKafka(brokers.split(',')).consumer({ groupId, sessionTimeout, maxWaitTimeInMs: 100 })
await consumer.connect()
await consumer.subscribe({ topics: [topic], fromBeginning: true })
await consumer.run({
  autoCommit: false,
  partitionsConsumedConcurrently: 6,
  eachBatch: async ({ batch }) => {
    for (const message of batch.messages) waiting.push(message)
    postWaiting()
  },
})
