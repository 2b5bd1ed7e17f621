import { boards } from './dashboard-panels.ts'
import type { Board, Panel } from './dashboard-queries.ts'

/** Returns the JSON of Grafana's dashboards by file name, made from `dashboard-panels.ts`. */
export function dashboardFiles(): Record<string, string> {
  return Object.fromEntries(
    boards.map((board) => [`sluice-${board.id}.json`, `${JSON.stringify(dashboardOf(board), null, 2)}\n`]),
  )
}

/** Returns the text of `docs/dashboards.md`. `npm run draw:dashboards` draws the pictures of this page. */
export function dashboardsMarkdown(): string {
  const sections = boards.map(({ id, title, about }) => {
    const heading = `${title.slice(0, 1).toUpperCase()}${title.slice(1)}`
    return `\n## ${heading}\n\n${about}\n\n![${heading}](dashboards/${id}.svg)\n`
  })
  return introduction + sections.join('')
}

const introduction = `# Dashboards

Generated from \`scripts/dashboard-panels.ts\` by \`npm run generate\`. This page is for operators who look at Grafana.

There are seven dashboards for Grafana, in \`deploy/grafana/dashboards\`. The Helm chart installs them as ConfigMaps (\`metrics.dashboards.enabled\`). The Grafana of \`docker compose up\` already has them. Each
dashboard has the variables "Data source" and "Namespace".

The pictures are drawings, not screenshots of Grafana. They show what a real Prometheus answers to the dashboards' queries. This Prometheus scraped a gateway, a worker, the admin API and the index of the delivery log for some
minutes. In these minutes one endpoint always failed, one failed for a while, and a healthy one got slow, failed and recovered. Grafana shows the same lines in its own layout. \`npm run draw:dashboards\` draws the pictures
again.
`

const datasource = { type: 'prometheus', uid: '${datasource}' }
const columns = 24
const height = 8

function dashboardOf({ id, title, about, panels }: Board): object {
  return {
    uid: `sluice-${id}`,
    title: `Sluice: ${title}`,
    description: about,
    tags: ['sluice'],
    timezone: 'browser',
    schemaVersion: 39,
    version: 1,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    links: [
      {
        type: 'dashboards',
        title: 'Sluice',
        tags: ['sluice'],
        asDropdown: true,
        keepTime: true,
        includeVars: true,
      },
    ],
    templating: { list: [datasourceVariable, namespaceVariable] },
    panels: panels.map((panel, place) => panelOf(panel, place)),
  }
}

const datasourceVariable = {
  name: 'datasource',
  label: 'Data source',
  type: 'datasource',
  query: 'prometheus',
  current: {},
}

/**
 * The variable for the label `namespace`. Outside of Kubernetes series lack this label, and `.*` matches them
 * too.
 */
const namespaceVariable = {
  name: 'namespace',
  label: 'Namespace',
  type: 'query',
  datasource,
  definition: 'label_values(sluice_build_info, namespace)',
  query: { query: 'label_values(sluice_build_info, namespace)', refId: 'namespaces' },
  refresh: 2,
  multi: true,
  includeAll: true,
  allValue: '.*',
  current: { text: 'All', value: '$__all' },
}

function panelOf({ title, about, unit, max, queries }: Panel, place: number): object {
  const width = columns / 3
  return {
    id: place + 1,
    type: 'timeseries',
    title,
    description: about,
    datasource,
    gridPos: { x: (place % 3) * width, y: Math.floor(place / 3) * height, w: width, h: height },
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(max !== undefined && { max }),
        custom: { lineWidth: 2, fillOpacity: 10, showPoints: 'never' },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(({ legend, expr }, index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource,
      expr,
      legendFormat: legend,
    })),
  }
}
