import pino from 'pino'
import { expect, test } from 'vitest'
import { readConfig } from '../../../src/config/read.ts'
import type { PartitionReader } from '../../../src/kafka/partition-reader.ts'
import { openReplayReading } from '../../../src/roles/replay-jobs.ts'

const unasked = () => {
  throw new Error('this is not to be asked')
}

/** Reads a piece of a partition that ends at offset `end`, and that gives no records. */
async function pieceOf(end: number) {
  const reader: PartitionReader = {
    piece: async () => {
      throw new Error('the offset is out of range')
    },
    range: async () => ({ start: 0, end }),
    topicId: unasked,
    hasDiverged: unasked,
    read: unasked,
    readWhole: unasked,
    follow: unasked,
    stop: async () => undefined,
  }
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const reading = await openReplayReading(read.config, pino({ level: 'silent' }), reader)
  return reading.pieces('dead-letters').piece({ partition: 0, from: 5, to: 10 })
}

test('a partition that ends before the records of a replay has lost them', async () => {
  expect(await pieceOf(3)).toBe('lost')
  expect(await pieceOf(9)).toBe('lost')
})

test('a partition that only does not answer has lost nothing', async () => {
  await expect(pieceOf(10)).rejects.toThrow('out of range')
})
