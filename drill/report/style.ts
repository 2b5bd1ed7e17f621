/** The style sheet of the report, which is light or dark according to the reader's setting. */
export const style = `
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #16202c; --dim: #667386; --rule: #e4e8ee;
  --good: #0f8a5f; --bad: #d12f3b;
  --sent: #8795a8; --delivered: #0f9d8a; --lag: #d98212; --p50: #2f6fed; --p99: #9457e8; --awake: #5b6b80;
  --killed: #dc3b45; --stopped: #eda12f; --planned: #4b8bf4; --network: #9b6bea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #10151c; --card: #182029; --ink: #e6ebf2; --dim: #93a0b3; --rule: #2a3542;
    --good: #3ecf97; --bad: #ff6b74;
    --sent: #8b99ad; --delivered: #2cc7b2; --lag: #f0a03c; --p50: #6c9cff; --p99: #b98bff; --awake: #93a0b3;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 36px 24px 64px; }
header { display: flex; align-items: center; gap: 16px; flex-wrap: wrap; }
h1 { font-size: 26px; font-weight: 650; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 15px; font-weight: 650; margin: 0 0 12px; }
.badge { font-weight: 650; padding: 4px 14px; border-radius: 999px; color: #fff; background: var(--good); }
.badge.failed { background: var(--bad); }
.about { color: var(--dim); margin: 8px 0 24px; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 18px 20px; margin: 0 0 18px; overflow-x: auto; }
.tiles { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 12px; margin: 0 0 18px; }
.tile { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 12px 16px; }
.tile b { display: block; font-size: 22px; font-weight: 650; font-variant-numeric: tabular-nums; letter-spacing: -0.01em; white-space: nowrap; }
.tile span { color: var(--dim); font-size: 12.5px; }
.tile.bad b, .bad { color: var(--bad); }
.good { color: var(--good); }
@media (max-width: 760px) { .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
#plots { position: relative; }
.chart { display: block; width: 100%; height: auto; margin: 0 0 6px; overflow: visible; }
.chart text { fill: var(--ink); font-size: 11.5px; }
.chart .title { font-size: 13px; font-weight: 650; }
.chart .unit { fill: var(--dim); font-weight: 400; font-size: 11.5px; }
.chart .tick, .chart .legend { fill: var(--dim); font-size: 11px; font-variant-numeric: tabular-nums; }
.chart .row { fill: var(--dim); font-size: 11.5px; }
.chart .grid { stroke: var(--rule); stroke-width: 1; }
.chart .mark { stroke: var(--killed); stroke-width: 1; opacity: 0.22; }
.chart .line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.chart .end { stroke: var(--dim); stroke-dasharray: 3 3; }
#hair { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--dim); opacity: 0; pointer-events: none; }
#told { position: absolute; top: 8px; padding: 8px 12px; border-radius: 8px; background: var(--ink); color: var(--card); font-size: 12px; line-height: 1.55; white-space: pre; opacity: 0; pointer-events: none; font-variant-numeric: tabular-nums; z-index: 1; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--dim); font-size: 12.5px; }
th, td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
.number { text-align: right; }
.mark-cell { width: 28px; font-weight: 700; }
details summary { cursor: pointer; font-weight: 650; }
details table { margin-top: 12px; }
pre { margin: 6px 0 0; font: 12px/1.5 ui-monospace, 'DejaVu Sans Mono', monospace; color: var(--dim); white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: 12.5px ui-monospace, 'DejaVu Sans Mono', monospace; }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 8px; }
`

/** Shows the values at the time below the pointer. `told` is [[ms, text], …] in order of time. */
export const script = `
const { frame, told } = JSON.parse(document.getElementById('moments').textContent)
const plots = document.getElementById('plots'), hair = document.getElementById('hair'), box = document.getElementById('told')
plots.addEventListener('pointermove', (event) => {
  const area = plots.getBoundingClientRect(), svg = plots.querySelector('svg').getBoundingClientRect()
  const scale = svg.width / frame.width
  const share = ((event.clientX - svg.left) / scale - frame.left) / (frame.width - frame.left - frame.right)
  const isInside = share >= 0 && share <= 1
  hair.style.opacity = isInside ? 0.6 : 0
  box.style.opacity = isInside ? 0.95 : 0
  if (!isInside) return
  const at = share * frame.lengthMs
  const next = told.findIndex(([ms]) => ms >= at)
  box.textContent = (told[next === -1 ? told.length - 1 : next] ?? [0, ''])[1]
  hair.style.left = event.clientX - area.left + 'px'
  box.style.left = share < 0.7 ? event.clientX - area.left + 14 + 'px' : 'auto'
  box.style.right = share < 0.7 ? 'auto' : area.right - event.clientX + 14 + 'px'
})
plots.addEventListener('pointerleave', () => { hair.style.opacity = 0; box.style.opacity = 0 })
`
