import { onTestFinished } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { type CatalogData, startSluice } from '../support/worker-process.ts'
import { type Scene, setScene } from './scene.ts'

export const path = '/crm'

type Tried = {
  readonly scene: Scene
  readonly receiver: CountingReceiver
  readonly worker: SluiceProcess
  readonly catalogOf: (settings: Partial<CatalogData['destinations'][number]>) => CatalogData
}

/** Starts a worker with one destination, whose endpoint counts what comes. */
export async function tryOn(
  settings: Partial<CatalogData['destinations'][number]>,
  variables: Readonly<Record<string, string>> = {},
): Promise<Tried> {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const catalogOf: Tried['catalogOf'] = (own) => ({
    sources: [{ id: 'shop' }],
    destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url(path) }], ...own }],
  })
  const scene = await setScene({
    catalog: catalogOf(settings),
    variables: {
      SLUICE_TOPICS_PARTITIONS: '1',
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_KAFKA_SESSION_TIMEOUT: '45s',
      ...variables,
    },
  })
  onTestFinished(() => scene.close())
  const worker = await startSluice(scene.variables)
  onTestFinished(async () => {
    if (worker.isRunning) await worker.kill()
  })
  return { scene, receiver, worker, catalogOf }
}

/** The ids of messages that arrived, by their last arrival. */
export async function lastArrived(receiver: CountingReceiver): Promise<readonly string[]> {
  const arrivals = [...(await receiver.arrivals(path))]
  return arrivals.toSorted(([, one], [, other]) => (one.at(-1) ?? 0) - (other.at(-1) ?? 0)).map(([id]) => id)
}
