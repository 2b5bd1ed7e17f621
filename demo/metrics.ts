/** One line of Prometheus' text format. */
type Series = { name: string; labels: Readonly<Record<string, string>>; value: number }

/** The metrics of one process at one moment. */
export class Metrics {
  readonly #series: readonly Series[]

  constructor(text: string) {
    this.#series = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map(parseLine)
  }

  /** Returns the sum of those series of a metric that have the given labels. Returns 0 if there are none. */
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
