import type { Kafka } from 'kafkajs'
import { createClusterView } from '../cluster/cluster-view.ts'
import { createFetcher } from '../fetch/fetcher.ts'
import { locate } from '../fetch/positions.ts'
import type { FetchedRecord } from '../wire/record-batch.ts'
import { within } from '../../async/within.ts'

export type RecordPlace = { readonly topic: string; readonly partition: number; readonly offset: number }

/** The result of reading a record. `gone` means that Kafka has no record at this place, or has deleted it. */
export type RecordAt = { readonly record: FetchedRecord } | 'gone' | { readonly trouble: string }

const silent = { info() {}, warn() {}, error() {} }

/** Reads one record. Gives up after `withinMs`. Never rejects. */
export async function readRecordAt(kafka: Kafka, place: RecordPlace, withinMs: number): Promise<RecordAt> {
  const view = createClusterView({ kafka, topics: [place.topic], log: silent })
  const fetcher = createFetcher({ view, longestWaitMs: () => 100, log: silent })
  const { promise: found, resolve } = Promise.withResolvers<RecordAt>()
  async function read(): Promise<void> {
    await view.connect()
    const [location] = await locate(view, [place])
    if (location === undefined || location.kind === 'later') {
      resolve({ trouble: location?.reason ?? 'nothing was answered' })
      return
    }
    if (location.kind !== 'goOn' || place.offset >= location.log.end) {
      resolve('gone')
      return
    }
    fetcher.open({
      ...place,
      on: {
        batch({ records, nextOffset }) {
          const record = records.find(({ offset }) => offset === place.offset)
          if (record !== undefined) resolve({ record })
          else if (nextOffset > place.offset) resolve('gone')
        },
        lost: () => resolve('gone'),
        truncated: () => resolve('gone'),
      },
    })
  }
  try {
    read().catch((error: unknown) =>
      resolve({ trouble: error instanceof Error ? error.message : String(error) }),
    )
    if (await within(withinMs, found)) return await found
    return { trouble: `Kafka did not answer within ${withinMs} ms` }
  } finally {
    await fetcher.stop()
    await view.close()
  }
}
