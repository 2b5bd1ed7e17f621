import { batchBytes } from '../delivery/batch/batch-body.ts'
import type { Endpoint } from '../delivery/endpoint.ts'
import type { Lanes } from '../delivery/lanes/lanes-ports.ts'
import { type AttemptPlan, planAttempt, type PlanOptions } from './attempt-plan.ts'
import type { Delivery } from './delivery.ts'
import { forgetEditedHooks } from './edited-hooks.ts'
import type { StoppedUnits } from './stopped-units.ts'

type GatherOptions = {
  readonly lanes: Lanes<Delivery>
  readonly stopped: StoppedUnits
  readonly plan: PlanOptions
  readonly catalog: () => object
}

/** A batch that is to be sent: the delivery whose turn came, and what is planned for it. */
export type BatchPlan = {
  readonly lead: Delivery
  readonly endpoint: Endpoint
  readonly plan: AttemptPlan
  readonly startedMs: number
}

/**
 * Takes the deliveries from the lane of `lead` that are sent with it, in their order, and returns them with
 * it at the beginning. They have the same hooks before them, and belong to the same replay. The first
 * delivery of the lane that doesn't fit ends the batch, and leads the next one.
 */
export function gatherBatch(
  { lead, endpoint, plan, startedMs }: BatchPlan,
  options: GatherOptions,
): readonly Delivery[] {
  const { batch } = endpoint.definition
  const gathered = [lead]
  if (batch === undefined) return gathered
  const { lanes, stopped, catalog } = options
  let bytes = lead.bytes
  const fits = (next: Delivery): boolean => {
    if (gathered.length >= batch.maxMessages) return false
    if (batchBytes(batch.format, gathered.length + 1, bytes + next.bytes) > batch.maxBytes) return false
    if (next.replayJob !== lead.replayJob || stopped.has(next)) return false
    // A newer value of its property waits, and takes its place when it leads a batch.
    if (next.orderingKey?.first !== undefined) return false
    forgetEditedHooks(next, endpoint.definition)
    const its = planAttempt(next, endpoint, options.plan, startedMs)
    return 'hooks' in its && isSamePlan(its, plan)
  }
  for (let next = lanes.takeMore(lead, fits); next !== undefined; next = lanes.takeMore(lead, fits)) {
    next.endpoint = endpoint
    next.seenIn = catalog()
    gathered.push(next)
    bytes += next.bytes
  }
  return gathered
}

function isSamePlan(one: AttemptPlan, other: AttemptPlan): boolean {
  return (
    one.tryClass === other.tryClass && isSameList(one.hooks, other.hooks) && isSameList(one.sick, other.sick)
  )
}

function isSameList<T>(one: readonly T[], other: readonly T[]): boolean {
  return one === other || (one.length === other.length && one.every((item, at) => item === other[at]))
}
