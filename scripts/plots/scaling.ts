import { anHour } from '../../bench/scaling/load.ts'
import { type Kind, sceneOf } from '../../bench/scaling/scenes.ts'
import { type Moment, simulate } from '../../bench/scaling/simulation.ts'
import { drawPage, type Line, short } from './line-chart.ts'

const kinds: readonly { kind: Kind; color: string }[] = [
  { kind: 'lag alone', color: '#9ca3af' },
  { kind: 'work and lag', color: '#2563eb' },
]
/** The simulated installation. `share`: the part of all pods' capacity that the load needs at its height. */
const size = { share: 0.35, partitions: 48, processesPerPod: 2 }

/** Returns the picture `docs/scaling.svg`, which compares scaling on work with scaling on lag alone. */
export function scalingPlot(): string {
  const runs = kinds.map(({ kind, color }) => ({ kind, color, moments: simulate(sceneOf(kind, size)) }))
  const lines = (of: (moment: Moment) => number, isStepped = false): Line[] =>
    runs.map(({ kind, color, moments }) => ({
      name: kind,
      color,
      isStepped,
      points: moments.map((moment) => [moment.atS, of(moment)]),
    }))
  const [load] = lines(({ perSecond }) => perSecond)
  const { fromS, untilS } = anHour.dead
  return drawPage({
    from: 0,
    until: anHour.untilS,
    ticks: Array.from({ length: 11 }, (_, index) => ({ at: index * 600, name: `${index * 10} min` })),
    charts: [
      {
        title: 'Messages that come, a second',
        unit: short,
        lines:
          load === undefined
            ? []
            : [
                {
                  ...load,
                  name: `all; from ${fromS / 60} to ${untilS / 60} min a tenth of them fails and is parked`,
                  color: '#059669',
                },
              ],
      },
      { title: 'Pods', lines: lines(({ pods }) => pods, true) },
      { title: 'Rebalances so far', lines: lines(({ rebalances }) => rebalances, true) },
      { title: 'Lag, in records', unit: short, lines: lines(({ lag }) => lag) },
    ],
  })
}
