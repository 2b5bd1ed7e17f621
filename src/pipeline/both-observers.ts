import type { PipelineObserver } from './pipeline-ports.ts'

type OfMessages = Required<
  Pick<PipelineObserver, 'notRouted' | 'filtered' | 'unknownSource' | 'repeated' | 'rulesTooLong'>
>

/**
 * Returns an observer that passes every call to the first observer and then to the second observer. If there
 * is no second observer, returns the first one.
 */
export function bothObservers(
  first: PipelineObserver,
  second: Partial<PipelineObserver> | undefined,
): PipelineObserver {
  if (second === undefined) return first
  return {
    ...bothOfMessages(first, second),
    ...bothAtTimes(first, second),
    firstTried(delivery, way) {
      first.firstTried(delivery, way)
      second.firstTried?.(delivery, way)
    },
    attempted(delivery, result, durationMs) {
      first.attempted(delivery, result, durationMs)
      second.attempted?.(delivery, result, durationMs)
    },
    delivered(delivery) {
      first.delivered(delivery)
      second.delivered?.(delivery)
    },
    omitted(delivery, hookId, why) {
      first.omitted(delivery, hookId, why)
      second.omitted?.(delivery, hookId, why)
    },
    parked(delivery, why, waitMs) {
      first.parked(delivery, why, waitMs)
      second.parked?.(delivery, why, waitMs)
    },
    deadLettered(reason, detail, where, delivery) {
      first.deadLettered(reason, detail, where, delivery)
      second.deadLettered?.(reason, detail, where, delivery)
    },
    dropped(delivery, why) {
      first.dropped(delivery, why)
      second.dropped?.(delivery, why)
    },
    failed(error) {
      first.failed(error)
      second.failed?.(error)
    },
  }
}

/** Observes what becomes of messages without a delivery, and what their rules cost. */
function bothOfMessages(first: PipelineObserver, second: Partial<PipelineObserver>): OfMessages {
  return {
    notRouted(reason) {
      first.notRouted(reason)
      second.notRouted?.(reason)
    },
    filtered(reason, message, where) {
      first.filtered?.(reason, message, where)
      second.filtered?.(reason, message, where)
    },
    unknownSource(sourceId, where) {
      first.unknownSource(sourceId, where)
      second.unknownSource?.(sourceId, where)
    },
    repeated(where, sourceId, messageId) {
      first.repeated(where, sourceId, messageId)
      second.repeated?.(where, sourceId, messageId)
    },
    rulesTooLong(destinationId, limit) {
      first.rulesTooLong?.(destinationId, limit)
      second.rulesTooLong?.(destinationId, limit)
    },
  }
}

/** The calls that an observer need not have. */
function bothAtTimes(
  first: PipelineObserver,
  second: Partial<PipelineObserver>,
): Pick<PipelineObserver, 'askedForToken' | 'batched'> {
  return {
    askedForToken(destinationId, hookId, asked, definition) {
      first.askedForToken?.(destinationId, hookId, asked, definition)
      second.askedForToken?.(destinationId, hookId, asked, definition)
    },
    batched(messages) {
      first.batched?.(messages)
      second.batched?.(messages)
    },
  }
}
