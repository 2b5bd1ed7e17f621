import type { Catalog } from '../../catalog/catalog.ts'
import type { KnownHealth } from './health-reading.ts'
import { type GivenDrop, timeOf } from './pause-desk.ts'
import type { DeskRefusal } from './replay-desk.ts'
import { workersKnowWithinSeconds } from './retry-now.ts'

/** Returns why what waits for a destination can't be given up, or `undefined` if it can. */
export function refusalToDrop(
  destinationId: string,
  { destinations }: Pick<Catalog, 'destinations'>,
): DeskRefusal | undefined {
  if (destinations.has(destinationId)) return undefined
  const name = JSON.stringify(destinationId)
  const problem = `The catalog has no destination ${name}: what waits for it becomes dead letters without an order.`
  return { ok: false, kind: 'notFound', problem }
}

/** Returns how many messages wait in a destination's queue. `undefined`: not known. */
export function messagesOf({ board, nowMs }: KnownHealth, destinationId: string): number | undefined {
  return board?.of(destinationId, nowMs).messages
}

/** What a preview says about an order to give up what waits. */
export function dropPreviewData(destinationId: string, waiting: number | undefined) {
  return { destination: destinationId, isPreview: true, waiting: waiting ?? null, onRetryTopics: null }
}

/** Returns an order as the HTTP API and `--json` show it. */
export function dropData({ destinationId, by, atMs }: GivenDrop, waiting: number | undefined) {
  return {
    ...dropPreviewData(destinationId, waiting),
    isPreview: false,
    askedAt: timeOf(atMs),
    askedBy: by,
    workersKnowWithinSeconds,
  }
}
