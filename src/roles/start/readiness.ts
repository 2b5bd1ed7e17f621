import type { CommonMetrics } from '../../telemetry/common-metrics.ts'
import type { GroupConsumer } from '../../kafka/group/consumer.ts'

// The reasons why a role can't work, in words. While there is a reason, `/readyz` answers 503 and lists the
// reasons. Until a role has started, the reason is `starting` (`telemetry.ts`). If a worker has several
// processes, each process reports its own reasons, and a process that doesn't answer is a further reason
// (`processes.ts`).

/**
 * The state of a worker. `stalledBy` says why Kafka takes no records. It is empty while Kafka takes records.
 * `unreachableBy` says why the proxy can't be used. It is empty while the proxy can be used.
 */
export type WorkerState = {
  readonly isStopping: boolean
  readonly stalledBy: string
  readonly unreachableBy: string
}

/**
 * Returns the reasons why a worker isn't ready. `stoppedBy` says why all of the worker's units are stopped.
 * It is empty while at least one unit isn't stopped.
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
 * Returns the reasons why a gateway isn't ready. `unavailable` says why no partition of `events` takes
 * messages. It is `undefined` while a partition takes messages.
 */
export function gatewayObstacles(isStopping: boolean, unavailable: string | undefined): readonly string[] {
  const reasons: string[] = []
  if (isStopping) reasons.push('stopping')
  if (unavailable !== undefined) reasons.push(`Kafka does not accept messages: ${unavailable}`)
  return reasons
}

/**
 * Returns the reason why a gateway with this number of sources isn't ready, if there is one. A gateway
 * without a source answers 401 to all requests, and clients then drop their messages. So if a new pod gets an
 * empty catalog, it must not replace a pod that has one.
 */
export function sourceObstacles(sources: number): readonly string[] {
  return sources > 0 ? [] : ['the catalog has no sources, so no write key is known']
}

/**
 * Sets `sluice_ready` to the same value that `/readyz` reports: 1 if the list of reasons is empty, and
 * otherwise 0.
 */
export function showReady(
  metrics: Pick<CommonMetrics, 'ready'>,
  role: string,
  reasons: readonly string[],
): void {
  metrics.ready.set({ role }, reasons.length === 0 ? 1 : 0)
}
