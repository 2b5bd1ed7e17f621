import type { Logger } from 'pino'
import type { CallName, GatewayObserver } from '../gateway/observer.ts'
import type { LeftOutReason } from '../gateway/reasons.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import type { ObservedSeries } from './tally.ts'

/** One line for a source and a reason in this time, with how many messages it was. */
const tellEveryMs = 60_000
/** Sources and reasons that are waited for; more are counted only. */
const maxTold = 1_000

/** Turns what the gateway reports into metrics and log lines. Never logs a message or a key. */
export function createGatewayObserver({
  metrics,
  log,
  now,
}: {
  metrics: GatewayMetrics
  log: Logger
  /** Milliseconds of a monotonic clock. */
  now: () => number
}): GatewayObserver {
  const seconds = new Map<CallName, ObservedSeries>()
  const told = new Map<string, { atMs: number; count: number }>()

  function secondsOf(call: CallName): ObservedSeries {
    let series = seconds.get(call)
    if (series === undefined) {
      series = metrics.requestSeconds.series({ call })
      seconds.set(call, series)
    }
    return series
  }

  /** What is left out is answered 200, so that clients don't hear of it: operators should. */
  function tell(reason: LeftOutReason, count: number, source: string | undefined): void {
    const subject = `${source ?? ''} ${reason}`
    const last = told.get(subject)
    const nowMs = now()
    if (last !== undefined && nowMs - last.atMs < tellEveryMs) {
      last.count += count
      return
    }
    if (told.size >= maxTold) told.clear()
    told.set(subject, { atMs: nowMs, count: 0 })
    log.warn({ source, reason, messages: count + (last?.count ?? 0) }, 'messages were left out')
  }

  return {
    answered(call, status, durationMs) {
      metrics.requests.inc({ call, status })
      secondsOf(call).observe(durationMs / 1_000)
    },
    acknowledged(kind, count) {
      metrics.messages.inc({ type: kind }, count)
    },
    leftOut(reason, count, sourceId) {
      metrics.leftOut.inc({ reason }, count)
      tell(reason, count, sourceId)
    },
    coalesced(count) {
      metrics.coalesced.inc(count)
    },
    failed(error) {
      log.error({ err: error }, 'a request failed: this is a bug')
    },
  }
}
