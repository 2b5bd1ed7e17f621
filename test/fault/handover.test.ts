import { expect, test } from 'vitest'
import { newIds, setScene, unhurried } from '../e2e/scene.ts'
import { startCountingReceiver } from '../support/counting-receiver.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'

/**
 * Starts a receiver and a worker, and waits until the worker is in the middle of a backlog of messages. The
 * receiver has requests in flight at any time, and fails the first request of every 20th message.
 */
async function underLoad(messages: number) {
  const receiver = await startCountingReceiver()
  await receiver.behave('/hook', { delayMs: [100, 200], failFirstOfEvery: 20 })
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'crm', sources: ['shop'], maxInFlight: 60, hooks: [{ url: receiver.url('/hook') }] },
      ],
    },
    variables: { ...unhurried, SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' },
  })
  const distinct = async () => (await receiver.count('/hook')).distinct
  const first = await startSluice(scene.variables)
  await scene.send('shop', newIds(messages))
  await until('a part has arrived', async () => (await distinct()) > messages / 5)
  const allIsCommitted = () =>
    until('all is committed', async () => (await scene.lag()) === 0, { everyMs: 250, timeoutMs: 60_000 })
  return {
    first,
    distinct,
    join: () => startSluice(scene.variables),
    allIsCommitted,
    counted: async () => receiver.count('/hook'),
    end: async () => {
      scene.close()
      await receiver.stop()
    },
  }
}

test('partitions that move to a worker that joins under load, and to it when the first stops, are not repeated', async () => {
  const messages = 8_000
  const { first, join, distinct, allIsCommitted, counted, end } = await underLoad(messages)
  const second = await join()
  await until('more has arrived', async () => (await distinct()) > (messages * 2) / 5)
  const third = await join()
  await until('more has arrived', async () => (await distinct()) > (messages * 3) / 5)
  await first.terminate()
  await until('more has arrived', async () => (await distinct()) > (messages * 4) / 5)
  await third.terminate()
  await allIsCommitted()
  expect(await counted()).toMatchObject({ delivered: messages, repeats: 0 })
  await second.kill()
  await end()
})

test('partitions of a worker that is killed under load lose nothing', async () => {
  const messages = 5_000
  const { first, join, distinct, allIsCommitted, counted, end } = await underLoad(messages)
  const second = await join()
  await until('more has arrived', async () => (await distinct()) > (messages * 3) / 5)
  await second.kill()
  await allIsCommitted()
  const { delivered, repeats } = await counted()
  process.stdout.write(`${messages} messages, a join and a kill: ${repeats} repeats after a success\n`)
  expect(delivered).toBe(messages)
  await first.kill()
  await end()
})
