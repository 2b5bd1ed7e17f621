import { expect, onTestFinished, test } from 'vitest'
import { startCountingReceiver } from '../../support/counting-receiver.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'
import { newIds, setShopScene, unhurried } from '../scene.ts'

const mib = 1024 ** 2
const count = 12_000

test('a worker has little room for young objects until it is busy, and takes the memory of repeats by then', async () => {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await setShopScene(receiver.url('/crm'), {
    ...unhurried,
    SLUICE_WORKER_PROCESSES: '1',
    SLUICE_LOG_ATTEMPTS: 'false',
  })
  const worker = await startSluice(scene.variables)
  onTestFinished(() => worker.kill())
  const youngMb = async () =>
    (await worker.metric('nodejs_heap_space_size_total_bytes', { space: 'new' })) / mib
  const residentMb = async () => (await worker.metric('process_resident_memory_bytes')) / mib
  // V8 counts both halves of the space for young objects. They add up to 32 MiB in a process whose space has
  // grown.
  expect(await youngMb()).toBeLessThan(16)
  const idleMb = await residentMb()
  let sent = 0
  // V8 shrinks the space soon after the last delivery, so the test measures it while it sends more messages.
  await until(
    'the room for young objects has grown',
    async () => {
      await scene.send('shop', newIds(count))
      sent += count
      await until('all is delivered', async () => (await receiver.count('/crm')).requests === sent)
      return (await youngMb()) >= 32
    },
    { timeoutMs: 60_000 },
  )
  // The table in which the worker remembers messages, so that it can drop repeats, takes 36 MiB. The space
  // for young objects takes more than 16 MiB.
  expect((await residentMb()) - idleMb).toBeGreaterThan(45)
})
