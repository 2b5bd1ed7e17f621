import type { PipelineObserver } from './pipeline-ports.ts'

type Observing = Partial<PipelineObserver>

/**
 * Returns an observer that passes every call to `first`, and then to those of the others that have its
 * method, in their order.
 */
export function allObservers(
  first: PipelineObserver,
  others: readonly (Observing | undefined)[],
): Required<PipelineObserver> {
  const all: readonly Observing[] = [first, ...others.filter((other) => other !== undefined)]
  function toAll<A extends unknown[]>(
    methodOf: (observer: Observing) => ((...args: A) => void) | undefined,
  ): (...args: A) => void {
    const methods = all.map(methodOf).filter((method) => method !== undefined)
    const [only] = methods
    if (only !== undefined && methods.length === 1) return only
    return (...args) => {
      for (const method of methods) method(...args)
    }
  }
  return {
    firstTried: toAll((observer) => observer.firstTried?.bind(observer)),
    attempted: toAll((observer) => observer.attempted?.bind(observer)),
    batched: toAll((observer) => observer.batched?.bind(observer)),
    delivered: toAll((observer) => observer.delivered?.bind(observer)),
    omitted: toAll((observer) => observer.omitted?.bind(observer)),
    parked: toAll((observer) => observer.parked?.bind(observer)),
    deadLettered: toAll((observer) => observer.deadLettered?.bind(observer)),
    dropped: toAll((observer) => observer.dropped?.bind(observer)),
    notRouted: toAll((observer) => observer.notRouted?.bind(observer)),
    filtered: toAll((observer) => observer.filtered?.bind(observer)),
    unknownSource: toAll((observer) => observer.unknownSource?.bind(observer)),
    repeated: toAll((observer) => observer.repeated?.bind(observer)),
    rulesTooLong: toAll((observer) => observer.rulesTooLong?.bind(observer)),
    askedForToken: toAll((observer) => observer.askedForToken?.bind(observer)),
    failed: toAll((observer) => observer.failed?.bind(observer)),
  }
}
