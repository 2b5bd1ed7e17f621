import { afterAll, beforeAll, expect, test } from 'vitest'
import { newIds, type Scene, setScene, unhurried } from '../../e2e/scene.ts'
import { produce } from '../../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'

/** So many messages of a customer are answered with an error, and so many of another one arrive beside them. */
const masked = 200
const healthy = 40

/** Nearly repeats itself, and the answer repeats it. A search for it must not begin anew at each character. */
const header = `Bearer ${'a'.repeat(4_000)}b${'a'.repeat(4_000)}`
const text = 'a'.repeat(10 * 1_024)

/** The messages of others may take so many times as long. Quadratic work makes it ten times or more. */
const most = 4

let receiver: Receiver
let scene: Scene
let worker: SluiceProcess

beforeAll(async () => {
  const refuses = answer(400, {}, text)
  receiver = await startReceiver({ '/healthy': answer(200), '/usual': refuses, '/hostile': refuses })
  const to = (id: string, headers: Record<string, string>) => {
    return { id, sources: [id], hooks: [{ url: `${receiver.origin}/${id}`, headers }] }
  }
  scene = await setScene({
    catalog: {
      sources: ['healthy', 'usual', 'hostile'].map((id) => ({ id })),
      destinations: [
        to('healthy', {}),
        to('usual', { Authorization: 'Bearer planted-secret' }),
        to('hostile', { Authorization: header }),
      ],
    },
    variables: {
      ...unhurried,
      SLUICE_TOPICS_PARTITIONS: '1',
      SLUICE_WORKER_PROCESSES: '1',
      SLUICE_ATTEMPTS_ANSWERS: 'true',
    },
  })
  worker = await startSluice(scene.variables)
})

afterAll(async () => {
  await worker?.kill()
  scene?.close()
  await receiver?.stop()
})

function send(source: string, count: number): Promise<void> {
  const records = newIds(count).map((messageId) => ({
    partition: 0,
    key: messageId,
    value: JSON.stringify({ type: 'track', messageId, userId: messageId, event: 'Sent' }),
    headers: { 'source-id': source },
  }))
  return produce(`${scene.prefix}events`, records)
}

/**
 * Sends messages of a customer whose endpoint refuses all of them, and meanwhile those of the healthy one. Returns
 * the median of the times in which these arrive, in milliseconds.
 */
async function medianBeside(source: 'usual' | 'hostile'): Promise<number> {
  const [before, refused] = [receiver.requestsTo('/healthy').length, receiver.requestsTo(`/${source}`).length]
  await send(source, masked)
  await until('the first is refused', () => receiver.requestsTo(`/${source}`).length > refused)
  const sentMs = Date.now()
  await send('healthy', healthy)
  await until(
    'all messages are settled',
    async () => {
      const arrived = receiver.requestsTo(`/${source}`).length - refused
      return arrived === masked && (await scene.lag()) === 0
    },
    { timeoutMs: 60_000 },
  )
  const times = receiver
    .requestsTo('/healthy')
    .slice(before)
    .map(({ atMs }) => atMs - sentMs)
    .toSorted((one, other) => one - other)
  expect(times).toHaveLength(healthy)
  return times[healthy / 2] ?? Number.NaN
}

test('answers that nearly have a long secret in them delay the messages of others no more than usual answers', async () => {
  // The first messages of each kind also open connections and compile the code.
  await medianBeside('usual')
  await medianBeside('hostile')
  const ratios: number[] = []
  // Only a fault makes all of them large. A busy machine delays some.
  for (let round = 0; round < 4 && Math.min(...ratios, Infinity) >= most; round++) {
    const usualMs = await medianBeside('usual')
    ratios.push((await medianBeside('hostile')) / usualMs)
  }
  expect(Math.min(...ratios)).toBeLessThan(most)
})
