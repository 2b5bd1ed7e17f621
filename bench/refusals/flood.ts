import { gzipSync } from 'node:zlib'
import { Pool } from 'undici'
import { monotonicUs } from '../support/clock.ts'
import { messageAt } from '../support/messages.ts'
import { sendAtRate } from '../support/open-loop.ts'
import { percentile } from '../support/statistics.ts'
import type { Flooded, FloodPlan } from './flood-process.ts'

/** Runs as a process. Commands over IPC start and end a flood of a gateway. Sends the figures at the end. */

const leastBodyBytes = 10_000

/** Returns a batch that takes at least 10 kB in gzip. `shared` is the JSON before the messages. */
function bodyWith(shared: string): Buffer {
  const batch: string[] = []
  for (;;) {
    for (let more = 0; more < 4; more++) batch.push(String(messageAt(batch.length)))
    const body = gzipSync(`{${shared}"batch":[${batch.join(',')}]}`)
    if (body.length >= leastBodyBytes) return body
  }
}

async function flood(
  { origin, perSecond, connections, keyIn, writeKey }: FloodPlan,
  isDone: () => boolean,
): Promise<Flooded> {
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const body = bodyWith(keyIn === 'body' ? `"writeKey":${JSON.stringify(writeKey)},` : '')
  const authorization = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
  const headers = {
    'content-type': 'application/json',
    'content-encoding': 'gzip',
    ...(keyIn === 'head' && { authorization }),
  }
  const statuses: Record<number, number> = {}
  const lateMs: number[] = []
  const open = new Set<Promise<void>>()
  const send = async (dueUs: number): Promise<void> => {
    lateMs.push((monotonicUs() - dueUs) / 1_000)
    const answer = await pool.request({ path: '/v1/batch', method: 'POST', headers, body })
    await answer.body.dump()
    statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1
  }
  const startUs = monotonicUs()
  await sendAtRate(
    perSecond,
    (_, dueUs) => {
      const sent = send(dueUs)
      open.add(sent)
      void sent.finally(() => open.delete(sent))
    },
    isDone,
  )
  await Promise.all(open)
  const tookS = (monotonicUs() - startUs) / 1_000_000
  await pool.close()
  return {
    statuses,
    perS: lateMs.length / tookS,
    lateP99Ms: percentile(Float64Array.from(lateMs).sort(), 0.99),
    bodyBytes: body.length,
  }
}

let isOver = false
let flooding: Promise<unknown> = Promise.resolve()

process.on('message', (command: FloodPlan | { kind: 'end' }) => {
  if ('kind' in command) {
    isOver = true
    void flooding.then((flooded) => process.send?.(flooded))
    return
  }
  isOver = false
  flooding = flood(command, () => isOver).catch((error: unknown) => ({ error: String(error) }))
  process.send?.('begun')
})
process.on('disconnect', () => process.exit(0))
