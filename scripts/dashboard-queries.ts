/** The types of dashboards and panels, and functions that make the queries of panels. */

export type Board = {
  readonly id: string
  readonly title: string
  readonly about: string
  readonly panels: readonly Panel[]
}

export type Panel = {
  readonly title: string
  /** The description of the panel: what it shows, and which values are good. */
  readonly about: string
  /** The unit of the values, by Grafana's name. */
  readonly unit: 'cps' | 's' | 'short' | 'bytes' | 'percentunit'
  readonly max?: number
  readonly queries: readonly Query[]
}

export type Query = { readonly legend: string; readonly expr: string }

/** Returns a selector of a metric's series, limited to the namespaces that are chosen in the dashboard. */
export function of(name: string, matchers = ''): string {
  return `${name}{namespace=~"$namespace"${matchers === '' ? '' : `, ${matchers}`}}`
}

/** Returns a query for the rate of a counter a second, summed by the labels `by`. */
export function rate(name: string, by: string, matchers = ''): Query {
  return {
    legend: by === '' ? 'all' : `{{${by}}}`,
    expr: `sum by (${by}) (rate(${of(name, matchers)}[$__rate_interval]))`,
  }
}

export function quantiles(name: string, matchers = ''): Query[] {
  return ['0.5', '0.95', '0.99'].map((quantile) => ({
    legend: `p${quantile.slice(2).padEnd(2, '0')}`,
    expr: `histogram_quantile(${quantile}, sum by (le) (rate(${of(`${name}_bucket`, matchers)}[$__rate_interval])))`,
  }))
}

export function sum(name: string, by = ''): Query {
  return { legend: by === '' ? 'all' : `{{${by}}}`, expr: `sum by (${by}) (${of(name)})` }
}

export function max(name: string, by = ''): Query {
  return { legend: by === '' ? 'highest' : `{{${by}}}`, expr: `max by (${by}) (${of(name)})` }
}

export function age(name: string, by: string): Query {
  return { legend: `{{${by}}}`, expr: `clamp_min(time() - min by (${by}) (${of(name)}), 0)` }
}

/** Returns a query for the used share of a limit, in the process that is nearest to its limit. */
export function used(name: string, limit: string, legend: string): Query {
  return { legend, expr: `max(${of(name)} / ${of(limit)})` }
}
