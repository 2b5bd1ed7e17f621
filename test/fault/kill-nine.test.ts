import { expect, test } from 'vitest'
import { newIds, setScene } from '../e2e/scene.ts'
import { startCountingReceiver } from '../support/counting-receiver.ts'
import { createTrust, type Scheme } from '../support/trust.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'

const messages = 100_000
const kills = 10
const leastInFlight = 100
/**
 * The number of messages between two kills. Kills are spread over the messages, and the last kill comes well
 * before their end.
 */
const messagesBetweenKills = 8_000

const schemes: Scheme[] = ['http', 'https']

test.each(schemes)(
  'a worker that is killed ten times under load loses none of 100,000 messages, over %s',
  async (scheme) => {
    const trust = createTrust(scheme)
    const receiver = await startCountingReceiver(trust.secured)
    // A twentieth of the messages is tried again, so that kills also happen while retry topics are in use.
    await receiver.behave('/hook', { delayMs: [50, 150], failFirstOfEvery: 20 })
    const scene = await setScene({
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [
          { id: 'crm', sources: ['shop'], maxInFlight: 500, hooks: [{ url: receiver.url('/hook') }] },
        ],
      },
      variables: {
        ...trust.variables,
        // The only destination gets a share of these requests in flight.
        SLUICE_DELIVERY_MAX_IN_FLIGHT: '2048',
        // Each kill follows a commit sooner than an answer takes. So a message that was committed too early
        // is certainly lost.
        SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
        SLUICE_RETRY_LADDER: '1s,2s',
        SLUICE_RETRY_THEN: '2s',
        SLUICE_LOG_ATTEMPTS: 'false',
      },
    })
    const ids = newIds(messages)
    await scene.send('shop', ids)
    let worker = await startSluice(scene.variables)
    try {
      const inFlightAtKill: number[] = []
      for (let kill = 1; kill <= kills; kill++) {
        const killed = receiver.kill('/hook', {
          pid: worker.pid,
          distinct: kill * messagesBetweenKills,
          inFlight: leastInFlight,
        })
        await until('it is killed', () => !worker.isRunning, { timeoutMs: 180_000 })
        inFlightAtKill.push(await killed)
        worker = await startSluice(scene.variables, { readyMs: 60_000 })
      }
      await until('all is committed', async () => (await scene.lag()) === 0, {
        timeoutMs: 300_000,
        everyMs: 500,
      })
      const counts = await receiver.count('/hook')
      process.stdout.write(
        `${messages} messages, ${kills} kills with ${inFlightAtKill.join(', ')} requests in flight: ` +
          `${counts.delivered} delivered, ${counts.repeats} repeats after a success, ${counts.requests} requests by ${await receiver.connections()} connections\n`,
      )
      expect(counts.delivered).toBe(messages)
      expect(new Set((await receiver.arrivals('/hook')).keys())).toEqual(new Set(ids))
      expect(inFlightAtKill).toHaveLength(kills)
      expect(Math.min(...inFlightAtKill)).toBeGreaterThanOrEqual(leastInFlight)
    } finally {
      await worker.kill()
      scene.close()
      await receiver.stop()
      trust.remove()
    }
  },
)
