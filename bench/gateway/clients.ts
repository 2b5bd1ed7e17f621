import { Pool } from 'undici'
import { monotonicUs } from '../support/clock.ts'
import { idCharacters, idMarker, messageAt } from '../support/messages.ts'
import { sendAtRate } from '../support/open-loop.ts'
import { percentile } from '../support/statistics.ts'
import type { Batches, Command, Sent, Singles } from './clients-process.ts'

/**
 * Clients of the gateway in a separate process. They get their commands and return their results over IPC.
 */

const writeKey = 'bench-write-key'
const headers = {
  'content-type': 'application/json',
  authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
}
/**
 * Number of different batches. It is higher than the number of connections, so that no message id is in
 * flight twice.
 */
const bodyCount = 64
const idDigits = 12

function batchBodies(messages: number): Buffer[] {
  return Array.from({ length: bodyCount }, (_, body) => {
    const batch = Array.from({ length: messages }, (_unused, index) =>
      String(messageAt(body * messages + index)),
    )
    return Buffer.from(`{"batch":[${batch.join(',')}],"sentAt":"2026-01-01T00:00:00.000Z"}`)
  })
}

/** Posts batches. Each connection posts one batch after the other. */
async function sendBatches({ origin, requests, connections, messages }: Batches): Promise<Sent> {
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const bodies = batchBodies(messages)
  const latenciesMs: number[] = []
  let next = 0
  let failed = 0
  process.send?.('begun')
  const loop = async (): Promise<void> => {
    while (next < requests) {
      const body = bodies[next++ % bodyCount] ?? Buffer.alloc(0)
      const startUs = monotonicUs()
      const { statusCode, body: answer } = await pool.request({
        path: '/v1/batch',
        method: 'POST',
        headers,
        body,
      })
      await answer.dump()
      if (statusCode !== 200) failed++
      latenciesMs.push((monotonicUs() - startUs) / 1_000)
    }
  }
  await Promise.all(Array.from({ length: connections }, loop))
  await pool.close()
  return summary(latenciesMs, failed, [])
}

/** Sends each single call when it is due by the clock, even if the gateway hasn't answered earlier calls. */
async function sendSingles({ origin, perSecond, seconds, warmS, connections }: Singles): Promise<Sent> {
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const total = perSecond * seconds
  const bodies = Array.from({ length: 1_000 }, (_, index) => String(messageAt(index)))
  const latenciesMs: number[] = []
  const lateMs: number[] = []
  let failed = 0
  const sends: Promise<void>[] = []
  const send = async (index: number, dueUs: number): Promise<void> => {
    const body = withId(bodies[index % bodies.length] ?? '', index)
    lateMs.push((monotonicUs() - dueUs) / 1_000)
    const { statusCode, body: answer } = await pool.request({
      path: '/v1/track',
      method: 'POST',
      headers,
      body,
    })
    await answer.dump()
    if (statusCode !== 200) failed++
    // The latency counts from when the call was due. Otherwise it would leave out the time for which calls
    // wait while the gateway stalls.
    if (index >= warmS * perSecond) latenciesMs.push((monotonicUs() - dueUs) / 1_000)
  }
  process.send?.('begun')
  await sendAtRate(
    perSecond,
    (index, dueUs) => sends.push(send(index, dueUs)),
    (next) => next === total,
  )
  await Promise.all(sends)
  await pool.close()
  return summary(latenciesMs, failed, lateMs)
}

/** Returns the message with `index` at the end of its id. */
function withId(text: string, index: number): string {
  const end = text.indexOf(idMarker) + idMarker.length + idCharacters
  return text.slice(0, end - idDigits) + String(index).padStart(idDigits, '0') + text.slice(end)
}

function summary(latenciesMs: readonly number[], failed: number, lateMs: readonly number[]): Sent {
  const sorted = Float64Array.from(latenciesMs).sort()
  return {
    requests: latenciesMs.length,
    failed,
    latencyMs: {
      p50: percentile(sorted, 0.5),
      p99: percentile(sorted, 0.99),
      max: percentile(sorted, 1),
    },
    lateP99Ms: percentile(Float64Array.from(lateMs).sort(), 0.99),
  }
}

process.on('message', (command: Command) => {
  void run(command)
})
process.on('disconnect', () => process.exit(0))

async function run(command: Command): Promise<void> {
  try {
    process.send?.(command.kind === 'batches' ? await sendBatches(command) : await sendSingles(command))
  } catch (error) {
    process.send?.({ error: String(error) })
  }
}
