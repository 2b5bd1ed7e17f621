import type { KafkaMessage } from 'kafkajs'
import { Pool } from 'undici'
import { plainKafka } from '../support/plain-kafka.ts'

/**
 * `node floor.ts BROKERS TOPIC GROUP ORIGIN IN_FLIGHT`: the least that this stack can do. kafkajs reads, undici
 * posts each value as it is to one URL; nothing is parsed, signed, judged, tried again, committed or logged.
 */

const [brokers = '', topic = '', groupId = '', origin = '', inFlight = ''] = process.argv.slice(2)
const limit = Number(inFlight)
/** Values that wait for a connection; reading stops at the first number and goes on at the second. */
const pauseAt = 8_000
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
    pool.dispatch({ path: '/hook', method: 'POST', headers, body: message.value }, handler)
  }
  if (head > resumeAt) {
    waiting = waiting.slice(head)
    head = 0
  }
  setPaused(isPaused ? waiting.length - head > resumeAt : waiting.length - head > pauseAt)
}

function setPaused(next: boolean): void {
  if (next === isPaused) return
  isPaused = next
  if (next) consumer.pause([{ topic }])
  else consumer.resume([{ topic }])
}

/** Longer than it stands still while the others have their turns, as the worker's is. */
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
