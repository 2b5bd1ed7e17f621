import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { RunningWorker } from '../support/running-worker.ts'
import type { Stage } from '../support/stage.ts'
import { sharedSecret } from '../support/worker-variables.ts'
import { type Receiver, startReceiver } from './receiver-process.ts'
import { openUpstream, spaceId, type Upstream } from './upstream.ts'

/** Topics, a store and a receiver that only one part of the run uses. */
export type Stand = {
  receiver: Receiver
  upstream: Upstream
  /** Name of the topic with the states. */
  memberships: string
  startWorker(): Promise<RunningWorker>
  /** Deletes the store on disk. No worker may run meanwhile. */
  removeStore(): void
  close(): Promise<void>
}

export async function openStand(stage: Stage, folder: string): Promise<Stand> {
  const receiver = await startReceiver()
  const stateFolder = join(folder, 'state')
  const catalogFile = join(folder, 'catalog.yaml')
  writeFileSync(
    catalogFile,
    stringify({
      sources: [{ id: spaceId, kind: 'audiences' }],
      destinations: [
        { id: 'customer', sources: [spaceId], sharedSecret, hooks: [{ url: `${receiver.origin}/hook` }] },
      ],
    }),
  )
  const scene = await stage.setScene({
    // `setScene` needs a fleet, but the worker doesn't use this one. The worker's catalog is `catalogFile`,
    // which names the receiver above.
    fleet: { count: 1 },
    variables: {
      SLUICE_CATALOG_FILE: catalogFile,
      SLUICE_STATE_FOLDER: stateFolder,
      SLUICE_DELIVERY_MAX_IN_FLIGHT: '256',
      // On a slow machine deliveries wait longer. They must not be parked because of this.
      SLUICE_DELIVERY_LANE_PATIENCE: '1m',
      SLUICE_DELIVERY_LANE_WAIT: '10m',
      // A log line for each of a million deliveries would be more text than this process can search.
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
  const topicOf = (name: string): string => scene.topic.replace(/events$/, name)
  const upstream = await openUpstream(stage.brokers, topicOf('audience-changes'))
  return {
    receiver,
    upstream,
    memberships: topicOf('memberships'),
    startWorker: () => scene.startWorker(),
    removeStore: () => rmSync(stateFolder, { recursive: true, force: true }),
    async close() {
      await upstream.close()
      await receiver.stop()
      rmSync(stateFolder, { recursive: true, force: true })
    },
  }
}
