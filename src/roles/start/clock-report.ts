import type { CommonMetrics } from '../../telemetry/common-metrics.ts'

/**
 * The smallest difference between two clocks for which a warning is logged, in milliseconds. Receivers refuse
 * a signature whose time is more than five minutes off.
 */
const reportedMs = 30_000
/** How long a difference is remembered, in milliseconds. Older ones are removed every `lookEveryMs`. */
const keptMs = 10 * 60_000
const lookEveryMs = 60_000

type Seen = { readonly aheadMs: number; readonly atMs: number }

export type ClockReportOptions = {
  readonly metrics: Pick<CommonMetrics, 'clockSkew'>
  readonly log: { info(text: string): void; warn(fields: object, text: string): void }
  /** Returns milliseconds of a monotonic clock. */
  readonly now?: () => number
}

const reports = new WeakMap<object, ClockReport>()

/**
 * Returns the report that sets this metric. Parts of a process that share their metrics have to share the
 * report. If each part had a report of its own, a part that has not written for ten minutes would overwrite
 * the difference that another part sees.
 */
export function clockReportOf(options: ClockReportOptions): ClockReport {
  const { clockSkew } = options.metrics
  const report = reports.get(clockSkew) ?? new ClockReport(options)
  reports.set(clockSkew, report)
  return report
}

/**
 * Reports how much the clock of this process differs from the brokers' clocks. A metric shows the largest
 * difference. The log says when this difference becomes too large, and when the clocks agree again.
 */
export class ClockReport {
  readonly #options: ClockReportOptions
  readonly #now: () => number
  /** The last difference of each broker, by the broker's id. */
  readonly #seen = new Map<number, Seen>()
  #isReported = false

  constructor(options: ClockReportOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    setInterval(() => this.look(), lookEveryMs).unref()
  }

  readonly take = (nodeId: number, aheadMs: number): void => {
    this.#seen.set(nodeId, { aheadMs, atMs: this.#now() })
    this.look()
  }

  /** Forgets old differences, and reports the largest difference that remains. */
  look(): void {
    let worst: (Seen & { readonly broker: number }) | undefined
    for (const [broker, seen] of this.#seen) {
      if (this.#now() - seen.atMs > keptMs) this.#seen.delete(broker)
      else if (worst === undefined || Math.abs(seen.aheadMs) > Math.abs(worst.aheadMs))
        worst = { broker, ...seen }
    }
    const { aheadMs = 0, broker } = worst ?? {}
    const { metrics, log } = this.#options
    metrics.clockSkew.set(Math.abs(aheadMs) / 1_000)
    const isWrong = Math.abs(aheadMs) >= reportedMs
    if (isWrong === this.#isReported) return
    this.#isReported = isWrong
    const seconds = Math.round(Math.abs(aheadMs) / 1_000)
    if (isWrong) log.warn({ broker, seconds }, aheadMs > 0 ? isAhead : isBehind)
    else log.info('the clock agrees with the clocks of the brokers again')
  }
}

const consequences =
  'retries come at wrong times, and receivers may refuse signatures: set the clock of whichever is wrong (NTP)'
const isAhead = `the clock of this machine is ahead of the clock of a broker: ${consequences}`
const isBehind = `the clock of this machine is behind the clock of a broker: ${consequences}`
