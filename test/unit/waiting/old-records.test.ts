import { expect, test } from 'vitest'
import type { PartitionReader, PieceOptions } from '../../../src/kafka/read/partition-reader.ts'
import { OldRecords } from '../../../src/waiting/old-records.ts'
import { Owners } from '../../../src/waiting/owners.ts'
import { UnitIndex } from '../../../src/waiting/unit-index.ts'
import { quietLog } from '../../support/emitted-lines.ts'
import { until } from '../../support/until.ts'
import { fetchFromFullLog } from './full-log.ts'

const count = 3_000
const room = 500

const piece = (asked: Pick<PieceOptions, 'from' | 'to'>) => fetchFromFullLog(asked, 500)

test('messages that have waited for too long are taken out only while there is room for them', async () => {
  const owners = new Owners()
  const index = new UnitIndex(0)
  index.push(owners.codeOf('crm', 'fresh'), count)
  const held: number[] = []
  let [mostHeld, expired] = [0, 0]
  const old = new OldRecords({
    unit: 0,
    topic: 'waiting',
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else is asked of it
    reader: { piece } as unknown as PartitionReader,
    maxAgeMs: () => 1_000,
    hasRoom: () => held.length < room,
    owners,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else is asked of it
    partition: { lend: () => undefined } as unknown as ConstructorParameters<
      typeof OldRecords
    >[0]['partition'],
    onLost: () => undefined,
    log: quietLog,
    mayTake: () => true,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing is asked of it
    held: () => ({}) as ReturnType<ConstructorParameters<typeof OldRecords>[0]['held']>,
    expire(_record, _content) {
      held.push(expired++)
      mostHeld = Math.max(mostHeld, held.length)
    },
    signal: new AbortController().signal,
  })
  const done = old.expire(index)
  // Another look meanwhile changes nothing.
  void old.expire(index)
  await until('all are expired', () => {
    held.length = 0
    return expired === count
  })
  await done
  expect(mostHeld).toBeLessThanOrEqual(room)
  expect(index.untaken).toBe(0)
})
