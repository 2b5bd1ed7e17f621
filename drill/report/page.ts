import { describeFault, type Happened } from '../play.ts'
import { destinations } from '../fleet.ts'
import type { Check } from '../oracle.ts'
import { causes } from '../repeats.ts'
import type { Drill } from '../run.ts'
import { figuresOf } from '../figures.ts'
import { drawChart, drawTimeAxis, type Frame } from './chart.ts'
import { drawFaults, faultColours, natureOf } from './fault-lanes.ts'
import { latencyOf, type Point, seriesOf, type Series, wellDestination } from './series.ts'
import { script, style } from './style.ts'
import { clockOf, durationOf, escape, whole } from './text.ts'

/** Returns the report of a drill as one HTML file that needs no other files. */
export function reportOf(drill: Drill): string {
  const { settings, startedMs, verdict } = drill
  const state = verdict.isPassed ? 'passed' : 'failed'
  const title = `Fault drill of ${settings.minutes} minutes: ${state}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<header><h1>Fault drill</h1><span class="badge ${state}">${state}</span></header>
<p class="about">${settings.minutes} minutes from ${new Date(startedMs).toISOString().slice(0, 19).replace('T', ' ')} UTC, seed ${settings.seed}, ${settings.rate} events a second;
three brokers, three workers and a gateway, Node ${process.version}.<br>
The same faults again: <code>npm run drill -- --minutes ${settings.minutes} --seed ${settings.seed} --rate ${settings.rate}</code></p>
${drawTiles(drill)}
${drawPlots(drill)}
<section class="card"><h2>What is promised</h2>${drawChecks(verdict.checks)}</section>
<section class="card"><h2>Endpoints of events</h2>${drawDestinations(drill)}</section>
<section class="card"><h2>What was delivered more than once</h2>${drawRepeats(drill)}</section>
<section class="card"><details><summary>All ${drill.evidence.happened.length} faults</summary>${drawFaultTable(drill)}</details></section>
</main>
</body>
</html>
`
}

function drawTiles(drill: Drill): string {
  const figures = figuresOf(drill)
  const tiles: (readonly [value: string, name: string, isBad?: boolean])[] = [
    [whole(figures.sent), 'events sent'],
    [whole(figures.delivered), 'delivered'],
    [whole(figures.lost), 'lost', figures.lost > 0],
    [`${(figures.repeated_share * 100).toFixed(2)} %`, 'delivered more than once'],
    [whole(figures.last_values_wrong), 'last values wrong', figures.last_values_wrong > 0],
    [whole(figures.worker_kills), 'workers killed'],
    [whole(figures.broker_kills), figures.broker_kills === 1 ? 'broker killed' : 'brokers killed'],
    [durationOf(figures.latency_p50_ms), `p50 to ${wellDestination}`],
    [durationOf(figures.latency_p99_ms), `p99 to ${wellDestination}`],
    [durationOf(figures.settle_s * 1_000), 'until all was settled'],
  ]
  return `<div class="tiles">${tiles
    .map(
      ([value, name, isBad]) =>
        `<div class="tile${isBad ? ' bad' : ''}"><b>${escape(value)}</b><span>${escape(name)}</span></div>`,
    )
    .join('')}</div>`
}

function drawPlots(drill: Drill): string {
  const { startedMs, calmMs, settledMs, evidence } = drill
  const frame: Frame = { width: 1_120, left: 150, right: 8, lengthMs: settledMs - startedMs }
  const series = seriesOf(drill)
  const killed = evidence.happened.filter(({ fault }) => natureOf(fault) === 'killed')
  const marks = { killed: killed.map(({ fromMs }) => fromMs - startedMs), calmMs: calmMs - startedMs }
  const latency = {
    unit: `ms, from the request that sent it to ${wellDestination}`,
    isLogarithmic: true,
  } as const
  const charts = [
    drawChart(frame, {
      title: 'Throughput',
      unit: 'a second',
      height: 170,
      marks,
      lines: [
        { name: 'delivered', colour: 'var(--delivered)', points: series.delivered, isFilled: true },
        { name: 'events sent', colour: 'var(--sent)', points: series.sent },
      ],
    }),
    drawChart(frame, {
      title: 'Lag',
      unit: 'records not committed, retries that wait among them',
      height: 140,
      marks,
      lines: [{ name: 'lag', colour: 'var(--lag)', points: series.lag, isFilled: true }],
    }),
    drawChart(frame, {
      title: 'Latency',
      ...latency,
      height: 170,
      marks,
      lines: [
        { name: 'p50', colour: 'var(--p50)', points: series.p50 },
        { name: 'p99', colour: 'var(--p99)', points: series.p99 },
      ],
    }),
    drawChart(frame, {
      title: 'Workers',
      unit: 'that run and are not stopped',
      height: 92,
      marks,
      lines: [
        { name: 'awake', colour: 'var(--awake)', points: series.awake, isFilled: true, isStepped: true },
      ],
    }),
    drawFaults(frame, { happened: evidence.happened, startedMs, marks }),
    drawTimeAxis(frame),
  ]
  const moments = JSON.stringify({ frame, told: momentsOf(series) }).replaceAll('<', String.raw`\u003c`)
  return `<section class="card" id="plots"><div id="hair"></div><div id="told"></div>
${charts.join('\n')}
<script type="application/json" id="moments">${moments}</script><script>${script}</script></section>`
}

/** Returns the text that the page shows for each moment. */
function momentsOf(series: Series): [ms: number, text: string][] {
  return series.delivered.map(({ atMs, value }) => {
    const rate = (points: readonly Point[]): string => `${whole(Math.round(nearest(points, atMs) ?? 0))}/s`
    return [
      Math.round(atMs),
      [
        clockOf(atMs),
        line('delivered', `${whole(Math.round(value ?? 0))}/s`),
        line('sent', rate(series.sent)),
        line('lag', whole(nearest(series.lag, atMs) ?? 0)),
        line('p50', durationOf(nearest(series.p50, atMs) ?? Number.NaN)),
        line('p99', durationOf(nearest(series.p99, atMs) ?? Number.NaN)),
      ].join('\n'),
    ]
  })
}

function line(name: string, text: string): string {
  return `${name.padEnd(10)} ${text}`
}

function nearest(points: readonly Point[], atMs: number): number | undefined {
  return (points.find((point) => point.atMs >= atMs) ?? points.at(-1))?.value
}

function drawChecks(checks: readonly Check[]): string {
  const rows = checks.map(
    ({ promise, isKept, found, against }) =>
      `<tr><td class="mark-cell ${isKept ? 'good">✓' : 'bad">✗'}</td><td>${escape(promise)}${against.length > 0 ? `<pre>${escape(against.join('\n'))}</pre>` : ''}</td><td class="number">${escape(found)}</td></tr>`,
  )
  return `<table>${rows.join('')}</table>`
}

function drawDestinations(drill: Drill): string {
  const { deliveries, deadLetters } = drill.evidence
  const rows = destinations
    .filter(({ behaviour }) => behaviour !== 'audience')
    .map(({ id, scheme, behaviour, hasFailingHook, isProxied, isPaused, isEdited, perSecond }) => {
      const taken = [...deliveries].filter(([key]) => key.startsWith(`${id}/`))
      const repeated = taken.filter(([, all]) => all.length > 1).length
      const dead = deadLetters.filter(({ destination }) => destination === id).length
      const { p50, p99 } = latencyOf(drill, id)
      const manner = [
        scheme,
        behaviour,
        ...(hasFailingHook ? ['a second URL fails'] : []),
        ...(isProxied ? ['its network is troubled'] : []),
        ...(isPaused ? ['paused at times'] : []),
        ...(isEdited ? ['edited and called back at times'] : []),
        ...(perSecond === undefined ? [] : [`takes ${perSecond} a second`]),
      ].join(', ')
      return [id, manner, whole(taken.length), whole(repeated), whole(dead), durationOf(p50), durationOf(p99)]
    })
  return drawTable(['destination', 'is', 'taken', 'more than once', 'dead letters', 'p50', 'p99'], rows, 2)
}

function drawRepeats(drill: Drill): string {
  const { repeats } = drill.verdict
  const { faults, mean, most, most_possible: possible } = figuresOf(drill).repeats_a_worker_fault
  const rows = causes.map((cause) => {
    const of = repeats.filter((repeat) => repeat.cause === cause)
    return [cause, whole(of.length)]
  })
  const limit = `A worker that is killed or stopped repeats what it has delivered and not committed. Of ${faults} such faults one repeated ${mean} messages on average, ${whole(most)} at the most; it may have been ${whole(possible)}.`
  return `${drawTable(['why', 'messages'], rows, 1)}<p class="about">${limit}</p>`
}

function drawFaultTable({ evidence: { happened }, startedMs }: Drill): string {
  const rows = happened
    .toSorted((a, b) => a.fromMs - b.fromMs)
    .map(
      (one) =>
        `<tr><td class="number">${clockOf(one.fromMs - startedMs)}</td><td>${drawDot(one)}${escape(describeFault(one.fault))}</td><td class="number">${durationOf(one.fault.forMs)}</td><td class="number">${durationOf(one.toMs - one.fromMs)}</td></tr>`,
    )
  return `<table><tr><th class="number">at</th><th>fault</th><th class="number">for</th><th class="number">all back after</th></tr>${rows.join('')}</table>`
}

function drawDot({ fault }: Happened): string {
  return `<span class="dot" style="background:${faultColours[natureOf(fault)]}"></span>`
}

/** Returns an HTML table. The column `numbersFrom` and all columns to its right contain figures. */
function drawTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  numbersFrom: number,
): string {
  const row = (tag: 'th' | 'td', cells: readonly string[]): string =>
    `<tr>${cells.map((cell, index) => `<${tag}${index >= numbersFrom ? ' class="number"' : ''}>${escape(cell)}</${tag}>`).join('')}</tr>`
  return `<table>${row('th', heads)}${rows.map((cells) => row('td', cells)).join('')}</table>`
}
