import type { LogLine } from '../test/support/sluice-process.ts'

/**
 * Reads from the logs of workers which of them owned a partition of a topic at a time, in epoch milliseconds: the last one that had
 * begun it.
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
