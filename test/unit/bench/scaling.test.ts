import { describe, expect, test } from 'vitest'
import { Autoscaler, type Behavior } from '../../../bench/scaling/autoscaler.ts'
import { shares } from '../../../bench/scaling/benchmark.ts'
import { chartDefaults } from '../../../bench/scaling/chart-defaults.ts'
import { type Outcome, outcomeOf, sceneOf, sessionS } from '../../../bench/scaling/scenes.ts'
import { simulate } from '../../../bench/scaling/simulation.ts'

/**
 * The scenes: each height of the load, with two seeds for its random part. There are many scenes, so that the
 * load divides evenly among pods and partitions in some of them and unevenly in others.
 */
const scenes = shares.flatMap((share) => [1, 2].map((seed) => ({ share, seed })))

const sizes = [
  { partitions: 12, processesPerPod: 2 },
  { partitions: 12, processesPerPod: 1 },
  { partitions: 48, processesPerPod: 4 },
]

describe.each(sizes)(
  'as the chart scales $partitions partitions with $processesPerPod processes a pod, over an hour in which the load rises tenfold and falls, with a destination that dies',
  (size) => {
    let outcomes: Outcome[] = []
    const played = (): Outcome[] => {
      if (outcomes.length === 0)
        outcomes = scenes.map((scene) => outcomeOf(simulate(sceneOf('work and lag', { ...scene, ...size }))))
      return outcomes
    }

    test('the number of pods changes at most once in the half hour that the load is steady', () => {
      expect(Math.max(...played().map(({ steadyChanges }) => steadyChanges))).toBeLessThanOrEqual(1)
    })

    test('the lag is that of half a minute at most, and from five minutes after the rise on that of five seconds', () => {
      expect(Math.max(...played().map(({ behindS }) => behindS))).toBeLessThan(30)
      expect(Math.max(...played().map(({ laterBehindS }) => laterBehindS))).toBeLessThan(5)
    })

    test('no partition is more than five seconds behind while pods leave', () => {
      expect(Math.max(...played().map(({ leavingBehindS }) => leavingBehindS))).toBeLessThan(5)
    })

    test('there is always a pod, and never one that has no partition', () => {
      expect(Math.min(...played().map(({ fewest }) => fewest))).toBeGreaterThanOrEqual(1)
      const most = Math.ceil(size.partitions / size.processesPerPod)
      expect(Math.max(...played().map((one) => one.most))).toBeLessThanOrEqual(most)
    })
  },
)

test('where pods do not leave the group when they stop, partitions of each wait until its session is over', () => {
  const outcomes = shares.map((share) =>
    outcomeOf(simulate(sceneOf('work and lag', { share, leaveOnStop: false }))),
  )
  expect(Math.min(...outcomes.map(({ leavingBehindS }) => leavingBehindS))).toBeGreaterThan(sessionS - 5)
  expect(Math.max(...outcomes.map(({ leavingBehindS }) => leavingBehindS))).toBeLessThan(sessionS + 10)
})

test('by lag alone pods come and go at a steady load: what the chart does not do any more', () => {
  const outcomes = shares.map((share) => outcomeOf(simulate(sceneOf('lag alone', { share }))))
  expect(outcomes.filter(({ steadyChanges }) => steadyChanges > 1).length).toBeGreaterThan(shares.length / 2)
})

describe('the autoscaler decides as the HorizontalPodAutoscaler does', () => {
  const behavior: Behavior = {
    scaleUp: {
      stabilizationWindowSeconds: 30,
      policies: [
        { type: 'Percent', value: 100, periodSeconds: 60 },
        { type: 'Pods', value: 2, periodSeconds: 60 },
      ],
    },
    scaleDown: {
      stabilizationWindowSeconds: 600,
      policies: [{ type: 'Pods', value: 1, periodSeconds: 120 }],
    },
  }
  /** Decides every 15 s on the next value. Returns the number of pods after each decision. */
  const play = (pods: number, values: readonly (number | undefined)[]): number[] => {
    const autoscaler = new Autoscaler({ least: 1, most: 10, behavior })
    return values.map((value, index) => {
      pods = autoscaler.decide(index * 15, pods, [{ value, perPod: 10 }])
      return pods
    })
  }
  test('it takes the least of the window before it goes up, and the larger of two steps a minute', () => {
    expect(play(1, [10, 90, 90, 90, 90, 90, 90, 90])).toEqual([1, 1, 3, 3, 3, 3, 6, 6])
  })

  test('it ignores a tenth more or less', () => {
    expect(play(5, times(10, 54))).toEqual(times(10, 5))
  })

  test('it goes down by one pod in two minutes, once nobody has asked for more in ten', () => {
    const pods = play(3, [30, ...times(60, 1)])
    expect(pods.slice(0, 40)).toEqual(times(40, 3))
    expect(pods.indexOf(2)).toBe(40)
    expect(pods.indexOf(1)).toBe(48)
    expect(pods.at(-1)).toBe(1)
  })

  test('it stays where nobody tells, and never passes its limits', () => {
    expect(play(4, times(50, undefined))).toEqual(times(50, 4))
    expect(Math.max(...play(4, times(50, 9_999)))).toBe(10)
  })

  test('its limits and windows are those of the chart', () => {
    expect(chartDefaults().behavior).toEqual(behavior)
  })
})

function times<T>(count: number, value: T): T[] {
  return Array.from({ length: count }, () => value)
}
