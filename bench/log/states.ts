import { createHash } from 'node:crypto'
import { BlockWriter, type WrittenState } from '../../src/delivery-log/block-writer.ts'
import type { IndexedBlock } from '../../src/delivery-log/sqlite/index-writer.ts'

/** The states that a busy installation writes over many hours: many destinations, some of them failing. */

const partitions = 12
const destinations = 200
const users = 1_000_000
const statesInBlock = 200

export type Stream = {
  /**
   * Makes the next `states` states, or those that are left, and writes them into blocks. Returns the blocks
   * that became full. The last call also returns the blocks that didn't become full.
   */
  next(states: number): IndexedBlock[]
  readonly written: number
}

/**
 * Returns the message id of a state. The same number always gives the same id, so queries can ask for ids
 * that exist.
 */
export function messageIdOf(index: number): string {
  const hex = createHash('md5').update(String(index)).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}

export function userOf(index: number): string {
  const number = (index * 7_919) % users
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE((number * 281_474_977 + 12_345) % 2 ** 48, 0, 6)
  return bytes.toString('latin1')
}

export function destinationOf(index: number): string {
  return `destination-${(index * 31) % destinations}`
}

export function openStream({ rows, fromMs, toMs }: { rows: number; fromMs: number; toMs: number }): Stream {
  const writers = Array.from({ length: partitions }, () => new BlockWriter())
  const offsets = Array.from({ length: partitions }, () => 0)
  let index = 0
  function take(partition: number, atMs: number): IndexedBlock {
    const offset = offsets[partition] ?? 0
    offsets[partition] = offset + 1
    return { partition, offset, timestampMs: atMs, value: writers[partition]?.take() ?? Buffer.alloc(0) }
  }
  return {
    get written() {
      return index
    },
    next(states) {
      const blocks: IndexedBlock[] = []
      for (const end = Math.min(rows, index + states); index < end; index++) {
        const partition = index % partitions
        const atMs = Math.floor(fromMs + ((toMs - fromMs) * index) / rows)
        const writer = writers[partition]
        if (writer === undefined) continue
        writer.add(stateOf(index, partition, atMs))
        if (writer.count >= statesInBlock) blocks.push(take(partition, atMs))
      }
      if (index >= rows)
        for (let unit = 0; unit < partitions; unit++)
          if ((writers[unit]?.count ?? 0) > 0) blocks.push(take(unit, toMs))
      return blocks
    },
  }
}

function stateOf(index: number, partition: number, atMs: number): WrittenState {
  const isSick = index % 50 === 7
  const isParked = index % 50 === 8
  return {
    kind: isParked ? 1 : 0,
    atMs: atMs - (index % 1_500),
    isEnd: !isSick && !isParked,
    weight: index % 100 === 0 ? 10 : 1,
    destination: destinationOf(index),
    hook: 'main',
    source: `source-${index % 3}`,
    messageId: messageIdOf(index),
    messageType: index % 4 === 0 ? 'identify' : 'track',
    originTopic: 'sluice.events',
    originPartition: partition,
    originOffset: 1_000_000_000 + index,
    attempt: 1,
    verdict: isSick ? 2 : isParked ? 0 : 1,
    outcome: isParked ? 0 : 1,
    status: isParked ? 0 : isSick ? 503 : 200,
    durationMs: isParked ? 0 : 3 + ((index * 7) % 400) / 3,
    reason: isParked ? 'failed' : '',
    error: '',
    waitMs: isParked ? 60_000 : 0,
    firstSeenMs: atMs - (index % 1_500) - 30 - (index % 100),
    user: userOf(index),
    job: '',
    answer: undefined,
    values: '',
  }
}
