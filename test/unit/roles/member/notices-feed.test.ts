import { expect, onTestFinished, test } from 'vitest'
import { OtherLogError } from '../../../../src/kafka/wire/errors.ts'
import type { KeyedRecord } from '../../../../src/message/records.ts'
import { NoticesFeed } from '../../../../src/roles/member/notices-feed.ts'
import { until } from '../../../support/until.ts'

function record(offset: number): KeyedRecord {
  return { offset, key: Buffer.from('k'), value: null, timestampMs: 0 }
}

test('records count as new once the topic was read to its end, and not those of another log', async () => {
  const readings: (readonly KeyedRecord[] | Error)[] = [
    [record(0)],
    [record(1)],
    new OtherLogError('made anew'),
    [record(0)],
  ]
  async function* read(): AsyncGenerator<readonly KeyedRecord[], void> {
    const next = readings.shift()
    if (next instanceof Error) throw next
    if (next !== undefined) yield next
  }
  const said: string[] = []
  const feed = new NoticesFeed({
    topic: 'notices',
    log: { debug: (_fields: unknown, message?: string) => void said.push(message ?? '') },
    reader: {
      follow: () => read,
      stop: async () => undefined,
    },
  })
  onTestFinished(() => feed.stop())
  const seen: (readonly [offset: number, isNew: boolean])[] = []
  feed.onRecord(({ offset }) => seen.push([offset, feed.hasRead]))
  await feed.start()
  await until('all readings are over', () => readings.length === 0 && seen.length === 3)
  expect(seen).toEqual([
    [0, false],
    [1, true],
    [0, false],
  ])
  expect(said).toEqual(['pauses and orders can not be read, trying again'])
})
