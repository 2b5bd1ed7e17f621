import { type PeerName, peerNames } from '../bench/peers/names.ts'
import { alignTable } from '../src/config/markdown.ts'
import { replaceMarked } from './marked-part.ts'
import { type Bar, drawBars } from './plots/bar-chart.ts'

/** The content of `docs/peers.json`: the figures that `npm run bench -- peers --json` has measured. */
export type PeersResult = {
  peers: Record<PeerName, PeerFigures>
}

type PeerFigures = {
  deliveries_per_s: number
  cpu_us: number
  warm_cpu_us: number
  /**
   * The share of healthy messages that arrived while a tenth of all messages went to a destination that never
   * answers. 0 to 1.
   */
  healthy_kept?: number
  p99_ms_without?: number | null
  /** `null` if more than one message in a hundred didn't arrive. */
  p99_ms_with?: number | null
}

/** Parses the text of `docs/peers.json`. Throws if the figures of a program are missing. */
export function peersResult(text: string): PeersResult {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the benchmark writes it
  const result = JSON.parse(text) as PeersResult
  for (const name of peerNames)
    if (!(name in result.peers)) throw new Error(`docs/peers.json has no figures of ${name}`)
  return result
}

const names: Record<PeerName, string> = {
  dispatch: "undici's dispatch, without Kafka",
  floor: 'kafkajs and dispatch, one URL',
  signing: 'the same, canonical and signed',
  'franz-go': 'franz-go and net/http',
  'parallel-consumer': 'parallel-consumer and Vert.x',
  worker: 'sluice worker',
}

const marks = {
  begin: '<!-- peers: written by `npm run generate` from docs/peers.json -->',
  end: '<!-- end of peers -->',
}

/**
 * Returns the text of `docs/performance.md` with a new table of peers. Throws if the page lacks the marks
 * around the table.
 */
export function performanceMarkdown(page: string, result: PeersResult): string {
  const made = replaceMarked(page, marks, peersTable(result))
  if (made === undefined) throw new Error('docs/performance.md has lost the marks around its peers')
  return made
}

function peersTable({ peers }: PeersResult): string {
  const rows = peerNames.map((name) => {
    const { deliveries_per_s: perS, cpu_us: cpuUs, warm_cpu_us: warmUs, ...isolation } = peers[name]
    const cells = [
      perS.toLocaleString('en'),
      cpuUs.toFixed(1),
      warmUs.toFixed(1),
      ...isolationCells(isolation),
    ]
    return name === 'worker' ? [names[name], ...cells].map((cell) => `**${cell}**`) : [names[name], ...cells]
  })
  return alignTable([
    [
      'program',
      'deliveries/s',
      'CPU µs a delivery',
      'in the second half',
      'healthy kept',
      'p99 without',
      'p99 with',
    ],
    ...rows,
  ])
}

function isolationCells({
  healthy_kept: kept,
  p99_ms_without: without,
  p99_ms_with: with_,
}: Pick<PeerFigures, 'healthy_kept' | 'p99_ms_without' | 'p99_ms_with'>): string[] {
  if (kept === undefined) return ['', '', '']
  return [percentOf(kept), msOf(without), msOf(with_)]
}

/**
 * Returns the picture `docs/peers.svg`. It shows each program's CPU for a delivery, and the share of healthy
 * messages that each program delivers beside a dead destination.
 */
export function peersPlot({ peers }: PeersResult): string {
  const barsOf = (valueOf: (of: PeerFigures) => Omit<Bar, 'name' | 'color'> | undefined): Bar[] =>
    peerNames.flatMap((name) => {
      const value = valueOf(peers[name])
      return value === undefined ? [] : [{ name: names[name], color: colorOf(name), ...value }]
    })
  return drawBars([
    {
      title: 'CPU a delivery',
      bars: barsOf(({ cpu_us: value }) => ({ value, label: `${value.toFixed(1)} µs` })),
    },
    {
      title:
        'Healthy traffic that is delivered while a tenth of all messages goes to an endpoint that never answers',
      bars: barsOf(({ healthy_kept: value }) =>
        value === undefined ? undefined : { value, label: percentOf(value) },
      ),
    },
  ])
}

function colorOf(name: PeerName): string {
  if (name === 'worker') return '#2563eb'
  return name === 'franz-go' || name === 'parallel-consumer' ? '#9ca3af' : '#d1d5db'
}

function percentOf(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function msOf(ms: number | null | undefined): string {
  return typeof ms === 'number' ? `${ms.toFixed(1)} ms` : 'none'
}
