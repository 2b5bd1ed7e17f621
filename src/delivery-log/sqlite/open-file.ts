import { DatabaseSync } from 'node:sqlite'

/**
 * How long the writer and a reader of a file wait for each other, in milliseconds. They seldom do: a new file
 * is locked as a whole until it has its journal, and so is one that was not closed until somebody has
 * recovered it.
 */
const patienceMs = 5_000

/**
 * Opens a file of the index. Sets the patience before the first statement, because even a PRAGMA such as
 * `cache_size` reads the file, and fails at once where another process has locked it.
 */
export function openFile(
  path: string,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): DatabaseSync {
  return new DatabaseSync(path, { readOnly, timeout: patienceMs })
}
