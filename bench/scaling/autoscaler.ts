/**
 * Computes how many pods Kubernetes' HorizontalPodAutoscaler asks for, with metrics as KEDA and the
 * Prometheus adapter provide them. The autoscaler remembers its earlier decisions, and has no other effects.
 * Times are in seconds. Source: k8s.io/kubernetes v1.37, pkg/controller/podautoscaler:
 * `GetExternalPerPodMetricReplicas`, `stabilizeRecommendationWithBehaviors`,
 * `convertDesiredReplicasWithBehaviorRate`.
 */

export type Policy = { type: 'Pods' | 'Percent'; value: number; periodSeconds: number }

export type Behavior = {
  scaleUp: { stabilizationWindowSeconds: number; policies: readonly Policy[] }
  scaleDown: { stabilizationWindowSeconds: number; policies: readonly Policy[] }
}

/**
 * The value of a metric, and how much of it one pod should have. The value is undefined if it isn't known.
 */
export type Reading = { value: number | undefined; perPod: number }

type Event = { atS: number; change: number }

/**
 * The deviation of a metric from its target, as a share, up to which the number of pods stays. This is the
 * default of the controller manager.
 */
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

  /** Returns the number of pods from now on. */
  decide(nowS: number, pods: number, readings: readonly Reading[]): number {
    const asked = askedBy(readings, pods)
    if (asked === undefined) return pods
    const next = this.#limited(nowS, pods, this.#stabilized(nowS, pods, asked))
    if (next > pods) this.#ups.push({ atS: nowS, change: next - pods })
    if (next < pods) this.#downs.push({ atS: nowS, change: pods - next })
    return next
  }

  /**
   * Returns the number of pods after stabilization. It rises at most to the smallest number of the window for
   * scaling up, and falls at most to the largest number of the window for scaling down.
   */
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

  /** Returns the number of pods at the beginning of the period. */
  #before(nowS: number, pods: number, periodS: number): number {
    return pods - changedSince(this.#ups, nowS - periodS) + changedSince(this.#downs, nowS - periodS)
  }
}

/**
 * Returns the largest number of pods that a reading asks for. If a value isn't known, returns at least the
 * present number of pods. If no value is known, returns undefined.
 */
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
