/** What dashboards are made of, and the queries that their panels ask. */

export type Board = {
  readonly id: string
  readonly title: string
  readonly about: string
  readonly panels: readonly Panel[]
}

export type Panel = {
  readonly title: string
  /** What is to be seen, and what is good. */
  readonly about: string
  /** Of Grafana. */
  readonly unit: 'cps' | 's' | 'short' | 'bytes' | 'percentunit'
  readonly max?: number
  readonly queries: readonly Query[]
}

export type Query = { readonly legend: string; readonly expr: string }

/** A series of the installations that are looked at. */
export function of(name: string, matchers = ''): string {
  return `${name}{namespace=~"$namespace"${matchers === '' ? '' : `, ${matchers}`}}`
}

/** How often something happens, a second, by labels. */
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

/** Of a limit, in the process that is nearest to it. */
export function used(name: string, limit: string, legend: string): Query {
  return { legend, expr: `max(${of(name)} / ${of(limit)})` }
}
