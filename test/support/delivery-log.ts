import { readBlock } from '../../src/delivery-log/block-reader.ts'
import type { LogRecord } from '../../src/delivery-log/log-record.ts'
import { readAll } from './kafka.ts'

/** Returns all records of a topic of attempts, in the order of their times. */
export async function readLog(topic: string, brokers?: readonly string[]): Promise<LogRecord[]> {
  const written = await readAll(topic, brokers === undefined ? {} : { brokers })
  return written
    .flatMap(({ partition, value }) => (value === null ? [] : readBlock(value, partition)))
    .toSorted((a, b) => a.atMs - b.atMs)
}
