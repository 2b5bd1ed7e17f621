import type { Told } from './group.ts'

type Sample = { atS: number } & Told

/** The samples that Prometheus has scraped from each pod, and the rates of them. Times are in seconds. */
export class Scraped {
  readonly #samples = new Map<number, Sample[]>()
  /** The lag at the last scrape. */
  lag = 0

  scrape(atS: number, told: ReadonlyMap<number, Told>, lag: number): void {
    for (const pod of this.#samples.keys()) if (!told.has(pod)) this.#samples.delete(pod)
    for (const [pod, { cpuSeconds, records }] of told) {
      const samples = this.#samples.get(pod) ?? []
      samples.push({ atS, cpuSeconds, records })
      this.#samples.set(pod, samples)
    }
    this.lag = lag
  }

  /** Returns `sum(rate(…[window]))`. Returns undefined if no pod has two samples. */
  rate(nowS: number, windowS: number, of: keyof Told): number | undefined {
    const rates = [...this.#samples.values()].flatMap((samples) => {
      const [first, last] = [samples.find(({ atS }) => atS > nowS - windowS), samples.at(-1)]
      if (first === undefined || last === undefined || first === last) return []
      return [(last[of] - first[of]) / (last.atS - first.atS)]
    })
    return rates.length === 0 ? undefined : rates.reduce((sum, one) => sum + one, 0)
  }
}
