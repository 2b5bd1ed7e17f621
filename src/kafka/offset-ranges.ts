import type { Kafka } from 'kafkajs'
import type { LogRange } from './log-reader.ts'
import { withAdmin } from './with-admin.ts'

/**
 * Returns a range of offsets for each partition of a topic, by partition number. A range covers the records
 * that were appended at `fromMs` or later, and before `toMs`. Both are times in epoch milliseconds. Without
 * `fromMs`, a range begins at the start of the log. Without `toMs`, a range ends at the end of the log. If
 * producers set the times of a topic's records, the times may not be in order. In this case, a range begins
 * at the first record with a time of `fromMs` or later. It ends before the first record with a time of `toMs`
 * or later.
 */
export function offsetRanges(
  kafka: Kafka,
  topic: string,
  { fromMs, toMs }: { readonly fromMs?: number | undefined; readonly toMs?: number | undefined },
): Promise<readonly LogRange[]> {
  return withAdmin(kafka, async (admin) => {
    const logs = await admin.fetchTopicOffsets(topic)
    const at = async (timeMs: number | undefined): Promise<ReadonlyMap<number, number>> => {
      if (timeMs === undefined) return new Map()
      // No record is older than 1970. Times before 1970 must not be sent to Kafka, which gives some of them
      // another meaning, and refuses the rest.
      const found = await admin.fetchTopicOffsetsByTimestamp(topic, Math.max(0, timeMs))
      return new Map(found.map(({ partition, offset }) => [partition, Number(offset)]))
    }
    const [starts, ends] = [await at(fromMs), await at(toMs)]
    const ranges: LogRange[] = []
    for (const { partition, low, high } of logs) {
      const start = Math.max(Number(low), starts.get(partition) ?? 0)
      const end = Math.min(Number(high), ends.get(partition) ?? Infinity)
      ranges[partition] = { start: Math.min(start, end), end }
    }
    return ranges
  })
}
