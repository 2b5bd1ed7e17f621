import { expect, onTestFinished, test } from 'vitest'
import { setShopScene } from '../e2e/scene.ts'
import { startReceiver } from '../support/receiver.ts'
import { startSteadyProducer } from '../support/steady-producer.ts'
import { until } from '../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'

/** The hook fails for so long, then works for as long, and so on. */
const flapMs = 10_000
const flaps = 9
/** What waits for a retry is called back so often, while the hook works and while it fails. */
const recallEveryMs = 7_000
const rungMs = 15_000
const perSecond = 20

type Try = { readonly attempt: number; readonly isTaken: boolean; readonly atMs: number }

test('a hook that flaps every ten seconds, while its messages are called back, gets each message until it takes it, and each try counts once', async () => {
  const startedMs = Date.now()
  let endMs = Infinity
  const isDown = (atMs: number): boolean => atMs < endMs && Math.floor((atMs - startedMs) / flapMs) % 2 === 0
  const tries = new Map<string, Try[]>()
  const receiver = await startReceiver(
    ({ body, headers, atMs }, response) => {
      const id = String(JSON.parse(body.toString()).messageId)
      const isTaken = !isDown(atMs)
      tries.set(id, [
        ...(tries.get(id) ?? []),
        { attempt: Number(headers['x-sluice-attempt']), isTaken, atMs },
      ])
      response.writeHead(isTaken ? 200 : 500).end()
    },
    { isKept: false },
  )
  onTestFinished(() => receiver.stop())
  const scene = await setShopScene(`${receiver.origin}/crm`, {
    SLUICE_RETRY_LADDER: `${rungMs}ms`,
    SLUICE_RETRY_THEN: `${rungMs}ms`,
    SLUICE_LOG_ATTEMPTS: 'false',
  })
  const workers: SluiceProcess[] = []
  for (let count = 0; count < 2; count++) {
    const worker = await startSluice(scene.variables)
    onTestFinished(() => worker.kill())
    workers.push(worker)
  }
  const topic = `${scene.prefix}events`
  const producer = await startSteadyProducer({ topic, sourceId: 'shop', perSecond })
  let recalls = 0
  const begunMs = Date.now()
  await until(
    'the hook has flapped for long enough',
    async () => {
      if (Date.now() > begunMs + recalls * recallEveryMs) {
        recalls++
        const { code } = await runToEnd(['destinations', 'retry-now', 'crm'], scene.variables)
        expect(code).toBe(0)
      }
      return Date.now() > begunMs + flaps * flapMs
    },
    { timeoutMs: 2 * flaps * flapMs },
  )
  await producer.stop()
  endMs = Date.now()
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 120_000 })

  const wrong = producer.ids.flatMap((id) => {
    const all = tries.get(id) ?? []
    const isRight =
      all.every(
        ({ attempt, isTaken }, index) => attempt === index + 1 && isTaken === (index === all.length - 1),
      ) && all.length > 0
    return isRight ? [] : [{ id, all }]
  })
  expect(wrong.slice(0, 5)).toEqual([])
  expect(tries.size).toBe(producer.ids.length)
  // The ladder gives a message one try in each of these times. A recall gives it one more at most.
  const calledBack = workers
    .flatMap(({ log }) => log.filter(({ msg }) => msg === 'messages that wait for a retry are called back'))
    .map(({ time }) => Date.parse(String(time)))
  const early = [...tries].filter(([, all]) => {
    const [first, last] = [all[0]?.atMs ?? 0, all.at(-1)?.atMs ?? 0]
    const byLadder = 1 + Math.floor((last - first) / (0.9 * rungMs))
    const byRecall = calledBack.filter((atMs) => atMs > first - rungMs && atMs <= last).length
    return all.length > byLadder + byRecall
  })
  expect(early.slice(0, 5)).toEqual([])
  const failed = [...tries.values()].flat().filter(({ isTaken }) => !isTaken).length
  process.stdout.write(
    `${producer.ids.length} messages, ${recalls} recalls asked for, ${calledBack.length} made: ${failed} failed tries\n`,
  )
})
