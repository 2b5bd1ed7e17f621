import { gzipSync } from 'node:zlib'
import { Pool } from 'undici'
import { monotonicUs } from '../support/clock.ts'
import { messageAt } from '../support/messages.ts'
import { sendAtRate } from '../support/open-loop.ts'
import { percentile } from '../support/statistics.ts'
import type { Flooded, FloodPlan, GivenRequest } from './flood-process.ts'

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

function ordinary(keyIn: 'head' | 'body', writeKey: string): GivenRequest {
  const body = bodyWith(keyIn === 'body' ? `"writeKey":${JSON.stringify(writeKey)},` : '')
  return { path: '/v1/batch', writeKey: keyIn === 'head' ? writeKey : undefined, body }
}

function headersOf({ writeKey }: GivenRequest): Record<string, string> {
  const authorization = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
  return { 'content-type': 'application/json', ...(writeKey !== undefined && { authorization }) }
}

/** Returns a different address of the range for documentation and benchmarks for each number. */
function addressOf(index: number): string {
  return `198.18.${Math.floor(index / 256) % 256}.${index % 256}`
}

async function flood(
  { origin, perSecond, connections, requests }: FloodPlan,
  isDone: () => boolean,
): Promise<Flooded> {
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const given = 'given' in requests ? requests.given : [ordinary(requests.keyIn, requests.writeKey)]
  const isFromMany = 'given' in requests && requests.isFromMany
  const sendings = given.map((request) => ({ ...request, headers: headersOf(request) }))
  const statuses: Record<number, number> = {}
  const lateMs: number[] = []
  const open = new Set<Promise<void>>()
  const send = async (index: number, dueUs: number): Promise<void> => {
    lateMs.push((monotonicUs() - dueUs) / 1_000)
    const sending = sendings[index % sendings.length] ?? sendings[0]
    if (sending === undefined) return
    const from = isFromMany ? { 'x-forwarded-for': addressOf(index) } : undefined
    const { path, body } = sending
    const headers = { ...sending.headers, ...from }
    const answer = await pool.request({ path, method: 'POST', headers, body: Buffer.from(body) })
    await answer.body.dump()
    statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1
  }
  const startUs = monotonicUs()
  await sendAtRate(
    perSecond,
    (index, dueUs) => {
      const sent = send(index, dueUs)
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
    bodyBytes: Math.max(...sendings.map(({ body }) => body.length)),
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
