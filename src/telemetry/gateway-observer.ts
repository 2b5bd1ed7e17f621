import type { Logger } from 'pino'
import { type CallName, calls, type GatewayObserver } from '../gateway/calls/gateway-events.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import { memo } from './memo.ts'

/**
 * The shortest interval between log lines of one source and reason, in milliseconds. A line has the number of
 * messages since the previous line.
 */
const tellEveryMs = 60_000
/**
 * The most pairs of source and reason for which the time of the last line is remembered. When a further pair
 * comes, all pairs are forgotten.
 */
const maxReported = 1_000

/**
 * Creates an observer that turns the gateway's events into metrics and log lines. Never logs a message or a
 * key.
 */
export function createGatewayObserver({
  metrics,
  log,
  now,
}: {
  metrics: GatewayMetrics
  log: Logger
  /** Returns the time of a monotonic clock, in milliseconds. */
  now: () => number
}): GatewayObserver {
  const tell = sparsely(now)
  showNoFailures(metrics)
  const secondsOf = memo((call: CallName) => metrics.requestSeconds.series({ call }))

  return {
    answered(call, status, durationMs, code) {
      metrics.requests.inc({ call, status })
      if (code !== undefined) metrics.refused.inc({ reason: code })
      secondsOf(call).observe(durationMs / 1_000)
    },
    acknowledged(kind, count) {
      metrics.messages.inc({ type: kind }, count)
    },
    leftOut(reason, count, sourceId) {
      metrics.leftOut.inc({ reason }, count)
      tell(`${sourceId ?? ''} ${reason}`, count, (messages) =>
        log.warn({ source: sourceId, reason, messages }, 'messages were left out'),
      )
    },
    connectionRefused() {
      metrics.connectionsRefused.inc()
      tell('refused connections', 1, (connections) =>
        log.warn(
          { connections },
          'connections of clients were closed at once: there are too many (gateway.maxConnections)',
        ),
      )
    },
    digitsLost(count, sourceId) {
      metrics.digitsLost.inc(count)
      tell(`${sourceId} lost digits`, count, (numbers) =>
        log.warn({ source: sourceId, numbers }, 'numbers beyond 2^53 lost digits: send such ids as strings'),
      )
    },
    coalesced(count) {
      metrics.coalesced.inc(count)
    },
    failed(error) {
      metrics.faults.inc()
      log.error({ err: error }, 'a request failed by a fault of Sluice: please report it')
    },
  }
}

/** Creates the series of failed requests with 0. rate() sees no increase in the first value of a series. */
function showNoFailures({ requests }: GatewayMetrics): void {
  for (const call of calls) for (const status of [500, 503]) requests.inc({ call, status }, 0)
}

type Tell = (subject: string, count: number, write: (count: number) => void) => void

/**
 * Returns a function that calls `write` at most once in `tellEveryMs` for a subject. Other counts are added
 * to the subject's next line.
 */
function sparsely(now: () => number): Tell {
  const reported = new Map<string, { atMs: number; count: number }>()
  return (subject, count, write) => {
    const last = reported.get(subject)
    const nowMs = now()
    if (last !== undefined && nowMs - last.atMs < tellEveryMs) {
      last.count += count
      return
    }
    if (reported.size >= maxReported) reported.clear()
    reported.set(subject, { atMs: nowMs, count: 0 })
    write(count + (last?.count ?? 0))
  }
}
