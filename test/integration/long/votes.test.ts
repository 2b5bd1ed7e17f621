import { expect, onTestFinished, test } from 'vitest'
import { answer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'
import { newIds, setScene } from '../../e2e/scene.ts'

/** How long a URL fails before its customer is told. The network is judged three times before that. */
const failingAfterMs = 25_000

async function startAll(hosts: readonly string[], script: Script): Promise<readonly Receiver[]> {
  const started = await Promise.all(hosts.map((host) => startReceiver(script, { host })))
  onTestFinished(async () => void (await Promise.all(started.map((one) => one.stop()))))
  return started
}

const numbered = (count: number, of: (at: number) => string): readonly string[] =>
  Array.from({ length: count }, (_, at) => of(at))

/** Returns a function that makes a destination of a source for a receiver. */
const to = (source: string) => (receiver: Receiver, at: number) => {
  const id = `${source}${at}`
  return { id, sources: [source], hooks: [{ url: `${receiver.origin}/${id}` }] }
}

test('25 of 46 origins that are ports of one machine fail together, and another customer is told that its endpoint fails', async () => {
  let isDown = false
  const script: Script = (request, response, nth) =>
    answer(isDown && request.path === '/shop0' ? 500 : 200, { connection: 'close' })(request, response, nth)
  const [ops] = await startAll(['127.0.5.1'], script)
  const shops = await startAll(
    numbered(21, (at) => `127.0.4.${at + 1}`),
    script,
  )
  const ports = await startAll(
    numbered(25, () => '127.0.0.1'),
    script,
  )
  const scene = await setScene({
    catalog: {
      sources: ['shop', 'ports', 'sluice'].map((id) => ({ id })),
      destinations: [
        ...shops.map(to('shop')),
        ...ports.map(to('ports')),
        { id: 'ops', sources: ['sluice'], hooks: [{ url: `${ops?.origin}/ops` }] },
      ],
    },
    variables: {
      SLUICE_TOPICS_PARTITIONS: '4',
      SLUICE_WORKER_PROCESSES: '1',
      SLUICE_NOTICES_FAILING_AFTER: `${failingAfterMs}ms`,
      SLUICE_RETRY_LADDER: '2s',
      SLUICE_RETRY_THEN: '2s',
      SLUICE_RETRY_LIMIT: '10m',
      SLUICE_BREAKER_MAX_OPEN_FOR: '5s',
    },
  })
  onTestFinished(() => scene.close())
  const worker = await startSluice(scene.variables)
  onTestFinished(() => worker.kill())
  const send = async (): Promise<void> => {
    for (const source of ['shop', 'ports']) await scene.send(source, newIds(2))
  }
  const told = (): readonly string[] =>
    ops?.requestsTo('/ops').map(({ body }) => JSON.parse(String(body)).properties.destination) ?? []
  await until('all of them work', async () => {
    await send()
    return (await worker.metric('sluice_egress_servers', { state: 'working' })) >= 22
  })
  isDown = true
  await Promise.all(ports.map((one) => one.stop()))
  const suspected = new Set<number>()
  await until(
    'the customer is told, and those with the ports too',
    async () => {
      await send()
      suspected.add(await worker.metric('sluice_egress_suspect'))
      return told().includes('shop0') && told().some((id) => id.startsWith('ports'))
    },
    { timeoutMs: 4 * failingAfterMs },
  )
  expect([...suspected]).toEqual([0])
  expect(await worker.metric('sluice_egress_withheld_failures_total')).toBe(0)
})
