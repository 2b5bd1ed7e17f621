import { Pool } from 'undici'
import type { Server } from '../gateway/setting.ts'
import { Random } from '../../test/support/random.ts'
import { givenOf } from './floods.ts'
import type { HostileRequest } from './hostile-requests.ts'
import type { Cost } from './worst-case.ts'

/**
 * How often each request is sent in a round. The system counts the CPU time of a process in steps of some
 * milliseconds.
 */
const times = 100
/** The round with the least time counts. The first one also compiles the code. */
const rounds = 3

/**
 * Measures the CPU time that a real gateway takes for each of the requests, one after the other, until it has
 * answered them, in milliseconds. Subtracts the time for a refused empty batch. Accepted messages are written
 * to Kafka. Each request comes from another address. The result has the worst first.
 */
export async function costsAtGateway(
  server: Server,
  requests: readonly HostileRequest[],
): Promise<readonly Cost<HostileRequest>[]> {
  const random = new Random(2)
  const pool = new Pool(server.origin, { connections: 1, pipelining: 1 })
  let sent = 0
  const costOf = async (of: HostileRequest): Promise<number> => {
    let least = Infinity
    for (let round = 0; round < rounds; round++) least = Math.min(least, await roundOf(of))
    return least
  }
  const roundOf = async (of: HostileRequest): Promise<number> => {
    const given = Array.from({ length: times }, () => givenOf(of, random))
    const beforeUs = server.cpuUs()
    for (const { path, writeKey, body } of given) {
      sent++
      const headers = {
        'x-forwarded-for': `198.19.${Math.floor(sent / 256) % 256}.${sent % 256}`,
        ...(writeKey !== undefined && {
          authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
        }),
      }
      const answer = await pool.request({ path, method: 'POST', headers, body })
      await answer.body.dump()
    }
    return (server.cpuUs() - beforeUs) / 1_000 / times
  }
  try {
    const base = await costOf(refusedEmptyBatch)
    const costs: Cost<HostileRequest>[] = []
    for (const of of requests) costs.push({ of, ms: (await costOf(of)) - base })
    return costs.sort((one, other) => other.ms - one.ms)
  } finally {
    await pool.close()
  }
}

const refusedEmptyBatch: HostileRequest = {
  name: 'a refused empty batch',
  call: 'batch',
  hasKey: false,
  make: () => Buffer.from('{"batch":[]}'),
}
