export type Series = { name: string; labels: Record<string, string>; value: number }

/**
 * Parses Prometheus' text format, but only what the tests need of it. `types` and `helps` have the type and
 * the help of each metric, by its name.
 */
export function parseMetrics(text: string): {
  types: Map<string, string>
  helps: Map<string, string>
  series: Series[]
} {
  const types = new Map<string, string>()
  const helps = new Map<string, string>()
  const series: Series[] = []
  for (const line of text.split('\n')) {
    const [, kind, metric = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? []
    if (kind === 'HELP') helps.set(metric, rest)
    else if (kind === 'TYPE') types.set(metric, rest)
    else if (line !== '' && !line.startsWith('#')) {
      const [, name = '', labels = '', value = ''] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? []
      const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key = '', word = '']) => [key, word])
      series.push({ name, labels: Object.fromEntries(pairs), value: Number(value) })
    }
  }
  return { types, helps, series }
}
