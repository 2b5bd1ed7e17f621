import type { Catalog } from '../../catalog/catalog.ts'
import type { DestinationHealth } from '../../health/health-board.ts'
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

/** How many messages of a destination wait for their turn, and for their next try. `undefined`: not known. */
export type WhatWaits = Pick<DestinationHealth, 'messages' | 'retrying' | 'retryingAtMost'>

/** What a preview says about an order to give up what waits. */
export function dropPreviewData(destinationId: string, { messages, retrying, retryingAtMost }: WhatWaits) {
  return {
    destination: destinationId,
    isPreview: true,
    waiting: messages ?? null,
    onRetryTopics: retrying ?? null,
    onRetryTopicsAtMost: retryingAtMost ?? null,
  }
}

/** Returns an order as the HTTP API and `--json` show it. */
export function dropData({ destinationId, by, atMs }: GivenDrop, waiting: WhatWaits) {
  return {
    ...dropPreviewData(destinationId, waiting),
    isPreview: false,
    askedAt: timeOf(atMs),
    askedBy: by,
    workersKnowWithinSeconds,
  }
}
