import type { CommonMetrics } from './common-metrics.ts'
import type { WorkerMetrics } from './worker-metrics.ts'
import type { Gauge } from 'prom-client'

/** How many destinations are in each state. */
type StateCounts = Readonly<Record<'on' | 'off' | 'paused' | 'auto_paused', number>>

/** Sets the metrics about the catalog in force: its version, and the number of destinations in each state. */
export function showCatalog(metrics: CommonMetrics, version: string, counts: StateCounts): void {
  const { catalogInfo } = metrics
  catalogInfo.reset()
  catalogInfo.set({ version }, 1)
  showDestinations(metrics, counts)
}

export function showDestinations(
  { destinations }: Pick<CommonMetrics, 'destinations'>,
  counts: StateCounts,
): void {
  for (const [state, count] of Object.entries(counts)) destinations.set({ state }, count)
}

/** The part of the catalog that `showBehind` reads. */
type Connections = {
  readonly sources: ReadonlyMap<string, { readonly kind: string }>
  readonly destinations: ReadonlyMap<string, { readonly sources: readonly string[] }>
}

/**
 * Sets the metric that counts the destinations which lack a value of an audience or computed trait. A missing
 * value counts only if the catalog connects the destination to the value's space.
 */
export function showBehind(
  { needsBackfill, perDestination }: Pick<WorkerMetrics, 'needsBackfill' | 'perDestination'>,
  behind: readonly { readonly destinationId: string; readonly spaceId: string }[],
  { sources, destinations }: Connections,
): void {
  const present = new Set<string>()
  for (const { destinationId, spaceId } of behind) {
    const isSpace = sources.get(spaceId)?.kind === 'audiences'
    if (isSpace && destinations.get(destinationId)?.sources.includes(spaceId) === true)
      present.add(destinationId)
  }
  needsBackfill.reset()
  if (!perDestination) needsBackfill.set(present.size)
  else for (const destination of present) needsBackfill.set({ destination }, 1)
}

type OpenHook = { readonly destinationId: string; readonly hookId: string; readonly openForMs: number }

/**
 * Sets the metrics of open breakers: how many URLs have an open breaker, and how long the breakers have been
 * open. With `perDestination`, each URL with an open breaker has a series. Otherwise there is one series,
 * with the longest time.
 */
export function showOpenHooks(
  {
    openBreakers,
    breakerOpen,
    perDestination,
  }: Pick<WorkerMetrics, 'openBreakers' | 'breakerOpen' | 'perDestination'>,
  hooks: readonly OpenHook[],
): void {
  openBreakers.set(hooks.length)
  breakerOpen.reset()
  if (perDestination) {
    for (const { destinationId: destination, hookId: hook, openForMs } of hooks)
      breakerOpen.set({ destination, hook }, openForMs / 1_000)
  } else breakerOpen.set(Math.max(0, ...hooks.map(({ openForMs }) => openForMs)) / 1_000)
}

/** Sets the metric of hooks that refuse everything, like `showOpenHooks`. */
export function showRefusing(
  { refusing, perDestination }: Pick<WorkerMetrics, 'refusing' | 'perDestination'>,
  hooks: readonly { readonly destinationId: string; readonly hookId: string; readonly forMs: number }[],
): void {
  refusing.reset()
  if (perDestination) {
    for (const { destinationId: destination, hookId: hook, forMs } of hooks)
      refusing.set({ destination, hook }, forMs / 1_000)
  } else refusing.set(Math.max(0, ...hooks.map(({ forMs }) => forMs)) / 1_000)
}

type Partitions = Iterable<{ readonly topic: string; readonly oldestUnsettledMs: number }>

/**
 * Sets the metric that compares the age of each topic's oldest unsettled record with the topic's retention.
 * Once the age reaches the retention, Kafka deletes the record. `retentions` has the time for which each
 * topic keeps a record, in milliseconds.
 */
export function showRetentionUsed(
  { retentionUsed }: Pick<WorkerMetrics, 'retentionUsed'>,
  partitions: Partitions,
  deps: { retentions: ReadonlyMap<string, number>; shortNameOf: (topic: string) => string; nowMs: number },
): void {
  const { retentions, shortNameOf, nowMs } = deps
  const used = new Map<string, number>()
  for (const { topic, oldestUnsettledMs } of partitions) {
    const retentionMs = retentions.get(topic)
    if (retentionMs === undefined) continue
    const ageMs = oldestUnsettledMs === 0 ? 0 : Math.max(0, nowMs - oldestUnsettledMs)
    used.set(topic, Math.max(used.get(topic) ?? 0, ageMs / retentionMs))
  }
  retentionUsed.reset()
  for (const [topic, ratio] of used) retentionUsed.set({ topic: shortNameOf(topic) }, ratio)
}

/**
 * Sets the metric that says when the oldest unsettled record of each topic was appended. A topic without
 * unsettled records has no series.
 */
export function showOldestUnsettled(
  { oldestUnsettled }: Pick<WorkerMetrics, 'oldestUnsettled'>,
  partitions: Partitions,
  shortNameOf: (topic: string) => string,
): void {
  const oldest = new Map<string, number>()
  for (const { topic, oldestUnsettledMs } of partitions) {
    if (oldestUnsettledMs > 0) oldest.set(topic, Math.min(oldest.get(topic) ?? Infinity, oldestUnsettledMs))
  }
  oldestUnsettled.reset()
  for (const [topic, ms] of oldest) oldestUnsettled.set({ topic: shortNameOf(topic) }, ms / 1_000)
}

/** Sets a metric to the given count of each topic. The label is the topic's short name. */
export function showByTopic(
  gauge: Gauge<'topic'>,
  counts: ReadonlyMap<string, number>,
  shortNameOf: (topic: string) => string,
): void {
  gauge.reset()
  for (const [topic, count] of counts) gauge.set({ topic: shortNameOf(topic) }, count)
}
