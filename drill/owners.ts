import type { LogLine } from '../test/support/sluice-process.ts'

/**
 * Returns a function that returns the owner of a partition of `topic` at a time, in epoch milliseconds. The
 * owner is the last worker that logged the beginning of the partition before that time.
 */
export function readOwners(
  topic: string,
  logs: ReadonlyMap<string, readonly LogLine[]>,
): (partition: number, atMs: number) => string | undefined {
  const begins = [...logs]
    .flatMap(([worker, lines]) =>
      lines
        .filter((line) => line.msg === 'a partition is begun' && line['topic'] === topic)
        .map((line) => ({ worker, partition: line['partition'], atMs: Date.parse(String(line['time'])) })),
    )
    .toSorted((a, b) => a.atMs - b.atMs)
  return (partition, atMs) =>
    begins.findLast((begin) => begin.partition === partition && begin.atMs <= atMs)?.worker
}
