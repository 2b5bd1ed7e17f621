import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { beforeAll, afterAll, expect, onTestFinished, test } from 'vitest'
import { openIndexQuery } from '../../../src/delivery-log/sqlite/index-threads.ts'
import { IndexWriter } from '../../../src/delivery-log/sqlite/index-writer.ts'
import { blocksOf, dayMs, nowMs, state } from '../../support/log-contract.ts'

/**
 * The numbers of minutes and of reasons in each minute. With this many, the counts take more memory than
 * these tests allow the thread.
 */
const minutes = 3_000
const reasons = 20
const mostHeapMb = 12
const minuteMs = 60_000
const path = mkdtempSync(join(tmpdir(), 'sluice-index-'))
const all = { fromMs: nowMs - 6 * dayMs, toMs: nowMs + 1 }

beforeAll(() => {
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const writer = new IndexWriter({ folder: path, keptMs: 7 * dayMs, now: () => nowMs })
  const states = Array.from({ length: minutes * reasons }, (_, nth) => {
    const atMs = nowMs - Math.floor(nth / reasons) * minuteMs
    return { ...sample, atMs, firstSeenMs: atMs, answer: undefined, reason: `reason ${nth % reasons}` }
  })
  for (const block of blocksOf(states, 1_000)) writer.add(block)
  writer.commit()
  writer.close()
})

afterAll(() => rmSync(path, { recursive: true, force: true }))

function open(heapMb?: number) {
  const query = openIndexQuery({
    folder: path,
    behindMs: () => -1,
    // A machine may be so busy that a question over everything takes longer than the default.
    mostMs: 120_000,
    ...(heapMb !== undefined && { mostHeapMb: heapMb }),
  })
  onTestFinished(() => query.close())
  return query
}

test('a question that needs too much memory is rejected with what to do, and so is all that is under way with it', async () => {
  const query = open(mostHeapMb)
  const asked = [query.counts(all), query.counts(all)]
  for (const answer of await Promise.allSettled(asked)) {
    expect(answer).toMatchObject({ status: 'rejected' })
    expect(String(answer.status === 'rejected' && answer.reason)).toMatch(/ask for less time/)
  }
})

test('the next question after a thread that died is answered by another', async () => {
  const query = open(mostHeapMb)
  await expect(query.counts(all)).rejects.toThrow(/needs more than 12 MiB/)
  expect(await query.status()).toMatchObject({ rows: minutes * reasons })
  await expect(query.counts(all)).rejects.toThrow(/needs more than 12 MiB/)
  expect((await query.search(all, { limit: 3 })).records).toHaveLength(3)
})

test('the memory that a thread has by default is enough for it', async () => {
  expect(await open().counts(all)).toHaveLength(minutes * reasons)
})

test('a short question is answered while a long one is under way', async () => {
  const query = open()
  const answered: string[] = []
  const long = query.counts(all).then(() => answered.push('long'))
  await query.search({ ...all, fromMs: nowMs - minuteMs }, { limit: 3 })
  answered.push('short')
  await long
  expect(answered).toEqual(['short', 'long'])
})

test('a question that takes too long is rejected with what to ask for instead', async () => {
  const query = openIndexQuery({ folder: path, behindMs: () => -1, mostMs: 20 })
  onTestFinished(() => query.close())
  const asked = query.counts(all)
  await expect(asked).rejects.toMatchObject({ name: 'QueryTooLongError' })
  await expect(asked).rejects.toThrow('takes longer than 0.02 s: ask for less time, or for one destination')
})

test('a question that nobody waits for any more is rejected, and others are answered', async () => {
  const query = open()
  const gone = new AbortController()
  const asked = Array.from({ length: 8 }, () => query.counts(all, { signal: gone.signal }))
  const other = query.search(all, { limit: 3 })
  gone.abort()
  for (const answer of await Promise.allSettled(asked))
    expect(answer).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } })
  expect((await other).records).toHaveLength(3)
  await expect(query.counts(all, { signal: gone.signal })).rejects.toMatchObject({ name: 'AbortError' })
})

test('what is asked when the index is closed is rejected', async () => {
  const query = open()
  const asked = query.status()
  const [, answer] = await Promise.allSettled([query.close(), asked])
  expect(answer).toMatchObject({ status: 'rejected' })
  await expect(query.status()).rejects.toThrow(/is closed/)
})
