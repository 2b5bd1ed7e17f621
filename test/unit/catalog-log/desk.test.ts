import { expect, test } from 'vitest'
import type { Quota } from '../../../src/catalog/labels.ts'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import { CatalogDesk } from '../../../src/catalog-log/desk.ts'
import type { Edit } from '../../../src/catalog-log/judge.ts'
import { RecordSeals } from '../../../src/catalog-log/record.ts'
import { NotWrittenError, UnknownOutcomeError } from '../../../src/kafka/pen/pen.ts'
import type { WholeRecord, WrittenRecord } from '../../../src/message/records.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

/** A desk whose pen fails as it is told. The log is in memory, because Kafka can't be made to fail at each step. */
function deskOf(
  failures: (Error | 'written, but not answered' | undefined)[],
  quotas: readonly Quota[] = [],
): CatalogDesk {
  const log: WholeRecord[] = []
  const append = (records: readonly WrittenRecord[]): number[] =>
    records.map(({ key, value, headers = {} }) => {
      const texts = Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))] as const)
      log.push({
        offset: log.length,
        key: Buffer.from(String(key)),
        value: value === null ? null : Buffer.from(String(value)),
        headers: Object.fromEntries(texts),
        timestampMs: 0,
      })
      return log.length - 1
    })
  const keys = catalogKeys()
  return new CatalogDesk({
    pen: {
      isHeld: true,
      take: async () => undefined,
      close: async () => undefined,
      async write(records) {
        const failure = failures.shift()
        if (failure instanceof Error) throw failure
        const offsets = append(records)
        if (failure !== undefined) throw new UnknownOutcomeError('the commit had no answer')
        return offsets
      },
    },
    async *read(from) {
      yield { records: log.slice(from), next: log.length }
    },
    seals: new RecordSeals('test', keys),
    definitions: new Definitions('test', keys),
    allowAddresses: [],
    quotas,
    historyTopic: 'history',
    audited: () => ({ topic: 'audit', partition: 0, records: [] }),
    onRefused: () => undefined,
  })
}

function source(id: string, name: string): Edit {
  return { name: { kind: 'source', id }, op: 'put', given: { id, name } }
}

test('a change whose commit had no answer is found again, and not made twice', async () => {
  const desk = deskOf(['written, but not answered'])
  const answer = await desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })
  expect(answer).toMatchObject({ ok: true, changed: [{ what: 'created', version: 0 }] })
  const log = await desk.look()
  expect(answer).toMatchObject({ revision: log.head?.revision })
  expect(log.next).toBe(2)
})

test('a change that was not written is made again, and a change that failed is not made later', async () => {
  const desk = deskOf([
    new NotWrittenError('fenced', { isFenced: true }),
    undefined,
    new NotWrittenError('no leader'),
  ])
  expect(await desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })).toMatchObject({ ok: true })
  // The second one has to be judged after the first one, so it is not in the transaction that fails.
  const [first, second] = await Promise.allSettled([
    desk.change({ edits: [source('shop', 'First')], by: 'ann' }),
    desk.change({ edits: [source('shop', 'Second')], by: 'bob' }),
  ])
  expect(first).toMatchObject({ status: 'rejected', reason: { message: 'no leader' } })
  expect(second).toMatchObject({ status: 'fulfilled', value: { ok: true } })
  expect((await desk.look()).objects.get('source/shop')?.definition['name']).toBe('Second')
})

test('if it is not known whether a change was made, the error says so', async () => {
  const desk = deskOf(Array.from({ length: 8 }, () => new UnknownOutcomeError('no answer')))
  const answer = desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })
  await expect(answer).rejects.toThrow('may have been made')
}, 60_000)

test('changes that come together do not exceed a quota together', async () => {
  const desk = deskOf([], [{ label: 'tenant', most: 3 }])
  await desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })
  const make = (number: number) => {
    const id = `acme.${number}`
    const hooks = [{ url: 'https://example.com/' }]
    const given = { id, labels: { tenant: 'acme' }, sources: ['shop'], hooks }
    return desk.change({ edits: [{ name: { kind: 'destination', id }, op: 'put', given }], by: 'ann' })
  }
  const answers = await Promise.all(Array.from({ length: 8 }, (_, number) => make(number)))
  expect(answers.filter(({ ok }) => ok)).toHaveLength(3)
  expect((await desk.look()).of('destination')).toHaveLength(3)
})
