import type { Kafka } from 'kafkajs'
import type { LogRange } from './log-reader.ts'
import { withAdmin } from './with-admin.ts'

/**
 * Where the records of a topic lie that were appended from `fromMs` to before `toMs` (epoch milliseconds), by
 * partition number; without a time to the log's begin or end. Of a topic whose producers name the time of a
 * record it is where the first of that time, and of each later time, lie.
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
      const found = await admin.fetchTopicOffsetsByTimestamp(topic, timeMs)
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
