import { batchBytes } from '../delivery/batch/batch-body.ts'
import type { Endpoint } from '../delivery/endpoint.ts'
import type { Lanes } from '../delivery/lanes/lanes-ports.ts'
import { isOwnRequest } from '../shape/shaper.ts'
import { type AttemptPlan, planAttempt, type PlanOptions } from './attempt-plan.ts'
import type { Delivery } from './delivery.ts'
import { forgetEditedHooks } from './edited-hooks.ts'
import type { Judging } from './judging.ts'
import { ready, type Ruled, type Rules } from './rules.ts'
import type { StoppedUnits } from './stopped-units.ts'

type GatherOptions = {
  readonly lanes: Lanes<Delivery>
  readonly stopped: StoppedUnits
  readonly plan: PlanOptions
  readonly catalog: () => object
  readonly rules: Pick<Rules, 'apply' | 'end'>
  readonly judging: Pick<Judging, 'isNeededAgainBy'>
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
 * it at the beginning. They have the same hooks before them, and belong to the same replay. Those that the
 * rules of the destination don't let through are ended on the way. The first other delivery of the lane that
 * doesn't fit ends the batch, and leads the next one.
 */
export function gatherBatch(
  { lead, endpoint, plan, startedMs }: BatchPlan,
  options: GatherOptions,
): readonly Delivery[] {
  const { batch } = endpoint.definition
  const gathered = [lead]
  if (batch === undefined) return gathered
  const { lanes, stopped, catalog, rules, judging } = options
  const nowMs = performance.now()
  const most = Math.min(batch.maxMessages, ...plan.hooks.map(({ takenSize }) => takenSize.mostAt(nowMs)))
  let bytes = bytesOf(lead)
  const isUsual = plan.sick.length === 0 && hasNoFailures(lead)
  const last: { ruled: Ruled } = { ruled: ready }
  const leaves = (next: Delivery): boolean => {
    if (gathered.length >= most) return false
    if (next.replayJob !== lead.replayJob || stopped.has(next) || judging.isNeededAgainBy(next)) return false
    // A newer value of its property waits, and takes its place when it leads a batch.
    if (next.orderingKey?.first !== undefined) return false
    forgetEditedHooks(next, endpoint.definition)
    if (!isUsual || !hasNoFailures(next)) {
      const its = planAttempt(next, endpoint, options.plan, startedMs)
      if (!('hooks' in its) || !isSamePlan(its, plan)) return false
    }
    last.ruled = rules.apply(next, endpoint.definition)
    if (last.ruled.kind !== 'ready') return last.ruled.kind !== 'waits'
    if (isOwnRequest(next.shaped)) return false
    return batchBytes(batch.format, gathered.length + 1, bytes + bytesOf(next)) <= batch.maxBytes
  }
  for (let next = lanes.takeMore(lead, leaves); next !== undefined; next = lanes.takeMore(lead, leaves)) {
    const { ruled } = last
    if (ruled.kind === 'filtered' || ruled.kind === 'failed') {
      rules.end(next, ruled)
      continue
    }
    next.endpoint = endpoint
    next.seenIn = catalog()
    gathered.push(next)
    bytes += bytesOf(next)
  }
  return gathered
}

/** Returns the bytes that are sent of a delivery, which a mapping may have made. */
function bytesOf({ shaped, body }: Delivery): number {
  return shaped === undefined ? body.length : shaped.body.length
}

/**
 * Returns true if a delivery may be sent to all hooks of its destination. While these are well, all such
 * deliveries have the same plan.
 */
function hasNoFailures({ failedHooks, notBeforeMs }: Delivery): boolean {
  return failedHooks.length === 0 && notBeforeMs.size === 0
}

function isSamePlan(one: AttemptPlan, other: AttemptPlan): boolean {
  return (
    one.tryClass === other.tryClass &&
    isSameList(one.hooks, other.hooks) &&
    isSameList(one.sick, other.sick) &&
    isSameList(one.withoutLogin, other.withoutLogin)
  )
}

function isSameList<T>(one: readonly T[], other: readonly T[]): boolean {
  return one === other || (one.length === other.length && one.every((item, at) => item === other[at]))
}
