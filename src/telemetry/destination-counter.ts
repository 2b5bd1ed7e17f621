import { type CountedSeries, TallyCounter } from './metric-tally.ts'

type Labels = Readonly<Record<string, string>>

export type DestinationCounterOptions = {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  /** The labels that the counter has in addition if `perDestination` is true. */
  readonly destinationLabels?: readonly string[]
  readonly perDestination: boolean
  readonly registers: ConstructorParameters<typeof TallyCounter>[0]['registers']
}

/**
 * A counter that has series of its own for each destination if `perDestination` is true. Otherwise, all
 * destinations share their series.
 */
export class DestinationCounter {
  readonly perDestination: boolean
  readonly #counter: TallyCounter<string>
  /** The series of each destination, by their other labels. The destination is '' if all share them. */
  readonly #series = new Map<string, Map<string, CountedSeries>>()

  constructor({ labelNames, destinationLabels = ['destination'], ...options }: DestinationCounterOptions) {
    const { name, help, perDestination, registers = [] } = options
    this.perDestination = perDestination
    const all = perDestination ? [...labelNames, ...destinationLabels] : [...labelNames]
    this.#counter = new TallyCounter({ name, help, labelNames: all, registers })
  }

  /** The destinations that have series of their own. */
  get destinations(): readonly string[] {
    return this.perDestination ? [...this.#series.keys()].filter((destination) => destination !== '') : []
  }

  /**
   * Returns a function that returns the series of a destination with these labels. `ofHook` are labels that
   * the series has only if `perDestination` is true. Count in the series at once, and don't keep it.
   */
  of(labels: Labels, ofHook: Labels = {}): (destination: string) => CountedSeries {
    const own = this.perDestination ? { ...labels, ...ofHook } : labels
    const key = JSON.stringify(own)
    if (!this.perDestination) {
      const shared = this.#seriesOf('', key, own)
      return () => shared
    }
    return (destination) => this.#seriesOf(destination, key, own)
  }

  /** Ends the series of a destination. If the destination is counted again, its series begin again at 0. */
  end(destination: string): void {
    for (const series of this.#series.get(destination)?.values() ?? []) this.#counter.end(series)
    this.#series.delete(destination)
  }

  #seriesOf(destination: string, key: string, labels: Labels): CountedSeries {
    let ofDestination = this.#series.get(destination)
    if (ofDestination === undefined) this.#series.set(destination, (ofDestination = new Map()))
    let series = ofDestination.get(key)
    if (series === undefined) {
      series = this.#counter.series(this.perDestination ? { ...labels, destination } : labels)
      ofDestination.set(key, series)
    }
    return series
  }
}

/** How long the series of a removed destination stay, in hours. By then, its last retries have ended. */
const keptHours = 24
const hourMs = 3_600_000

/**
 * Ends the series of destinations that the catalog has lacked for a day. Without this, the number of series
 * would grow with each destination that there ever was. Looks at the catalog once in each hour of the clock,
 * so that all processes of a worker end a series at the same time. If only one of them ended it, the sum of
 * the processes would fall, and Prometheus would take the rest for new events.
 */
export class RemovedDestinations {
  readonly #counters: readonly DestinationCounter[]
  /** The hour since which the catalog lacks a destination that has series. */
  readonly #missingSince = new Map<string, number>()
  #lookedIn = -1

  constructor(counters: readonly DestinationCounter[]) {
    this.#counters = counters
  }

  /** `present`: the destinations of the catalog in force. `nowMs`: the time in epoch milliseconds. */
  look(present: { has(destination: string): boolean }, nowMs: number): void {
    const hour = Math.floor(nowMs / hourMs)
    if (hour === this.#lookedIn) return
    this.#lookedIn = hour
    const counted = new Set(this.#counters.flatMap(({ destinations }) => destinations))
    for (const destination of this.#missingSince.keys())
      if (present.has(destination) || !counted.has(destination)) this.#missingSince.delete(destination)
    for (const destination of counted) {
      if (present.has(destination)) continue
      const since = this.#missingSince.get(destination) ?? hour
      this.#missingSince.set(destination, since)
      if (hour - since < keptHours) continue
      this.#missingSince.delete(destination)
      for (const counter of this.#counters) counter.end(destination)
    }
  }
}
