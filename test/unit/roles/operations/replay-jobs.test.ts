import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { freePorts } from '../../../../src/development/free-ports.ts'
import { readConfig } from '../../../../src/config/read.ts'
import type { PartitionReader } from '../../../../src/kafka/read/partition-reader.ts'
import { openReplayReading } from '../../../../src/roles/operations/replay-jobs.ts'

const unasked = () => {
  throw new Error('this is not to be asked')
}

async function openReading(given: Partial<PartitionReader>, env: Record<string, string> = {}) {
  const reader: PartitionReader = {
    piece: unasked,
    range: unasked,
    ranges: unasked,
    topicId: unasked,
    hasDiverged: unasked,
    divergesAt: unasked,
    read: unasked,
    readWhole: unasked,
    follow: unasked,
    stop: async () => undefined,
    ...given,
  }
  const read = readConfig({ env })
  if (!read.ok) throw new Error(read.message)
  const reading = await openReplayReading(read.config, pino({ level: 'silent' }), reader)
  onTestFinished(() => reading.stop())
  return reading
}

/** Reads a piece of a partition that ends at offset `end`, and that gives no records. */
async function pieceOf(end: number) {
  const reading = await openReading({
    piece: async () => {
      throw new Error('the offset is out of range')
    },
    range: async () => ({ start: 0, end }),
  })
  return reading.pieces('dead-letters').piece({ partition: 0, from: 5, to: 10 })
}

test('a partition that ends before the records of a replay has lost them', async () => {
  expect(await pieceOf(3)).toBe('lost')
  expect(await pieceOf(9)).toBe('lost')
})

test('a partition that only does not answer has lost nothing', async () => {
  await expect(pieceOf(10)).rejects.toThrow('out of range')
})

test('a replay that waits for a schema registry that is down ends when it is stopped', async () => {
  const framed = {
    offset: 5,
    key: Buffer.from('u1'),
    value: Buffer.from([0, 0, 0, 0, 9, 1]),
    headers: {},
    timestampMs: 0,
  }
  const reading = await openReading(
    { piece: async () => ({ records: [framed], next: 6 }) },
    { SLUICE_REGISTRY_URL: `http://127.0.0.1:${(await freePorts(1))[0]}` },
  )
  const stopping = new AbortController()
  const piece = reading.pieces('events').piece({ partition: 0, from: 5, to: 6, signal: stopping.signal })
  stopping.abort(new Error('the replay is stopped'))
  await expect(piece).rejects.toThrow('the replay is stopped')
})
