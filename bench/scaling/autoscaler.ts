/**
 * How many pods Kubernetes' HorizontalPodAutoscaler asks for, with metrics as KEDA and the Prometheus adapter give them. Pure but for its
 * memory; times are in seconds. Source: k8s.io/kubernetes v1.37, pkg/controller/podautoscaler: `GetExternalPerPodMetricReplicas`,
 * `stabilizeRecommendationWithBehaviors`, `convertDesiredReplicasWithBehaviorRate`.
 */

export type Policy = { type: 'Pods' | 'Percent'; value: number; periodSeconds: number }

export type Behavior = {
  scaleUp: { stabilizationWindowSeconds: number; policies: readonly Policy[] }
  scaleDown: { stabilizationWindowSeconds: number; policies: readonly Policy[] }
}

/** What is asked for, and how much of it one pod is given; undefined where nobody tells it. */
export type Reading = { value: number | undefined; perPod: number }

type Event = { atS: number; change: number }

/** The share by which a metric may be off before it changes anything: what the controller manager begins with. */
const tolerance = 0.1

export class Autoscaler {
  readonly #least: number
  readonly #most: number
  readonly #behavior: Behavior
  readonly #asked: { atS: number; pods: number }[] = []
  readonly #ups: Event[] = []
  readonly #downs: Event[] = []

  constructor({ least, most, behavior }: { least: number; most: number; behavior: Behavior }) {
    this.#least = least
    this.#most = most
    this.#behavior = behavior
  }

  /** The number of pods from now on. */
  decide(nowS: number, pods: number, readings: readonly Reading[]): number {
    const asked = askedBy(readings, pods)
    if (asked === undefined) return pods
    const next = this.#limited(nowS, pods, this.#stabilized(nowS, pods, asked))
    if (next > pods) this.#ups.push({ atS: nowS, change: next - pods })
    if (next < pods) this.#downs.push({ atS: nowS, change: pods - next })
    return next
  }

  /** Up to the least that was asked for within one window, down to the most within the other. */
  #stabilized(nowS: number, pods: number, asked: number): number {
    const within = (windowS: number): number[] =>
      this.#asked.filter(({ atS }) => atS > nowS - windowS).map((one) => one.pods)
    const up = Math.min(asked, ...within(this.#behavior.scaleUp.stabilizationWindowSeconds))
    const down = Math.max(asked, ...within(this.#behavior.scaleDown.stabilizationWindowSeconds))
    this.#asked.push({ atS: nowS, pods: asked })
    return Math.min(Math.max(pods, up), down)
  }

  #limited(nowS: number, pods: number, wanted: number): number {
    if (wanted > pods) {
      const most = Math.max(...this.#behavior.scaleUp.policies.map((one) => this.#upTo(nowS, pods, one)))
      return Math.min(wanted, this.#most, Math.max(pods, most))
    }
    const least = Math.min(...this.#behavior.scaleDown.policies.map((one) => this.#downTo(nowS, pods, one)))
    return Math.max(wanted, this.#least, Math.min(pods, least))
  }

  #upTo(nowS: number, pods: number, { type, value, periodSeconds }: Policy): number {
    const atStart = this.#before(nowS, pods, periodSeconds)
    return type === 'Pods' ? atStart + value : Math.ceil(atStart * (1 + value / 100))
  }

  #downTo(nowS: number, pods: number, { type, value, periodSeconds }: Policy): number {
    const atStart = this.#before(nowS, pods, periodSeconds)
    return type === 'Pods' ? atStart - value : Math.trunc(atStart * (1 - value / 100))
  }

  /** How many there were when the period began. */
  #before(nowS: number, pods: number, periodS: number): number {
    return pods - changedSince(this.#ups, nowS - periodS) + changedSince(this.#downs, nowS - periodS)
  }
}

/** The most that any of them asks for. Where one isn't told, no fewer than there are; where none is, undefined. */
function askedBy(readings: readonly Reading[], pods: number): number | undefined {
  const asked = readings.flatMap(({ value, perPod }) => {
    if (value === undefined) return []
    const ratio = value / (perPod * pods)
    return [Math.abs(ratio - 1) <= tolerance ? pods : Math.ceil(value / perPod)]
  })
  if (asked.length === 0) return undefined
  const most = Math.max(...asked)
  return asked.length < readings.length ? Math.max(most, pods) : most
}

function changedSince(events: readonly Event[], sinceS: number): number {
  return events.filter(({ atS }) => atS > sinceS).reduce((sum, { change }) => sum + change, 0)
}
