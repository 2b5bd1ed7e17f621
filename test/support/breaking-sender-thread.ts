import { parentPort, workerData } from 'node:worker_threads'

/** In place of a sender's thread: at the first requests it breaks, or stands still for good, as `allowAddresses` says. */
const { allowAddresses }: { allowAddresses: readonly string[] } = workerData
const [ending] = allowAddresses

parentPort?.on('message', () => {
  if (ending === 'breaks') throw new Error('broken')
  if (ending === 'ends') process.exit(3)
  for (;;);
})
