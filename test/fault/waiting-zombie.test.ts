import { expect, onTestFinished, test } from 'vitest'
import { newIds, setScene } from '../e2e/scene.ts'
import { startCountingReceiver } from '../support/counting-receiver.ts'
import { countRecords } from '../support/kafka.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { type CatalogData, startSluice } from '../support/worker-process.ts'

const path = '/crm'
const perSecond = 40
const count = 1_500
/**
 * What the destination takes in the last second before the freeze has no marks. On a busy machine, the marks of a
 * further second are late.
 */
const mostRepeats = 2 * perSecond

/** A request that was sent before the freeze may be counted so much later. */
const inFlightMs = 1_000
/** The requests that the worker has just begun when it is frozen. They arrive when it wakes up. */
const mostBegun = 4

function waitingAt(worker: SluiceProcess): Promise<number> {
  return worker.metric('sluice_waiting_messages')
}

test('a worker that wakes up when others have its queues writes its marks and late appends, and nothing is lost, nor repeated by their next owner', async () => {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const catalog: CatalogData = {
    sources: [{ id: 'shop' }],
    destinations: [
      {
        id: 'crm',
        sources: ['shop'],
        rateLimit: { perSecond, burst: 1 },
        hooks: [{ url: receiver.url(path) }],
      },
    ],
  }
  const scene = await setScene({
    catalog,
    variables: { SLUICE_REPEATS_WINDOW: '0s', SLUICE_LOG_ATTEMPTS: 'false' },
  })
  onTestFinished(() => scene.close())
  const start = async (): Promise<SluiceProcess> => {
    const worker = await startSluice(scene.variables, { readyMs: 60_000 })
    onTestFinished(async () => {
      if (worker.isRunning) await worker.kill()
    })
    return worker
  }
  const arrived = async () => (await receiver.count(path)).distinct

  const zombie = await start()
  const ids = newIds(count)
  await scene.send('shop', ids)
  await until('the rest waits', async () => (await waitingAt(zombie)) > count / 2)
  await until('some came out of the queue', async () => (await arrived()) > 200)
  // It gets more in the moment in which it stops, and appends it when it wakes up.
  const later = newIds(count)
  const queued = await countRecords(`${scene.prefix}waiting`)
  const sending = scene.send('shop', later)
  await until('it appends', async () => (await countRecords(`${scene.prefix}waiting`)) > queued)
  process.kill(zombie.pid, 'SIGSTOP')
  const frozenMs = Date.now()
  await sending
  const second = await start()
  await until('the second delivers', async () => (await waitingAt(second)) > 0, { timeoutMs: 60_000 })
  const before = await arrived()
  await until('it has delivered some', async () => (await arrived()) > before + 100, { timeoutMs: 60_000 })
  const joins = () => zombie.log.filter(({ msg }) => msg === 'joined the group').length
  const joinedBefore = joins()
  process.kill(zombie.pid, 'SIGCONT')
  await until('it has joined again', () => joins() > joinedBefore, { timeoutMs: 60_000 })
  await until('it has queues again', async () => (await waitingAt(zombie)) > 0, { timeoutMs: 60_000 })
  await zombie.terminate()
  await until('all came', async () => (await arrived()) >= 2 * count, { timeoutMs: 180_000 })
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
  const { repeats } = await receiver.count(path)
  expect(repeats).toBeLessThanOrEqual(mostRepeats)
  await second.terminate()
  // The next owner knows all marks, also those that came late.
  await start()
  const last = newIds(1)
  await scene.send('shop', last)
  await until('a later one came', async () => (await arrived()) > 2 * count)
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
  const end = await receiver.count(path)
  const arrivals = await receiver.arrivals(path)
  const twice = [...arrivals.values()].filter(({ length }) => length > 1)
  const earliestMs = frozenMs - Math.min(frozenMs, ...twice.map(([first = 0]) => first))
  process.stdout.write(
    `${2 * count} messages and a worker that woke up: ${end.repeats} repeats, which first came up to ${earliestMs} ms before\n`,
  )
  expect(end).toMatchObject({ distinct: 2 * count + 1, repeats })
  expect(new Set(arrivals.keys())).toEqual(new Set([...ids, ...later, ...last]))
  // Nothing else comes twice because the worker woke up.
  const late = twice.filter(([first = Infinity]) => first > frozenMs + inFlightMs)
  expect(late.length).toBeLessThanOrEqual(mostBegun)
})
