import { sharedSecret } from '../support/worker-variables.ts'
import type { Behaviour } from './customers-process.ts'

/** The behaviours of the first destinations of the soak. All later destinations are healthy. */
const special = ['dead', 'slow', 'failing', 'resetting'] as const satisfies readonly Behaviour[]

/** The healthy destination that is turned off and on again. Its messages aren't routed while it is off. */
export const switchedDestination = special.length
/** The healthy destination whose secret is changed. */
const rotatedDestination = special.length + 1
/** The first of the healthy destinations whose catalog entries stay the same. */
export const firstPlainDestination = special.length + 2
export const destinationCount = 50

export const behaviours: readonly Behaviour[] = Array.from(
  { length: destinationCount },
  (_, number) => special[number] ?? 'healthy',
)

export const secrets: readonly [string, string] = [sharedSecret, `${sharedSecret}, the next one`]

/** The parts of the catalog that are edited during the soak. */
export type CatalogState = { isOff: boolean; secret: 0 | 1 }

export function settingsOf({ isOff, secret }: CatalogState): ReadonlyMap<number, object> {
  return new Map<number, object>([
    [switchedDestination, { state: isOff ? 'off' : 'on' }],
    [rotatedDestination, { sharedSecret: secrets[secret] }],
  ])
}

/**
 * Returns true for a destination that accepts all requests and is always on. All its messages must arrive.
 */
export function takesAll(destination: number): boolean {
  return destination === special.indexOf('slow') || destination > switchedDestination
}
