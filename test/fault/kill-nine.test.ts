import { expect, test } from 'vitest'
import { newIds, setScene } from '../e2e/scene.ts'
import { startCountingReceiver } from '../support/counting-receiver.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'

const messages = 100_000
const kills = 10
const leastInFlight = 100
/** Kills are spread over the messages, the last one well before their end. */
const messagesBetweenKills = 8_000

test('a worker that is killed ten times under load loses none of 100,000 messages', async () => {
  const receiver = await startCountingReceiver()
  await receiver.behave('/hook', { delayMs: [150, 300], failFirstOfEvery: 20 })
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'crm', sources: ['shop'], maxInFlight: 500, hooks: [{ url: receiver.url('/hook') }] },
      ],
    },
    variables: {
      // One destination has a share of these.
      SLUICE_DELIVERY_MAX_IN_FLIGHT: '2048',
      SLUICE_RETRY_LADDER: '1s,2s',
      SLUICE_RETRY_THEN: '2s',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
  const ids = newIds(messages)
  await scene.send('shop', ids)
  let worker = await startSluice(scene.variables)
  try {
    const cutByKill: number[] = []
    for (let kill = 1; kill <= kills; kill++) {
      const before = await until(
        'enough has arrived, and enough is in flight',
        async () => {
          const counts = await receiver.count('/hook')
          const isTime =
            counts.distinct >= kill * messagesBetweenKills && counts.inFlight > leastInFlight * 3
          return isTime ? counts : undefined
        },
        { timeoutMs: 120_000, everyMs: 5 },
      )
      await worker.kill()
      const after = await until('the receiver has seen it', async () => {
        const counts = await receiver.count('/hook')
        return counts.inFlight === 0 ? counts : undefined
      })
      cutByKill.push(after.cut - before.cut)
      worker = await startSluice(scene.variables, { readyMs: 60_000 })
    }
    await until('all is committed', async () => (await scene.lag()) === 0, {
      timeoutMs: 300_000,
      everyMs: 500,
    })
    const counts = await receiver.count('/hook')
    process.stdout.write(
      `${messages} messages, ${kills} kills with ${cutByKill.join(', ')} requests in flight: ` +
        `${counts.delivered} delivered, ${counts.repeats} repeats after a success, ${counts.requests} requests\n`,
    )
    expect(counts.delivered).toBe(messages)
    expect(new Set((await receiver.arrivals('/hook')).keys())).toEqual(new Set(ids))
    expect(cutByKill).toHaveLength(kills)
    expect(Math.min(...cutByKill)).toBeGreaterThanOrEqual(leastInFlight)
  } finally {
    await worker.kill()
    scene.close()
    await receiver.stop()
  }
})
