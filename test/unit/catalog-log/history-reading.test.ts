import { expect, test } from 'vitest'
import { HistoryReading } from '../../../src/catalog-log/history-reading.ts'
import { RecordSeals } from '../../../src/catalog-log/record.ts'
import type { WholeRecord } from '../../../src/message/records.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

const seals = new RecordSeals('test', catalogKeys())
const firstRevision = 1_000
/** More changes than are read at a time, so that changes begin in one window and end in the next. */
const count = 300

/** Returns how many records a change has: 1 to 7. */
function partsOf(revision: number): number {
  return (revision * 5) % 7 || 7
}

/** Makes a history with a marker of a transaction, which is no record, after each change. */
function historyOf(): readonly WholeRecord[] {
  const records: WholeRecord[] = []
  let offset = 0
  for (let revision = firstRevision; revision < firstRevision + count; revision++) {
    const of = partsOf(revision)
    for (let part = 0; part < of; part++) {
      const sides = [{ key: `destination/d${revision % 10}-${part}`, after: { id: 'x' } }]
      const value = { revision, changeId: 'c', atMs: 0, by: 'ann', part, of, sides }
      const { key, value: text, headers = {} } = seals.write(`change/${revision}/${part}`, value, revision)
      records.push({
        offset: offset++,
        key: Buffer.from(String(key)),
        value: Buffer.from(String(text)),
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, one]) => [name, Buffer.from(String(one))]),
        ),
        timestampMs: 0,
      })
    }
    offset++
  }
  return records
}

const records = historyOf()
const end = (records.at(-1)?.offset ?? 0) + 2

/** A topic in memory, because a real one takes long to fill with this many transactions. `start`: where retention has cut it. */
function readingFrom(start: number): HistoryReading {
  const reader = {
    ranges: async () => ({ topicId: undefined, ranges: new Map([[0, { start, end }]]) }),
    async piece({ from, to }: { readonly from: number; readonly to: number }) {
      const next = Math.min(to, from + 90)
      return { records: records.filter(({ offset }) => offset >= from && offset < next), next }
    },
  }
  return new HistoryReading(reader, { topic: 'history', seals, onRefused: fail })
}

function fail(): never {
  throw new Error('a record was refused')
}

async function pagesOf(history: HistoryReading, limit: number, key?: string) {
  const found: { revision: number; count: number; isWhole: boolean }[] = []
  let before: number | undefined
  do {
    const page = await history.page({ before, limit, key })
    expect(page.changes.length).toBeLessThanOrEqual(limit)
    found.push(
      ...page.changes.map(({ revision, count: many, isWhole }) => ({ revision, count: many, isWhole })),
    )
    before = page.next
  } while (before !== undefined)
  return found
}

test.each([2, 7, 100, 1_000])('pages of %i have each change once, with all its parts', async (limit) => {
  const expected = Array.from({ length: count }, (_, index) => {
    const revision = firstRevision + count - 1 - index
    return { revision, count: partsOf(revision), isWhole: true }
  })
  expect(await pagesOf(readingFrom(0), limit)).toEqual(expected)
  const ofThird = expected.filter(({ revision }) => revision % 10 === 3 && partsOf(revision) > 5)
  expect(await pagesOf(readingFrom(0), limit, 'destination/d3-5')).toEqual(ofThird)
})

test('each change is found whole, wherever it is', async () => {
  const history = readingFrom(0)
  for (let revision = firstRevision; revision < firstRevision + count; revision += 13) {
    const found = await history.find(revision)
    expect(found).toMatchObject({ ok: true, change: { revision } })
    expect(found.ok && found.change.objects.length).toBe(partsOf(revision))
  }
  expect(await history.find(firstRevision + count)).toMatchObject({ ok: false, kind: 'unknown' })
  expect(await history.find(firstRevision - 1)).toMatchObject({ ok: false, kind: 'cut', firstRevision })
})

test('a change whose first records were deleted is listed as cut, and is not found whole', async () => {
  const cut = records.find(({ key }) => String(key).endsWith('/3'))
  const revision = Number(String(cut?.key).split('/')[1])
  const history = readingFrom(cut?.offset ?? 0)
  const all = await pagesOf(history, 50)
  expect(all.at(-1)).toEqual({ revision, count: partsOf(revision) - 3, isWhole: false })
  expect(await history.find(revision)).toMatchObject({ ok: false, kind: 'cut', firstRevision: revision })
  expect(await history.find(revision + 1)).toMatchObject({ ok: true })
})
