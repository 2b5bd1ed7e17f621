import type { GroupConsumer } from '../kafka/consumer.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'

/**
 * The reasons why a role can't work, in words. While there are any, `/readyz` answers 503 with them. Until a
 * role has started the reason is `starting` (`telemetry.ts`). With several processes each reports its own
 * reasons, and a process that doesn't answer is a reason too (`processes.ts`).
 */

/**
 * The state of a worker. `stalledBy`: why Kafka takes no records. `unreachableBy`: why the proxy can't be
 * used. Both are empty when all is well.
 */
export type WorkerState = {
  readonly isStopping: boolean
  readonly stalledBy: string
  readonly unreachableBy: string
}

/**
 * Returns why a worker is not ready. `stoppedBy`: why all of its units are stopped; empty while at least one
 * unit isn't stopped.
 */
export function workerObstacles(
  member: Pick<GroupConsumer, 'preparing' | 'isWaitingForPredecessor' | 'isJoined' | 'obstacles'>,
  state: WorkerState,
  { stoppedBy }: { readonly stoppedBy: string },
): readonly string[] {
  const reasons: string[] = []
  if (state.isStopping) reasons.push('stopping')
  if (member.preparing.length > 0) reasons.push(`the state of ${member.preparing.length} units is being read`)
  else if (member.isWaitingForPredecessor)
    reasons.push('waiting until no request of the killed process that this one replaces can be in flight')
  else if (!member.isJoined) reasons.push('not joined to the consumer group')
  reasons.push(...member.obstacles)
  const unwritable = state.stalledBy === '' ? stoppedBy : state.stalledBy
  if (unwritable !== '') reasons.push(`Kafka does not accept writes: ${unwritable}`)
  if (state.unreachableBy !== '') reasons.push(`the proxy can not be used: ${state.unreachableBy}`)
  return reasons
}

/**
 * Returns why a gateway is not ready. `unavailable`: why no partition of `events` takes messages; `undefined`
 * while a partition does.
 */
export function gatewayObstacles(isStopping: boolean, unavailable: string | undefined): readonly string[] {
  const reasons: string[] = []
  if (isStopping) reasons.push('stopping')
  if (unavailable !== undefined) reasons.push(`Kafka does not accept messages: ${unavailable}`)
  return reasons
}

/** Sets `sluice_ready` to what `/readyz` says: 1 if there is no reason, else 0. */
export function showReady(
  metrics: Pick<CommonMetrics, 'ready'>,
  role: string,
  reasons: readonly string[],
): void {
  metrics.ready.set({ role }, reasons.length === 0 ? 1 : 0)
}
