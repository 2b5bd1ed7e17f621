import type { RangeReader } from './store.ts'

/**
 * Reads all entries of a range, and closes the reader. Use this function only for ranges that are known to be
 * short.
 */
export async function entriesOf(reader: RangeReader): Promise<(readonly [key: string, value: string])[]> {
  const all: (readonly [key: string, value: string])[] = []
  try {
    for (let entries = await reader.next(1_000); entries.length > 0; entries = await reader.next(1_000)) {
      all.push(...entries)
    }
  } finally {
    await reader.close()
  }
  return all
}
