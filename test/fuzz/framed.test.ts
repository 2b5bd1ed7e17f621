import assert from 'node:assert/strict'
import avro from 'avsc'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { createAvroReader } from '../../src/schema-registry/avro.ts'
import { parseAvroSchema } from '../../src/schema-registry/avro-schema.ts'
import { fuzz, fuzzTimeoutMs } from '../support/fuzz.ts'
import { damage, isUnpolluted, timeOf } from '../support/mutation.ts'
import { Random } from '../support/random.ts'
import { arbitraryAvro } from '../unit/schema-registry/arbitrary-avro.ts'

const mostMs = 50

test(
  'whatever the bytes of an Avro value are, they are read or refused, in little time',
  async () => {
    const seen = { read: 0, refused: 0 }
    await fuzz(({ seed, numRuns }) => {
      const random = new Random(seed)
      const cases = fc.sample(arbitraryAvro, { seed, numRuns: numRuns / 20 })
      for (const { schema, value } of cases) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- avsc checks it
        const type = avro.Type.forSchema(schema as avro.Type, { wrapUnions: 'always' })
        const read = createAvroReader(parseAvroSchema(schema))
        const sound = type.toBuffer(value)
        for (let run = 0; run < 20; run++) {
          const damaged = damage(random, sound, [random.bytes(16), sound])
          assert.ok(timeOf(() => read(damaged), mostMs) < mostMs, damaged.toString('hex'))
          const result = read(damaged)
          seen[result.ok ? 'read' : 'refused']++
          if (result.ok) JSON.parse(result.value.toString())
        }
      }
      expect(isUnpolluted()).toBe(true)
    })
    process.stdout.write(`framed values: ${seen.read} read, ${seen.refused} refused\n`)
    expect(seen.read).toBeGreaterThan(100)
    expect(seen.refused).toBeGreaterThan(100)
  },
  fuzzTimeoutMs,
)
