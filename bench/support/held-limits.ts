import { HookLoad } from '../../src/delivery/load/hook-load.ts'

const ceiling = 64

/**
 * From now on, nothing is learned about requests in flight: each hook gets as many at once as the catalog's
 * default `maxInFlight` allows. Returns a function that undoes this.
 */
export function holdLimits(): () => void {
  const { prototype } = HookLoad
  const names = ['cap', 'hasRoom', 'perSecondAt'] as const
  const learned = names.map((name) => [name, Object.getOwnPropertyDescriptor(prototype, name) ?? {}] as const)
  Object.defineProperty(prototype, 'cap', { configurable: true, get: () => ceiling })
  Object.defineProperty(prototype, 'hasRoom', { configurable: true, value: () => true })
  Object.defineProperty(prototype, 'perSecondAt', { configurable: true, value: () => undefined })
  return () => {
    for (const [name, descriptor] of learned) Object.defineProperty(prototype, name, descriptor)
  }
}
