import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const replaced = new Set<string>()

/**
 * Returns the exports of a file inside kafkajs, or the exports that `replaceFile` has put in their place.
 * Throws when there is no such file.
 *
 * @typeParam T the type of the exports, for which kafkajs declares none
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- only the caller knows what the file exports
export function kafkajsFile<T>(file: string): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type of the exports
  return require(file) as T
}

/**
 * Replaces the exports of a file inside kafkajs by the exports that `make` returns. Does this only once in a
 * process. Only files that load the replaced file after this call get the replacement. kafkajs loads the file
 * of a request when it first sends such a request. Throws when there is no such file.
 *
 * @typeParam T the type of the exports, for which kafkajs declares none
 */
export function replaceFile<T>(file: string, make: (original: T) => T): void {
  if (replaced.has(file)) return
  const original = kafkajsFile<T>(file)
  const module = require.cache[require.resolve(file)]
  if (module === undefined) throw new Error(`${file} can not be replaced`)
  module.exports = make(original)
  replaced.add(file)
}
