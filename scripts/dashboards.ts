import { alignTable } from '../src/config/markdown.ts'
import { boards } from './dashboard-panels.ts'
import { isDrawn } from './plots/dashboard.ts'
import { story, storyMinutes } from './plots/story.ts'
import { type Board, failure, type Panel, success } from './dashboard-queries.ts'

/** Returns the JSON of Grafana's dashboards by file name, made from `dashboard-panels.ts`. */
export function dashboardFiles(): Record<string, string> {
  return Object.fromEntries(
    boards.map((board) => [`sluice-${board.id}.json`, `${JSON.stringify(dashboardOf(board), null, 2)}\n`]),
  )
}

/** Returns the text of `docs/dashboards.md`. `npm run draw:dashboards` draws the pictures of this page. */
export function dashboardsMarkdown(): string {
  const sections = boards.map((board) => {
    const { id, title, about } = board
    const heading = `${title.slice(0, 1).toUpperCase()}${title.slice(1)}`
    const picture = isDrawn(board) ? `\n![${heading}](dashboards/${id}.svg)\n` : ''
    return `\n## ${heading}\n\n${about}\n${picture}`
  })
  return introduction + sections.join('')
}

const introduction = `# Dashboards

Generated from \`scripts/dashboard-panels.ts\` by \`npm run generate\`. This page is for operators who look at Grafana.

There are eight dashboards for Grafana, in \`deploy/grafana/dashboards\`. The Helm chart installs them as ConfigMaps (\`metrics.dashboards.enabled\`). The Grafana of \`docker compose up\` already has them, and opens on the overview. Begin there: the numbers at its top
are green if all is well, and the table below names the destinations that fail, with links to the dashboard of each and to the admin API (whose address is the variable "Admin API"). The variables "Namespace", "Release" and "Pod" limit all of them. "Release" needs the ServiceMonitor of the chart. Blue marks show that a
version of the catalog or of Sluice came. If a panel shows trouble, its description names the runbook: \`sluice runbook NAME\` prints it.

The pictures are drawings, not screenshots of Grafana, and show the panels with lines only. They show what a real Prometheus
answered to the dashboards' queries in a run of ${storyMinutes} minutes with two workers, a gateway, the admin API and the index of the delivery log. Grafana shows the
same lines in its own layout. \`npm run draw:dashboards\` plays the run and draws the pictures again.

**What you see.** About 80 deliveries a second, of which 99 of 100 go to endpoints that work. These things happen:

${alignTable([['minute', 'what happens', 'where it shows'], ...story.map(({ atMin, about, seenIn }) => [clock(atMin), about, seenIn])])}

Blue marks are those of Grafana. The shades are only in the pictures: \`crm\` is slow, then fails.

**What is compressed.** What takes hours in production takes minutes here. The waits before the next tries are 2 s, 10 s and 30 s
instead of 1 min, 10 min and 1 h (\`retry.ladder\`), and a message becomes a dead letter after 2 min instead of 4 h (\`retry.limit\`). Notices come after 20 s (\`notices.failingAfter\`), and a first
sync writes 10 members a second instead of 200, so that it can be seen. A process makes at most 16 requests at once to URLs that fail, instead of 8,192 (\`delivery.maxInFlightSick\`), so that some wait. Prometheus scrapes every second, and rates are those of 30 s. Nothing else is compressed: latencies, breakers and
handovers take as long as in production. The two commits in "What runs" are made up.
`

/** Returns a time of the story, such as `2:15`. */
function clock(atMin: number): string {
  const seconds = Math.round(atMin * 60)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

const datasource = { type: 'prometheus', uid: '${datasource}' }
const columns = 24
const height = 8

function dashboardOf({ id, title, about, panels, hasDestination }: Board): object {
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
    annotations: { list: annotations },
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
    templating: { list: hasDestination ? [...variables, destinationVariable] : variables },
    panels: placed(panels),
  }
}

/** Marks in all panels. Each is the time at which a version was first told. */
const annotations = [
  annotation('Catalog', 'A new version of the catalog', 'sluice_catalog_info', 'version'),
  annotation('Deployment', 'A new version of Sluice', 'sluice_build_info', 'version, commit'),
]

function annotation(name: string, title: string, metric: string, by: string): object {
  const told = (offset: string) => `count by (${by}) (${metric}{namespace=~"$namespace"}${offset})`
  return {
    name,
    datasource,
    enable: true,
    hide: false,
    iconColor: 'blue',
    // If nothing was told two minutes ago, Prometheus or Sluice has only begun.
    expr: `(${told('')} unless ${told(' offset 2m')}) and on () count(${metric}{namespace=~"$namespace"} offset 2m)`,
    step: '1m',
    titleFormat: title,
    textFormat: by
      .split(', ')
      .map((label) => `{{${label}}}`)
      .join(' '),
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
 * Returns the variable for a label. Series that lack the label, as outside of Kubernetes, are matched by `.*` too.
 */
function labelVariable(name: string, label: string, from: string): object {
  return {
    name,
    label,
    type: 'query',
    datasource,
    definition: `label_values(${from}, ${name})`,
    query: { query: `label_values(${from}, ${name})`, refId: name },
    refresh: 2,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  }
}

const variables = [
  datasourceVariable,
  labelVariable('namespace', 'Namespace', 'sluice_build_info'),
  labelVariable('release', 'Release', 'sluice_build_info{namespace=~"$namespace"}'),
  labelVariable('pod', 'Pod', 'sluice_build_info{namespace=~"$namespace", release=~"$release"}'),
  {
    name: 'admin',
    label: 'Admin API',
    type: 'textbox',
    query: 'http://127.0.0.1:9420',
    current: { text: 'http://127.0.0.1:9420', value: 'http://127.0.0.1:9420' },
  },
]

const destinationVariable = labelVariable(
  'destination',
  'Destination',
  'sluice_deliveries_total{namespace=~"$namespace"}',
)

const statWidth = 3
const statHeight = 4

/** Returns the panels at their places: numbers in rows of eight, a table as a row of its own, and lines in threes. */
function placed(panels: readonly Panel[]): object[] {
  const width = columns / 3
  let x = 0
  let y = 0
  let rowHeight = 0
  return panels.map((panel, index) => {
    const size = sizeOf(panel, width)
    const isOtherKind = index > 0 && panels[index - 1]?.kind !== panel.kind
    if (x + size.w > columns || isOtherKind) {
      x = 0
      y += rowHeight
    }
    const gridPos = { x, y, ...size }
    x += size.w
    rowHeight = size.h
    return { id: index + 1, gridPos, ...panelOf(panel) }
  })
}

function sizeOf({ kind }: Panel, width: number): { w: number; h: number } {
  if (kind === 'stat') return { w: statWidth, h: statHeight }
  return { w: kind === 'table' ? columns : width, h: height }
}

function panelOf(panel: Panel): object {
  const { title, about, runbook, queries } = panel
  return {
    title,
    description: runbook === undefined ? about : `${about} If it is bad: \`sluice runbook ${runbook}\`.`,
    datasource,
    ...shapeOf(panel),
    targets: queries.map(({ legend, expr }, index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource,
      expr,
      legendFormat: legend,
      ...(panel.kind !== undefined && { instant: true }),
      ...(panel.kind === 'table' && { format: 'table' }),
    })),
  }
}

function shapeOf({ kind, unit, max, thresholds = [] }: Panel): object {
  if (kind === 'stat')
    return {
      type: 'stat',
      fieldConfig: {
        defaults: {
          unit,
          color: { mode: 'thresholds' },
          thresholds: {
            mode: 'absolute',
            steps: thresholds.map(({ color, from }, index) => ({ color, value: index === 0 ? null : from })),
          },
        },
        overrides: [],
      },
      options: { colorMode: 'background', graphMode: 'none', reduceOptions: { calcs: ['lastNotNull'] } },
    }
  if (kind === 'table')
    return {
      type: 'table',
      fieldConfig: {
        defaults: {},
        overrides: [linksOfDestinations, { ...named('Value'), properties: [{ id: 'unit', value: unit }] }],
      },
      options: { showHeader: true, sortBy: [{ displayName: 'fails for', desc: true }] },
      transformations: [
        {
          id: 'organize',
          options: { excludeByName: { Time: true }, renameByName: { Value: 'fails for' } },
        },
      ],
    }
  return {
    type: 'timeseries',
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(max !== undefined && { max }),
        custom: { lineWidth: 2, fillOpacity: 10, showPoints: 'never' },
      },
      // The later override counts: what failed is red, whatever else its name says.
      overrides: [painted(success, 'green'), painted(failure, 'red')],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  }
}

function named(name: string): { matcher: object } {
  return { matcher: { id: 'byName', options: name } }
}

/** Paints the lines with these names in shades of a color, so that several of them can be distinguished. */
function painted(pattern: RegExp, fixedColor: string): object {
  return {
    matcher: { id: 'byRegexp', options: String(pattern) },
    properties: [{ id: 'color', value: { mode: 'shades', fixedColor } }],
  }
}

const linksOfDestinations = {
  ...named('destination'),
  properties: [
    {
      id: 'links',
      value: [
        {
          title: 'Dashboard of this destination',
          url: '/d/sluice-destination?var-destination=${__value.raw}&${__url_time_range}&${namespace:queryparam}',
        },
        {
          title: 'What the admin API says',
          url: '${admin}/v1/destinations/${__value.raw}',
          targetBlank: true,
        },
      ],
    },
  ],
}
