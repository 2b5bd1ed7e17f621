import { describe, expect, test } from 'vitest'
import { Commits } from '../../../../src/kafka/partitions/commits.ts'
import { errorCodes } from '../../../../src/kafka/wire/error-codes.ts'
import type { WireRequest } from '../../../../src/kafka/wire/wire-request.ts'
import { Partition } from '../../../../src/kafka/partitions/partition.ts'
import { ByteReader, ByteWriter } from '../../../../src/kafka/wire/bytes.ts'
import { memoryOf, type StoredCommit } from '../../../../src/kafka/wire/stored-commit.ts'

const member = { memberId: 'member', generationId: 1, instanceId: undefined }

/**
 * A simulated broker that takes commits as Kafka does, up to these limits. The limits of a real broker can't
 * be set while it runs.
 */
class StrictBroker {
  readonly taken = new Map<number, StoredCommit>()
  readonly said: string[] = []
  requests = 0
  readonly #limits: { metadata: number; batch: number }

  constructor(limits: { metadata?: number; batch?: number }) {
    this.#limits = { metadata: 4_096, batch: 1_000_000, ...limits }
  }

  readonly commits = new Commits({
    coordinator: { ask: (request) => this.#answer(request) },
    groupId: 'group',
    log: {
      warn: (_, message) => void this.said.push(message),
      error: (_, message) => void this.said.push(message),
    },
  })

  async #answer<T>(request: WireRequest<T>): Promise<T> {
    this.requests++
    const version = 6
    const from = new ByteReader(request.write(version))
    from.string()
    from.int32()
    from.string()
    const [entries = []] = from.array(() => {
      from.string()
      return from.array(() => {
        const id = from.int32()
        const offset = from.int64()
        return { id, offset, leaderEpoch: from.int32(), metadata: from.nullableString() }
      })
    })
    const isTooLarge = from.bytes.length > this.#limits.batch
    const out = new ByteWriter()
    out.int32(0).array(['events'], (topic) =>
      out.string(topic).array(entries, (entry) => {
        const isLong = (entry.metadata?.length ?? 0) > this.#limits.metadata
        if (!isLong && !isTooLarge) this.taken.set(entry.id, entry)
        out.int32(entry.id)
        out.int16(
          isLong
            ? errorCodes.OFFSET_METADATA_TOO_LARGE
            : isTooLarge
              ? errorCodes.INVALID_COMMIT_OFFSET_SIZE
              : 0,
        )
      }),
    )
    return request.read(out.finished(), version)
  }
}

function begun(id: number, { settled = 5_000 } = {}): Partition {
  const partition = new Partition('events', id, 0)
  partition.begin({ offset: 0, metadata: null })
  for (let offset = 0; offset < settled; offset++) partition.take(offset)
  for (let offset = 1; offset < settled; offset++) partition.settle(offset)
  return partition
}

const newsOf = (partitions: readonly Partition[]) =>
  partitions.map((partition) => ({ partition, standing: partition.standing(false) }))

describe('a broker that takes shorter metadata', () => {
  test('is not told what went nowhere, but all that is settled', async () => {
    const broker = new StrictBroker({ metadata: 1_000 })
    const partition = new Partition('events', 0, 0, { notesPassedOn: true })
    partition.begin({ offset: 0, metadata: null })
    for (let offset = 0; offset < 5_000; offset++) {
      partition.take(offset)
      if (offset % 2 === 0) partition.passOn(offset)
    }
    for (let offset = 1; offset < 1_000; offset++) partition.settle(offset)
    expect(await broker.commits.write(newsOf([partition]), member)).toEqual(new Set())
    const memory = memoryOf(broker.taken.get(0) ?? { offset: -1, metadata: null })
    expect(memory?.leftOut).toBeUndefined()
    expect(memory?.settledAbove).toHaveLength(999)
    expect(broker.said).toEqual([
      'the broker accepts only shorter commits: after a restart or a rebalance, repeats of earlier messages are delivered; raise its offset.metadata.max.bytes to 4096',
    ])
  })

  test('is given as much of what is settled as it takes, and that is said once', async () => {
    const broker = new StrictBroker({ metadata: 600 })
    const partitions = [begun(0), begun(1)]
    expect(await broker.commits.write(newsOf(partitions), member)).toEqual(new Set())
    await broker.commits.write(newsOf(partitions), member)
    const memory = memoryOf(broker.taken.get(1) ?? { offset: -1, metadata: null })
    expect(memory?.settledAbove.length).toBeGreaterThan(1_000)
    expect(memory?.settledAbove.length).toBeLessThan(4_999)
    expect(broker.said).toEqual([
      'the broker accepts only shorter commits: after a restart, what was settled ahead of an unsettled record is delivered again; raise its offset.metadata.max.bytes to 4096',
    ])
  })

  test('is given who the owner is where nothing else fits', async () => {
    const broker = new StrictBroker({ metadata: 20 })
    await broker.commits.write(newsOf([begun(0)]), member)
    expect(memoryOf(broker.taken.get(0) ?? { offset: -1, metadata: null })).toMatchObject({
      epoch: 1,
      settledAbove: [],
    })
  })

  test('and not even that keeps its partitions from nothing but their commits', async () => {
    const broker = new StrictBroker({ metadata: 4 })
    const partition = begun(0)
    expect(await broker.commits.write(newsOf([partition]), member)).toEqual(new Set([partition]))
    expect(broker.said.at(-1)).toContain(
      'the broker refuses the commits of this partition: its next owner will deliver again what was settled since the last commit: ',
    )
  })
})

test('a broker that takes smaller requests is given smaller ones', async () => {
  const broker = new StrictBroker({ batch: 20_000 })
  const partitions = Array.from({ length: 100 }, (_, id) => begun(id))
  expect(await broker.commits.write(newsOf(partitions), member)).toEqual(new Set())
  expect(broker.taken.size).toBe(100)
  expect(broker.said[0]).toBe('the broker accepts only smaller commits: sending them in smaller parts')
  const before = broker.requests
  await broker.commits.write(newsOf(partitions), member)
  expect(broker.requests - before).toBeLessThan(20)
})
