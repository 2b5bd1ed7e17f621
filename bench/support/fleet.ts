import { writeFileSync } from 'node:fs'
import { destinationIdOf, sourceIdOf } from './streams.ts'
import { sharedSecret } from './worker-variables.ts'

/** The destinations of a run, numbered from 0, each behind a source of its own: a message goes to exactly one. */
export type Fleet = {
  count: number
  urlOf: (destination: number) => string
  /** What the catalog says of some of them beside the URL and the secret. */
  settings?: ReadonlyMap<number, object>
  /** Sources that no destination is connected to. */
  otherSources?: readonly object[]
}

/** Writes the catalog of a fleet; over an earlier one it is an edit, which the worker takes within a second. */
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
  // YAML of 100,000 destinations would take a worker half a minute to read.
  writeFileSync(file, JSON.stringify(catalog, null, 1))
}
