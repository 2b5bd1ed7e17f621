import type { AudienceUpstream } from './audience.ts'
import type { Customers } from './customers.ts'
import type { Metrics } from './metrics.ts'
import { type DestinationId, destinations, ladder, times } from './script.ts'
import type { Upstream } from './upstream.ts'

/** The figures of one destination, as the table shows them. */
export type Row = {
  id: DestinationId
  server: string
  /** The number of messages that upstream services have sent for the destination. */
  sent: number
  delivered: number
  /** The number of messages that are neither delivered nor dead: on a retry topic, or under way. */
  waiting: number
  dead: number
  /** The number of requests that the worker has made and that have ended. A request to each URL counts. */
  tries: number
  /** The number of requests with a signature that the server has found right. */
  verified: number
  wrong: number
  lastAnswer: string
}

/** All figures that the screen shows at one moment. */
export type Picture = {
  elapsedMs: number
  rows: readonly Row[]
  written: number
  lag: number
  /** The number of records that wait on each retry topic. */
  parked: readonly { tier: string; count: number }[]
  deadLetters: number
}

export type Sources = {
  customers: Customers
  upstream: Upstream
  audience: AudienceUpstream
  metrics: Metrics
  eventsTopic: string
  elapsedMs: number
}

/** Combines the figures of the worker's metrics, the customers' servers and the upstream services. */
export function takePicture({
  customers,
  upstream,
  audience,
  metrics,
  eventsTopic,
  elapsedMs,
}: Sources): Picture {
  return {
    elapsedMs,
    rows: destinations.map(({ id, server }) => {
      const delivered = metrics.sum('sluice_deliveries_total', { destination: id, verdict: 'delivered' })
      const dead = metrics.sum('sluice_deliveries_total', { destination: id, verdict: 'dead_letter' })
      const receiver = customers.all.get(id)?.receiver
      const { right = 0, wrong = 0 } = receiver?.signatures ?? {}
      const written = id === 'campaigns' ? audience.due : upstream.sentTo(id)
      const sent = Math.max(written, delivered + dead)
      return {
        id,
        server,
        sent,
        delivered,
        waiting: sent - delivered - dead,
        dead,
        tries: metrics.sum('sluice_attempts_total', { destination: id }),
        verified: right,
        wrong,
        lastAnswer: receiver?.lastAnswer ?? '-',
      }
    }),
    written: upstream.written,
    lag: metrics.sum('sluice_consumer_lag_records', { topic: eventsTopic }),
    parked: tiers.map((tier) => ({
      tier: `retry.${tier}`,
      // The number of records written to the topic, minus the number of records taken from it.
      count:
        metrics.sum('sluice_parked_total', { tier }) -
        metrics.sum('sluice_records_total', { topic: `retry.${tier}` }),
    })),
    deadLetters: metrics.sum('sluice_dead_letters_total'),
  }
}

/** The distinct waits of the ladder. Each wait has a topic. */
const tiers: readonly string[] = [...new Set([...ladder.waits, ladder.last])].map((seconds) => `${seconds}s`)

/** Returns at most three sentences about what is happening now, the most important first. */
export function tell(
  { elapsedMs, rows }: Picture,
  { isPartnerOn, stage: { audience } }: { isPartnerOn: boolean; stage: { audience: { story: string } } },
): string[] {
  const waiting = (id: DestinationId): number => rows.find((row) => row.id === id)?.waiting ?? 0
  const stories: string[] = []
  if (audience.story !== '' && elapsedMs < times.partnerOnMs) stories.push(audience.story)
  if (elapsedMs < times.mailerBackMs) {
    stories.push(
      `mailer is down: its messages wait on retry topics. It is back at ${clock(times.mailerBackMs)}.`,
    )
  } else if (waiting('mailer') > 0) {
    stories.push('mailer is back: what waited for it is delivered as it comes due.')
  }
  if (!isPartnerOn) {
    stories.push(
      `partner is paused: its messages wait. At ${clock(times.partnerOnMs)} the admin API switches it on.`,
    )
  } else if (waiting('partner') > 0) {
    stories.push(
      'partner is on: the worker saw the change in the topic of the catalog, and delivers what waited.',
    )
  }
  if (waiting('ads') > 0)
    stories.push('ads asks for 5 s before each second try, by Retry-After, and gets them.')
  if (waiting('erp') > 0) {
    stories.push(
      `erp never answers: each try ends after 5 s; when no other fits into ${ladder.limit} s, dead letters.`,
    )
  }
  return stories.slice(0, 3)
}

/** Returns a duration as minutes and seconds, such as `0:07`. */
export function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
