import { gzipSync, zstdCompressSync } from 'node:zlib'
import { compressFrameSync } from 'lz4-napi'
import { compressSync as compressSnappySync } from 'snappy'
import { expect, test } from 'vitest'
import { maxRecordHeaders } from '../../src/kafka/wire/record-batch.ts'
import { fuzz, fuzzTimeoutMs } from '../support/fuzz.ts'
import { damage, isUnpolluted } from '../support/mutation.ts'
import { Random } from '../support/random.ts'
import { encodeBatch, encodeRecords, type RawRecord, readBatches, sealed } from '../support/raw-batch.ts'

const compressors: readonly ((content: Buffer) => Buffer)[] = [
  (content) => content,
  (content) => gzipSync(content),
  (content) => compressSnappySync(content),
  (content) => compressFrameSync(content),
  (content) => zstdCompressSync(content),
]

function record(random: Random): RawRecord {
  const bytes = () => (random.oneIn(4) ? null : random.bytes(random.below(random.pick([4, 40, 400]))))
  const name = () =>
    random.pick(['source-id', 'a', '', '__proto__', 'toString', 'h'.repeat(random.below(300))])
  const headers = Array.from({ length: random.below(random.pick([2, 20])) }, () => [name(), bytes()] as const)
  return { key: bytes(), value: bytes(), headers }
}

/**
 * Returns a batch. Some batches are valid, so a broker could hold them. The others are damaged, so no broker
 * would accept them.
 */
function batch(random: Random, baseOffset: number): Buffer {
  const records = Array.from({ length: 1 + random.below(random.pick([2, 20])) }, () => record(random))
  const codec = random.below(compressors.length)
  const attributes = codec | random.pick([0, 8, 16, 32])
  const whole = compressors[codec]?.(encodeRecords(records)) ?? Buffer.alloc(0)
  const content = random.oneIn(2) ? damage(random, whole, [encodeRecords([record(random)])]) : whole
  const encoded = encodeBatch(content, {
    count: records.length,
    baseOffset,
    attributes,
    firstTimestampMs: random.below(2 ** 31),
  })
  if (random.oneIn(3)) {
    // Flips one bit in the batch's head. Doesn't change the bytes that say where the batch ends and which
    // format it has.
    const at = random.pick([17, 21, 22, 23, 26, 27, 35, 43, 57, 59, 60])
    encoded[at] = (encoded[at] ?? 0) ^ (1 << random.below(8))
  }
  // The batch gets a valid checksum, as if a client had written it like this.
  return sealed(encoded)
}

test(
  'whatever the batches of a fetch hold, each is read, or is one record that says why not',
  async () => {
    const seen = { read: 0, unreadable: 0 }
    await fuzz(async ({ seed, numRuns }) => {
      const random = new Random(seed)
      for (let run = 0; run < numRuns / 4; run++) {
        const bytes = batch(random, random.below(2 ** 31))
        const behind = encodeBatch(encodeRecords([{ value: 'behind' }]), { count: 1, baseOffset: 2 ** 40 })
        const startedMs = performance.now()
        const records = await readBatches(Buffer.concat([bytes, behind]))
        expect(performance.now() - startedMs).toBeLessThan(1_000)

        expect(records.at(-1)).toMatchObject({ offset: 2 ** 40, value: Buffer.from('behind') })
        const offsets = records.map(({ offset }) => offset)
        expect(offsets.every((offset, index) => offset > (offsets[index - 1] ?? -1))).toBe(true)
        for (const { unreadable, key, value, headers, timestampMs } of records) {
          seen[unreadable === undefined ? 'read' : 'unreadable']++
          expect(Number.isFinite(timestampMs)).toBe(true)
          expect(Object.getPrototypeOf(headers)).toBe(Object.prototype)
          expect(Object.values(headers).flat().length).toBeLessThanOrEqual(maxRecordHeaders)
          if (unreadable !== undefined) expect([key, value]).toEqual([null, null])
        }
        expect(records.filter(({ unreadable }) => unreadable !== undefined).length).toBeLessThanOrEqual(1)
      }
      const noise = random.bytes(random.below(300))
      noise.writeInt32BE(
        random.below(400),
        Math.min(8, Math.max(0, noise.length - 4)) * Number(noise.length >= 12),
      )
      await readBatches(noise)
      expect(isUnpolluted()).toBe(true)
    })
    process.stdout.write(
      `record batches: ${seen.read} records read, ${seen.unreadable} batches that can't be\n`,
    )
    expect(seen.unreadable).toBeGreaterThan(100)
  },
  fuzzTimeoutMs,
)
