import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { newIds, type Scene, setShopScene } from '../scene.ts'

/**
 * A session timeout that is longer than any of the tests. So a test fails if a worker waits for the end of a
 * session.
 */
const sessionTimeout = '2m'
/**
 * Settings of the workers. A new process waits for `settleMs`, until no request of the killed process can be
 * in flight. This is the delivery timeout of 5 s, and 3 s more. On a busy machine, a process needs seconds to start.
 */
const variables = { SLUICE_KAFKA_SESSION_TIMEOUT: sessionTimeout, SLUICE_DELIVERY_TIMEOUT: '5s' }
const settleMs = 8_000

const resting = 'requests of the killed process that this one replaces may still be in flight'
const removal = 'removed a former process of this worker from the group'

let receiver: CountingReceiver

beforeAll(async () => {
  receiver = await startCountingReceiver()
})

afterAll(async () => {
  await receiver.stop()
})

async function start(
  own: Scene,
  instanceId: string,
  { processes = 1, isUnready = false } = {},
): Promise<SluiceProcess> {
  const worker = await startSluice(
    {
      ...own.variables,
      SLUICE_KAFKA_INSTANCE_ID: instanceId,
      SLUICE_WORKER_PROCESSES: String(processes),
    },
    { isUnready },
  )
  onTestFinished(() => worker.kill())
  return worker
}

const linesOf = ({ log }: SluiceProcess, text: string) => log.filter(({ msg }) => msg.startsWith(text))

test('a worker with an instance id that is stopped and started again: nobody joins for it, and nothing is repeated', async () => {
  const own = await setShopScene(receiver.url('/planned'), variables)
  const other = await start(own, 'pod-0')
  const before = await start(own, 'pod-1')
  await until('they share the work', () => linesOf(other, 'joined the group').length === 2)
  const sent = (count: number) => own.send('shop', newIds(count))
  await sent(200)
  await until('both deliver', () => [other, before].every((one) => linesOf(one, 'attempt').length > 0))
  await before.terminate()
  await sent(200)
  const again = await start(own, 'pod-1')
  await sent(200)
  await until('all is delivered', async () => (await own.lag()) === 0)
  expect(await receiver.count('/planned')).toMatchObject({ requests: 600, distinct: 600 })
  expect(linesOf(other, 'joined the group')).toHaveLength(2)
  expect(linesOf(again, 'joined the group')).toHaveLength(1)
})

describe('a worker with an instance id that was killed and is started again', () => {
  test('joins in seconds, and the others deliver meanwhile and need not wait for its session', async () => {
    const own = await setShopScene(receiver.url('/others'), variables)
    const other = await start(own, 'pod-0')
    const former = await start(own, 'pod-1')
    await until('they share the work', () => linesOf(other, 'joined the group').length === 2)
    await own.send('shop', newIds(60))
    await until('all is delivered and committed', async () => (await own.lag()) === 0)

    await former.kill()
    const again = await start(own, 'pod-1', { isUnready: true })
    await until('it rests', () => linesOf(again, resting).length > 0)
    const readiness = await fetch(`http://127.0.0.1:${again.httpPort}/readyz`)
    expect(await readiness.text()).toBe(
      'waiting until no request of the killed process that this one replaces can be in flight\n',
    )
    const before = linesOf(other, 'attempt').length
    await own.send('shop', newIds(60))
    await until('the other one delivers its part', () => linesOf(other, 'attempt').length > before)
    await until('the rest is delivered', async () => (await own.lag()) === 0)
    expect(linesOf(other, 'joined the group')).toHaveLength(2)
    expect(linesOf(again, 'joined the group')).toHaveLength(1)
    expect(await receiver.count('/others')).toMatchObject({ requests: 120, distinct: 120 })
  })

  test('lets the requests of the process that it replaces come to an end first', async () => {
    // A new endpoint gets at most ten requests at once from all processes.
    const count = 5
    await receiver.behave('/slow', { delayMs: 1_500 })
    const own = await setShopScene(receiver.url('/slow'), variables)
    const former = await start(own, 'pod-0')
    await own.send('shop', newIds(count))
    await until('all are in flight', async () => (await receiver.count('/slow')).inFlight === count)
    await former.kill()
    const killedAtMs = Date.now()
    await start(own, 'pod-0')
    await until('all is delivered', async () => (await own.lag()) === 0)
    const arrivals = [...(await receiver.arrivals('/slow')).values()]
    expect(arrivals.map(({ length }) => length)).toEqual(Array.from({ length: count }, () => 2))
    const firstRepeatMs = Math.min(...arrivals.map(([, repeatMs = 0]) => repeatMs))
    expect(firstRepeatMs - killedAtMs).toBeGreaterThan(settleMs)
  })

  test('stops at once while it rests', async () => {
    const own = await setShopScene(receiver.url('/stopped'), { ...variables, SLUICE_DELIVERY_TIMEOUT: '1m' })
    const former = await start(own, 'pod-0')
    await former.kill()
    const again = await start(own, 'pod-0', { isUnready: true })
    await until('it rests', () => linesOf(again, resting).length > 0)
    const { code, tookMs } = await again.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(2_000)
    expect(again.log.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
  })

  test('does so with each of its processes, also those that it has no more', async () => {
    const own = await setShopScene(receiver.url('/processes'), variables)
    const former = await start(own, 'pod-0', { processes: 3 })
    const pids = await until('all are at work', () => {
      const started = linesOf(former, 'process started')
      return started.length === 3 ? started.map(({ pid }) => Number(pid)) : undefined
    })
    for (const pid of [former.pid, ...pids]) process.kill(pid, 'SIGKILL')
    await former.exited
    const again = await start(own, 'pod-0', { processes: 2 })
    await until('the third one is out of the group', () => linesOf(again, removal).length === 1)
    await own.send('shop', newIds(60))
    await until('all is delivered', async () => (await own.lag()) === 0)
    expect(await receiver.count('/processes')).toMatchObject({ requests: 60, distinct: 60 })
  })
})
