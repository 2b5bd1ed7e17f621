import { expect, test } from 'vitest'
import type { Quota } from '../../../src/catalog/labels.ts'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import { CatalogDesk, mostWaitingObjects, objectRate } from '../../../src/catalog-log/desk.ts'
import type { Edit } from '../../../src/catalog-log/judge.ts'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import { keyOf } from '../../../src/catalog-log/names.ts'
import { RecordSeals } from '../../../src/catalog-log/record.ts'
import { readSealedExport, sealedExport } from '../../../src/catalog-log/sealed-file.ts'
import { type Newer, planRestore, type RestorePlan } from '../../../src/catalog-log/restore.ts'
import { NotWrittenError, UnknownOutcomeError } from '../../../src/kafka/pen/pen.ts'
import type { WholeRecord, WrittenRecord } from '../../../src/message/records.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

/** A desk whose pen fails as it is told. The log is in memory, because Kafka can't be made to fail at each step. */
function deskOf(
  failures: (Error | 'written, but not answered' | undefined)[],
  quotas: readonly Quota[] = [],
  keys = catalogKeys(),
  onTake: (transactionMs: number | undefined) => void = () => undefined,
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
  return new CatalogDesk({
    pen: {
      isHeld: true,
      take: async (transactionMs) => onTake(transactionMs),
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

/** Returns the edit that makes a destination of the source `shop`. */
function destination(id: string): Edit {
  const given = { id, sources: ['shop'], sharedSecret: 'secret', hooks: [{ url: 'https://example.com/' }] }
  return { name: { kind: 'destination', id }, op: 'put', given }
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
})

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

test('a change that waits is not made once its author may not make it any more', async () => {
  const desk = deskOf([new NotWrittenError('fenced', { isFenced: true })])
  const allowed = [true, false]
  const change = { edits: [source('shop', 'Shop')], by: 'ann', isAllowed: () => allowed.shift() ?? false }
  expect(await desk.change(change)).toEqual({ ok: false, kind: 'ended' })
  expect((await desk.look()).head).toBeUndefined()
})

test('a log keeps its lineage, and the word that it is accepted', async () => {
  const desk = deskOf([])
  await desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })
  const { lineage, revision = 0, isAccepted } = (await desk.look()).head ?? {}
  expect(lineage).toMatch(/^[0-9a-f-]{36}$/)
  expect(isAccepted).toBeUndefined()
  expect(await desk.change({ edits: [], by: 'bob', accepts: true })).toMatchObject({ ok: true, changed: [] })
  await desk.change({ edits: [source('shop', 'Other')], by: 'ann' })
  const { head } = await desk.look()
  expect(head).toMatchObject({ lineage, isAccepted: true })
  expect(head?.revision).toBeGreaterThan(revision + 1)
})

function restore(desk: CatalogDesk, { edits, isRepair }: RestorePlan) {
  return desk.change({ edits, isRepair, by: 'ann', accepts: true })
}

test('a log that is accepted ends later than what a process has seen, however fast that came', async () => {
  const desk = deskOf([])
  await desk.change({ edits: [source('shop', 'One')], by: 'ann' })
  const after = (Date.now() + 3_600_000) / 1_000
  const accepted = await desk.change({ edits: [], by: 'ann', accepts: true, after: Math.floor(after) })
  expect(accepted).toMatchObject({ ok: true, revision: Math.floor(after) + 1 })
  const next = await desk.change({ edits: [source('shop', 'Two')], by: 'ann', after: 1 })
  expect(next).toMatchObject({ ok: true, revision: Math.floor(after) + 2 })
})

test('a sealed export brings back what was lost, with its secrets, and refuses to overwrite what is newer', async () => {
  const keys = catalogKeys()
  const definitions = new Definitions('test', keys)
  const seals = new RecordSeals('test', keys)
  const former = deskOf([], [], keys)
  const hooks = [{ url: 'https://example.com/planted-path' }]
  const put = (id: string, sharedSecret: string): Edit => ({
    name: { kind: 'destination', id },
    op: 'put',
    given: { id, sources: ['shop'], sharedSecret, hooks },
  })
  await former.change({
    edits: [source('shop', 'Shop'), put('crm', 'planted-1'), put('erp', 'planted-2')],
    by: 'ann',
  })
  const text = sealedExport(await former.look(), seals, 'test') ?? ''
  expect(text).not.toContain('planted')
  const read = readSealedExport(text, seals, 'test')
  if (!read.ok) throw new Error(read.problem)
  const exported = read.log
  const plan = async (desk: CatalogDesk, what: Newer) =>
    planRestore(definitions, { present: await desk.look(), exported }, what)

  const empty = deskOf([], [], keys)
  expect(await restore(empty, await plan(empty, 'refuse'))).toMatchObject({ ok: true })
  const crm = (await empty.look()).objects.get('destination/crm')
  expect(definitions.plain({ kind: 'destination', id: 'crm' }, crm?.definition ?? {})).toMatchObject({
    sharedSecret: 'planted-1',
  })
  expect((await plan(empty, 'refuse')).edits).toEqual([])

  // After the export, one was changed, one removed, and one is new.
  await former.change({
    edits: [put('crm', 'newer'), { name: { kind: 'destination', id: 'erp' }, op: 'remove' }],
    by: 'bob',
  })
  await former.change({ edits: [put('new', 'newer')], by: 'bob' })
  const named = ['destination/crm', 'destination/erp', 'destination/new']
  expect((await plan(former, 'refuse')).newer.map(keyOf)).toEqual(named)
  expect((await plan(former, 'keep')).edits).toEqual([])
  await restore(former, await plan(former, 'replace'))
  expect([...(await former.look()).objects.keys()]).toEqual([
    'source/shop',
    'destination/crm',
    'destination/erp',
  ])
})

test('an export that was edited or cut off, or is of another installation, is refused with what to do', async () => {
  const keys = catalogKeys()
  const seals = new RecordSeals('test', keys)
  const desk = deskOf([], [], keys)
  await desk.change({ edits: [source('shop', 'Shop'), source('app', 'App')], by: 'ann' })
  const text = sealedExport(await desk.look(), seals, 'test') ?? ''
  const problemOf = (given: string, by = seals, installation = 'test'): string => {
    const read = readSealedExport(given, by, installation)
    return read.ok ? '' : read.problem
  }
  const lines = text.split('\n')
  expect(problemOf(text)).toBe('')
  expect(problemOf(text.replace('Shop', 'Shup'))).toContain('without the key')
  expect(problemOf([lines[0], ...lines.slice(2)].join('\n'))).toContain(
    'it has 1 sources, and its last change says 2',
  )
  expect(problemOf(text.slice(0, -40))).toContain('line 4 is no record')
  expect(problemOf(text, seals, 'other.catalog')).toContain('this installation has other.catalog')
  expect(problemOf(text, new RecordSeals('test', catalogKeys(newKeyLine('k2'))))).toContain(
    'the key k1, which',
  )
  expect(problemOf('sources: []')).toContain('no sealed export')
})

test('a change that Kafka has ended because a quota slows it down is made again, with more time', async () => {
  const taken: (number | undefined)[] = []
  const late = new NotWrittenError('it took longer than 10 s', { isFenced: true, isLate: true })
  const desk = deskOf([late, late], [], catalogKeys(), (transactionMs) => taken.push(transactionMs))
  expect(await desk.change({ edits: [source('s1', 'x')], by: 'ann' })).toMatchObject({ ok: true })
  expect(await desk.change({ edits: [source('s2', 'x')], by: 'ann' })).toMatchObject({ ok: true })
  expect(taken).toEqual([40_000, 160_000, 10_000])
})

test('a change of very many objects takes the pen for longer, and the next one as usual again', async () => {
  const taken: (number | undefined)[] = []
  const desk = deskOf([], [], catalogKeys(), (transactionMs) => taken.push(transactionMs))
  const edits = Array.from({ length: 20_000 }, (_, index) => source(`s${index}`, 'x'))
  expect(await desk.change({ edits, by: 'ann' })).toMatchObject({ ok: true })
  expect(await desk.change({ edits: [source('s1', 'y')], by: 'ann' })).toMatchObject({ ok: true })
  expect(await desk.change({ edits: [source('s2', 'y')], by: 'ann' })).toMatchObject({ ok: true })
  expect(taken).toEqual([20_000, 10_000])
})

test('while very many objects have no answer, further changes are refused, and later ones are taken', async () => {
  const desk = deskOf([])
  const removals = Array.from({ length: mostWaitingObjects }, (_, index): Edit => {
    return { name: { kind: 'destination', id: `d${index}` }, op: 'remove' }
  })
  const large = desk.change({ edits: removals, by: 'ann' })
  const change = { edits: [source('shop', 'Shop')], by: 'bob' }
  expect(await desk.change(change)).toEqual({ ok: false, kind: 'full' })
  expect(await large).toMatchObject({ ok: false, kind: 'missing' })
  expect(await desk.change(change)).toMatchObject({ ok: true })
})

test('an export of a later version is refused with what is in it that this one does not know', async () => {
  const keys = catalogKeys()
  const seals = new RecordSeals('test', keys)
  const desk = deskOf([], [], keys)
  await desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })
  const log = await desk.look()
  const lines = (sealedExport(log, seals, 'test') ?? '').trimEnd().split('\n')
  const { key, value, headers = {} } = seals.write('rule/vip', { id: 'vip' }, log.head?.revision ?? 0)
  const { revision, mac } = headers
  const ofLater = JSON.stringify({ key, value, revision, mac, offset: 0.5 })
  expect(
    readSealedExport([...lines.slice(0, 2), ofLater, ...lines.slice(2)].join('\n'), seals, 'test'),
  ).toEqual({
    ok: false,
    problem: 'the record rule/vip has a key that this version does not know',
  })
  const [about = '', ...records] = lines
  const read = readSealedExport(
    [about.replace('"format":1', '"format":2'), ...records].join('\n'),
    seals,
    'test',
  )
  expect(read).toMatchObject({ ok: false, problem: 'a later version of Sluice wrote it: update this one' })
})

test('a burst of changes is made at its rate, and one of another author does not wait for its end', async () => {
  const { perSecond, burst: free } = objectRate
  const desk = deskOf([])
  await desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })
  const ended: string[] = []
  const change = async (id: string, by: string): Promise<void> => {
    expect(await desk.change({ edits: [destination(id)], by })).toMatchObject({ ok: true })
    ended.push(by)
  }
  const startMs = performance.now()
  const burst = Array.from({ length: free + perSecond }, (_, index) => change(`d${index}`, 'script'))
  await change('paused', 'sre')
  expect(ended.length).toBeLessThanOrEqual(50)
  await Promise.all(burst)
  expect(performance.now() - startMs).toBeGreaterThan(990)
  expect(ended).toHaveLength(free + perSecond + 1)
})

test('who looks during a burst does not wait for its end', async () => {
  const desk = deskOf([])
  await desk.change({ edits: [source('shop', 'Shop')], by: 'ann' })
  const count = 3 * objectRate.perSecond
  const changes = Array.from({ length: count }, (_, index) =>
    desk.change({ edits: [destination(`d${index}`)], by: 'script' }),
  )
  await changes[0]
  const { all } = await desk.look()
  expect(all.size).toBeLessThan(count)
  await Promise.all(changes)
  expect((await desk.look()).all.size).toBe(count + 1)
})

test('who looks together with a change for which the topic could not be read is told so', async () => {
  const desk = deskOf([], [], catalogKeys(), () => {
    throw new NotWrittenError('no coordinator')
  })
  const first = desk.look()
  const edits = Array.from({ length: 20_000 }, (_, index) => source(`s${index}`, 'x'))
  const changed = desk.change({ edits, by: 'ann' })
  const second = desk.look()
  expect(await Promise.allSettled([first, changed, second])).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { message: 'no coordinator' } },
    { status: 'rejected', reason: { message: 'no coordinator' } },
  ])
  expect((await desk.look()).all.size).toBe(0)
})
