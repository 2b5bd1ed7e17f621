import { sharedSecret } from '../support/worker-variables.ts'
import type { Behaviour } from './customers-process.ts'

/** The destinations of the soak, by number. The first ones are special, all after them healthy. */
const special = ['dead', 'slow', 'failing', 'resetting'] as const satisfies readonly Behaviour[]

/** Healthy, and its owner turns it off and on again: what comes meanwhile isn't routed. */
export const switchedDestination = special.length
/** Healthy, and its owner changes its secret. */
const rotatedDestination = special.length + 1
/** Healthy, and nobody touches its catalog entry. */
export const firstPlainDestination = special.length + 2
export const destinationCount = 50

export const behaviours: readonly Behaviour[] = Array.from(
  { length: destinationCount },
  (_, number) => special[number] ?? 'healthy',
)

export const secrets: readonly [string, string] = [sharedSecret, `${sharedSecret}, the next one`]

/** What the catalog says of destinations, as far as it is edited along the way. */
export type CatalogState = { isOff: boolean; secret: 0 | 1 }

export function settingsOf({ isOff, secret }: CatalogState): ReadonlyMap<number, object> {
  return new Map<number, object>([
    [switchedDestination, { state: isOff ? 'off' : 'on' }],
    [rotatedDestination, { sharedSecret: secrets[secret] }],
  ])
}

/** Whether each of its messages has to come: it takes all that is sent to it, and is always on. */
export function takesAll(destination: number): boolean {
  return destination === special.indexOf('slow') || destination > switchedDestination
}
