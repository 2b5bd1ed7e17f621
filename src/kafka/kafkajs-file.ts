import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const replaced = new Set<string>()

/**
 * What a file inside of kafkajs exports, or what was put in its place. Throws when there is no such file.
 *
 * @typeParam T what that is, which kafkajs declares no types for
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- nobody else knows what the file exports
export function kafkajsFile<T>(file: string): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller says what it is
  return require(file) as T
}

/**
 * Puts what `make` makes of what a file of kafkajs exports in its place, once in a process: for those files
 * that load it later, as kafkajs does at the first request of a kind. Throws when there is no such file.
 *
 * @typeParam T what the file exports, which kafkajs declares no types for
 */
export function replaceFile<T>(file: string, make: (original: T) => T): void {
  if (replaced.has(file)) return
  const original = kafkajsFile<T>(file)
  const module = require.cache[require.resolve(file)]
  if (module === undefined) throw new Error(`${file} can not be replaced`)
  module.exports = make(original)
  replaced.add(file)
}
