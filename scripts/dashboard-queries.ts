/** The types of dashboards and panels, and functions that make the queries of panels. */

export type Board = {
  readonly id: string
  readonly title: string
  readonly about: string
  readonly panels: readonly Panel[]
  /** `true` if the dashboard is about the destination that its variable chooses. */
  readonly hasDestination?: true
}

export type Panel = {
  readonly title: string
  /** The description of the panel: what it shows, and which values are good. */
  readonly about: string
  /** The unit of the values, by Grafana's name. */
  readonly unit: 'cps' | 's' | 'short' | 'bytes' | 'percentunit'
  readonly max?: number
  /** A number, or a table of the series. Without it, the panel has lines. */
  readonly kind?: 'stat' | 'table'
  /** The colors of a number, each from this value on. */
  readonly thresholds?: readonly { readonly color: string; readonly from: number }[]
  /** The runbook that says what to do if the values are bad. */
  readonly runbook?: string
  readonly queries: readonly Query[]
}

export type Query = { readonly legend: string; readonly expr: string }

/**
 * Returns a selector of a metric's series, limited to the namespaces, releases and pods that are chosen in the
 * dashboard.
 */
export function of(name: string, matchers = ''): string {
  const chosen = 'namespace=~"$namespace", release=~"$release", pod=~"$pod"'
  return `${name}{${chosen}${matchers === '' ? '' : `, ${matchers}`}}`
}

/** Returns a query for how much a counter of rare events has grown, summed by the labels `by`. */
export function increase(name: string, by: string, matchers = ''): Query {
  return {
    legend: by === '' ? 'all' : `{{${by}}}`,
    expr: `sum by (${by}) (increase(${of(name, matchers)}[$__rate_interval]))`,
  }
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

export function max(name: string, by = '', matchers = ''): Query {
  return { legend: by === '' ? 'highest' : `{{${by}}}`, expr: `max by (${by}) (${of(name, matchers)})` }
}

export function age(name: string, by: string, matchers = ''): Query {
  return { legend: `{{${by}}}`, expr: `clamp_min(time() - min by (${by}) (${of(name, matchers)}), 0)` }
}

/**
 * The color of a series by its name: green for success, red for failures, and undefined for all others. Several
 * destinations that succeed would all be green, so a name that has more than the verdict isn't.
 */
export function colorOf(name: string): 'green' | 'red' | undefined {
  if (success.test(name)) return 'green'
  return failure.test(name) ? 'red' : undefined
}

/** Grafana's overrides use these patterns too, so they are what both regular expressions of Go and of JavaScript know. */
export const success = /^\s*(?:delivered|2xx|200|applied|found|sent|on)$/
export const failure =
  /(?:\bfailed\b|fail|dead|expired|timeout|\b5xx\b|\b4xx\b|\b50\d$|\b4\d\d$|refused|can not)/

/** Returns a query for the used share of a limit, in the process that is nearest to its limit. */
export function used(name: string, limit: string, legend: string): Query {
  return { legend, expr: `max(${of(name)} / ${of(limit)})` }
}
