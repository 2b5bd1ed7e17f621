import { expect, test } from 'vitest'
import { SharedBreath } from '../../../src/async/shared-breath.ts'
import type { PartitionReader, PieceOptions } from '../../../src/kafka/read/partition-reader.ts'
import { Owners } from '../../../src/waiting/owners.ts'
import { Pieces } from '../../../src/waiting/pieces.ts'
import { Wanted } from '../../../src/waiting/wanted.ts'
import { quietLog } from '../../support/emitted-lines.ts'
import { fetchFromFullLog } from './full-log.ts'

const perFetch = 100

/** A reader of a log that has a record at each offset. Counts the fetches. */
function openReader() {
  const counted = { fetches: 0 }
  const piece = (asked: Pick<PieceOptions, 'from' | 'to'>) => {
    counted.fetches++
    return fetchFromFullLog(asked, perFetch)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else is asked of it
  return { counted, reader: { piece } as unknown as PartitionReader }
}

test('a young message is read though more and more is wanted of the older ones', async () => {
  const { counted, reader } = openReader()
  const owners = new Owners()
  const young = owners.codeOf('young', 'fresh')
  const old = Array.from({ length: 50 }, (_, index) => owners.codeOf(`old-${index}`, 'fresh'))
  const mostFetches = 500
  let isYoungRead = false
  const wanted = new Wanted({
    unit: 0,
    topic: 'waiting',
    reader,
    owners,
    pieces: new Pieces(0),
    handing: new SharedBreath(5),
    log: quietLog,
    signal: new AbortController().signal,
    mayTake: () => !isYoungRead && counted.fetches < mostFetches,
    end: () => 1_000_000,
    take(offset, code) {
      if (code === young) isYoungRead = true
      // Each old destination wants the next one of many, some fetches further on.
      else wanted.add(offset + 5 * perFetch + 1, code)
    },
    giveBack: () => undefined,
    onFetched: () => undefined,
  })
  for (const [index, code] of old.entries()) wanted.add(index * 3 * perFetch, code)
  wanted.add(900_000, young)
  await wanted.read()
  expect(isYoungRead).toBe(true)
  expect(counted.fetches).toBeLessThan(2 * old.length)
})
