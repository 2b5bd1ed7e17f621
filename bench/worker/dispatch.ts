import { Pool } from 'undici'
import { enter } from '../../src/message/enter.ts'
import { messageAt, messageBytes, sourceId } from '../support/messages.ts'

/**
 * Posts the same bodies as the worker, with the same paths and headers, from memory and as fast as undici can
 * (`node dispatch.ts ORIGIN FIRST MESSAGES IN_FLIGHT DESTINATIONS`). Each destination has a pool, because
 * every program that isolates destinations needs that. The difference between the worker's cost and the cost
 * of this program is the cost of Sluice.
 */

const [origin = '', first = '', messages = '', inFlight = '', destinations = ''] = process.argv.slice(2)
const count = Number(messages)
const { bytes, ends } = canonicalBodies(Number(first), count)
const headers = [
  'User-Agent',
  'Sluice/1.0',
  'Content-Type',
  'application/json',
  'X-Signature',
  '2ef7bde608ce5404e97d5f042f95f89f1c232871',
]
const pools = Array.from({ length: Number(destinations) }, (_, number) => ({
  path: `/hook/${number}`,
  pool: new Pool(origin, { connections: Number(inFlight), pipelining: 1 }),
}))
let next = 0

/** The handler of all requests. It can be shared, because it has no state of a request. */
const handler = {
  onRequestStart() {},
  onResponseStart(_controller: unknown, status: number) {
    if (status !== 200) throw new Error(`the receiver answered ${status}`)
  },
  onResponseData() {},
  onResponseEnd() {
    postNext()
  },
  onResponseError(_controller: unknown, error: Error) {
    throw error
  },
}

for (let slot = 0; slot < Number(inFlight); slot++) postNext()
// Keeps the process alive until it is ended, because the CPU time of a process that has ended can't be read.
setInterval(() => undefined, 60_000)

function postNext(): void {
  if (next === count) return
  const body = bytes.subarray(next === 0 ? 0 : ends[next - 1], ends[next])
  const to = pools[next % pools.length]
  if (to === undefined) throw new Error('there must be a destination')
  next++
  to.pool.dispatch({ path: to.path, method: 'POST', headers, body }, handler)
}

/** Returns all bodies in one block of memory, so that they cause no work for the garbage collector. */
function canonicalBodies(from: number, total: number): { bytes: Buffer; ends: Float64Array } {
  const block = Buffer.allocUnsafe(total * (messageBytes + 64))
  const blockEnds = new Float64Array(total)
  let end = 0
  for (let index = 0; index < total; index++) {
    const read = { topic: sourceId, partition: 0, offset: from + index, timestampMs: 0 }
    const entered = enter(messageAt(from + index), read)
    if (!entered.ok) throw new Error(`message ${from + index} is refused: ${entered.detail}`)
    end += entered.message.body.copy(block, end)
    blockEnds[index] = end
  }
  return { bytes: block, ends: blockEnds }
}
