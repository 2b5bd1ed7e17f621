import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const replaced = new Set<string>()

/**
 * Puts what `make` makes of what a file of kafkajs exports in its place, once in a process: for those files that load it later, as
 * kafkajs does at the first request of a kind. Throws when there is no such file.
 *
 * @typeParam T what the file exports, which kafkajs declares no types for
 */
export function replaceFile<T>(file: string, make: (original: T) => T): void {
  if (replaced.has(file)) return
  const path = require.resolve(file)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
  const original = require(path) as T
  const module = require.cache[path]
  if (module === undefined) throw new Error(`${file} can not be replaced`)
  module.exports = make(original)
  replaced.add(file)
}
