import type { Catalog } from '../../catalog/catalog.ts'
import type { RecallOrder } from '../../recall/order-record.ts'
import { noticesReadEveryMs } from '../start/settings.ts'
import type { Pauses } from './known-pauses.ts'
import { type AskedRetry, timeOf } from './pause-desk.ts'
import type { DeskRefusal } from './replay-desk.ts'

/**
 * The time in which a worker that runs reads an order, in seconds. The second half is for the reading itself.
 */
export const workersKnowWithinSeconds = (2 * noticesReadEveryMs) / 1_000

/** Returns why nothing can be tried now for a destination, or `undefined` if it can. */
export function refusalOf(
  { destinationId, messageId }: RecallOrder,
  { destinations }: Pick<Catalog, 'destinations'>,
  pauses: Pauses,
): DeskRefusal | undefined {
  const destination = destinations.get(destinationId)
  const name = JSON.stringify(destinationId)
  if (destination === undefined)
    return { ok: false, kind: 'notFound', problem: `The catalog has no destination ${name}.` }
  const areAllGone = pauses.goneHooks(destination).length === destination.hooks.length
  if (pauses.has(destination) && (messageId !== undefined || !areAllGone)) {
    const problem = `Sluice has paused the destination ${name}: resume it instead, which also tries its messages now.`
    return { ok: false, kind: 'conflict', problem }
  }
  if (destination.state === 'on') return undefined
  const problem = `The destination ${name} is ${destination.state} in the catalog: what waits is tried when its state becomes on.`
  return { ok: false, kind: 'conflict', problem }
}

/** What a preview says about an order. */
export function previewData({ destinationId, messageId }: RecallOrder) {
  return { destination: destinationId, messageId: messageId ?? null, isPreview: true, waiting: null }
}

/** Returns an order as the HTTP API and `--json` show it. */
export function retryData({ atMs, by, ...order }: AskedRetry) {
  return {
    ...previewData(order),
    isPreview: false,
    askedAt: timeOf(atMs),
    askedBy: by,
    workersKnowWithinSeconds,
  }
}
