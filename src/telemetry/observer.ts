import type { Logger } from 'pino'
import type { Outcome, OutcomeKind } from '../delivery/outcome.ts'
import type { VerdictKind } from '../delivery/verdict.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery, HeldRecord } from '../pipeline/delivery.ts'
import type { DeadReason, NotRoutedReason, ParkReason, PipelineObserver } from '../pipeline/pipeline.ts'
import { formatWait } from '../retry/duration.ts'
import type { Metrics } from './metrics.ts'

/** Turns what the pipeline reports into metrics, and into one log line an attempt. Never logs a body or a secret. */
export function createObserver({
  metrics,
  log,
  logAttempts,
  timeoutMs,
}: {
  metrics: Metrics
  log: Logger
  logAttempts: boolean
  timeoutMs: number
}): PipelineObserver {
  const { perDestination } = metrics
  const timeoutMessage = `timeout: no response within ${timeoutMs} ms`
  const attemptCounter = memo((outcome: OutcomeKind, statusClass: string, verdict: VerdictKind, id: string) =>
    metrics.attempts.labels({
      outcome,
      status_class: statusClass,
      verdict,
      ...(perDestination && { destination: id }),
    }),
  )
  const durations = memo((outcome: OutcomeKind) => metrics.attemptSeconds.labels({ outcome }))
  const deliveries = memo((verdict: 'delivered' | 'dead_letter', id: string) =>
    metrics.deliveries.labels({ verdict, ...(perDestination && { destination: id }) }),
  )

  function attempted(delivery: Delivery, { hookId, outcome, verdict }: HookResult, durationMs: number): void {
    const counted = perDestination ? delivery.destinationId : ''
    attemptCounter(outcome.kind, statusClassOf(outcome), verdict.kind, counted).inc()
    durations(outcome.kind).observe(durationMs / 1000)
    if (!logAttempts) return
    const line = {
      destination: delivery.destinationId,
      hook: hookId,
      messageId: delivery.messageId,
      type: delivery.kind,
      attempt: delivery.attempts,
      verdict: verdict.kind,
      outcome: outcome.kind,
      ...detailOf(outcome),
      durationMs: Math.round(durationMs * 10) / 10,
    }
    if (outcome.kind === 'timeout') log.error(line, timeoutMessage)
    else if (outcome.kind === 'certificate')
      log.error(line, 'the certificate is not trusted: nothing was sent')
    else if (verdict.kind === 'delivered') log.info(line, 'attempt')
    else log.warn(line, 'attempt')
  }

  return {
    attempted,
    delivered(delivery) {
      deliveries('delivered', perDestination ? delivery.destinationId : '').inc()
      metrics.deliverySeconds.observe(Math.max(0, Date.now() - delivery.firstSeenMs) / 1000)
    },
    parked(_delivery: Delivery, why: ParkReason, waitMs: number) {
      metrics.parked.inc({ tier: formatWait(waitMs), reason: why })
    },
    deadLettered(reason: DeadReason, detail: string, where: HeldRecord, delivery: Delivery | undefined) {
      metrics.deadLetters.inc({ reason })
      if (delivery !== undefined)
        deliveries('dead_letter', perDestination ? delivery.destinationId : '').inc()
      log.warn(
        {
          reason,
          detail,
          destination: delivery?.destinationId,
          messageId: delivery?.messageId,
          attempts: delivery?.attempts,
          topic: where.topic,
          partition: where.partition,
          offset: where.offset,
        },
        'dead letter',
      )
    },
    notRouted(reason: NotRoutedReason) {
      metrics.notRouted.inc({ reason })
    },
  }
}

function statusClassOf(outcome: Outcome): string {
  return outcome.kind === 'answer' ? `${Math.floor(outcome.status / 100)}xx` : 'none'
}

function detailOf(outcome: Outcome): {
  status?: number
  retryAfterMs?: number
  code?: string
  address?: string
  detail?: string
} {
  const { kind: _kind, ...detail } = outcome
  return detail
}

/** Remembers what `make` gave for the same words: a labelled child of a metric costs a hash each time it is looked up. */
function memo<A extends string[], T>(make: (...words: A) => T): (...words: A) => T {
  const made = new Map<string, T>()
  return (...words) => {
    const key = words.join('\n')
    let value = made.get(key)
    if (value === undefined) {
      value = make(...words)
      made.set(key, value)
    }
    return value
  }
}
