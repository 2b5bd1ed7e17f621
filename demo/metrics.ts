/** One line of Prometheus' text format. */
type Series = { name: string; labels: Readonly<Record<string, string>>; value: number }

/** The worker's metrics at one moment. */
export class Metrics {
  readonly #series: readonly Series[]

  constructor(text: string) {
    this.#series = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map(parseLine)
  }

  /** The sum of a metric's series, of those that have these labels; 0 when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const wanted = Object.entries(labels)
    return this.#series
      .filter(
        (series) => series.name === name && wanted.every(([label, value]) => series.labels[label] === value),
      )
      .reduce((sum, { value }) => sum + value, 0)
  }
}

function parseLine(line: string): Series {
  const [, name = '', labels = '', value = ''] = /^([^{ ]+)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
  return {
    name,
    labels: Object.fromEntries(pairs.map(([, label = '', text = '']) => [label, text])),
    value: Number(value),
  }
}
