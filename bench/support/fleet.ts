import { writeFileSync } from 'node:fs'
import { destinationIdOf, sourceIdOf } from './streams.ts'
import { sharedSecret } from './worker-variables.ts'

/**
 * The destinations of a run, numbered from 0. Each destination has a separate source, so that a message goes
 * to exactly one destination.
 */
export type Fleet = {
  count: number
  urlOf: (destination: number) => string
  /** Further settings of some destinations in the catalog. They may override the shared secret. */
  settings?: ReadonlyMap<number, object>
  /** Sources without a connected destination. */
  otherSources?: readonly object[]
}

/**
 * Writes the catalog of a fleet. If the file has an earlier catalog, this is an edit, which a worker loads
 * within a second.
 */
export function writeFleet(file: string, { count, urlOf, settings, otherSources = [] }: Fleet): void {
  const numbers = Array.from({ length: count }, (_, index) => index)
  const catalog = {
    sources: [...numbers.map((number) => ({ id: sourceIdOf(number) })), ...otherSources],
    destinations: numbers.map((number) => ({
      id: destinationIdOf(number),
      sources: [sourceIdOf(number)],
      sharedSecret,
      ...settings?.get(number),
      hooks: [{ url: urlOf(number) }],
    })),
  }
  // The catalog is written as JSON, because a worker would need half a minute to read YAML of 100,000
  // destinations.
  writeFileSync(file, JSON.stringify(catalog, null, 1))
}
