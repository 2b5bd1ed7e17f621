import type { LogLine } from '../test/support/sluice-process.ts'

type Logs = ReadonlyMap<string, readonly LogLine[]>

type Begin = { readonly worker: string; readonly partition: unknown; readonly atMs: number }

/** Returns when workers began the partitions of `topic`, in the order of time. */
function beginsOf(topic: string, logs: Logs): readonly Begin[] {
  return [...logs]
    .flatMap(([worker, lines]) =>
      lines
        .filter((line) => line.msg === 'a partition is begun' && line['topic'] === topic)
        .map((line) => ({ worker, partition: line['partition'], atMs: Date.parse(String(line['time'])) })),
    )
    .toSorted((a, b) => a.atMs - b.atMs)
}

/**
 * Returns a function that returns the owner of a partition of `topic` at a time, in epoch milliseconds. The
 * owner is the last worker that logged the beginning of the partition before that time.
 */
export function readOwners(
  topic: string,
  logs: Logs,
): (partition: number, atMs: number) => string | undefined {
  const begins = beginsOf(topic, logs)
  return (partition, atMs) =>
    begins.findLast((begin) => begin.partition === partition && begin.atMs <= atMs)?.worker
}

/**
 * Returns a function that returns the worker of a tenure, by the time at which the tenure of its unit began, in
 * epoch milliseconds. It is the worker that began the partition of `topic` next to that time. It may have begun
 * it a little earlier or later, because a tenure begins with the reading of the queue.
 */
export function readTenants(
  topic: string,
  logs: Logs,
): (partition: number, sinceMs: number) => string | undefined {
  const begins = beginsOf(topic, logs)
  return (partition, sinceMs) =>
    begins
      .filter((begin) => begin.partition === partition)
      .toSorted((a, b) => Math.abs(a.atMs - sinceMs) - Math.abs(b.atMs - sinceMs))[0]?.worker
}
