import { expect, test } from 'vitest'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import { lineOf } from '../../../src/catalog-log/difference.ts'
import type { Edit } from '../../../src/catalog-log/judge.ts'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { findChange, shownFields, undoChange } from '../../../src/roles/operations/catalog-history.ts'
import { catalogKeys, openDesk, openHistoryDesk } from '../../support/catalog-log.ts'
import { createTopic, otherProgram, produce, randomPrefix, readAll } from '../../support/kafka.ts'

async function newTopic(): Promise<string> {
  const topic = `${randomPrefix()}catalog`
  await createTopic(topic, { settings: { 'cleanup.policy': 'compact' } })
  await createTopic(`${topic}-audit`)
  await createTopic(`${topic}-history`)
  return topic
}

function source(id: string): Edit {
  return { name: { kind: 'source', id }, op: 'put', given: { id } }
}

function destination(id: string, more: object = {}): Edit {
  const given = { id, sources: ['shop'], hooks: [{ url: `https://example.com/${id}` }], ...more }
  return { name: { kind: 'destination', id }, op: 'put', given }
}

type Desk = ReturnType<typeof openHistoryDesk>

/** Makes a change that has to be accepted, and returns its revision. */
async function made(desk: Pick<Desk, 'change'>, edits: readonly Edit[], by = 'ann'): Promise<number> {
  const answer = await desk.change({ edits, by })
  if (!answer.ok) throw new Error(`the change was refused: ${answer.kind}`)
  return answer.revision
}

async function undone(desk: Desk, revision: number, isDryRun = false) {
  const answer = await undoChange(desk, { revision, by: 'bob', isDryRun })
  return answer.ok ? answer : { ...answer, problem: 'problem' in answer ? answer.problem : answer.kind }
}

async function plainOf(desk: Desk, id: string): Promise<unknown> {
  const stored = (await desk.look()).objects.get(`destination/${id}`)?.definition
  return stored && desk.definitions.plain({ kind: 'destination', id }, stored)
}

async function listed(desk: Desk, limit: number, key?: string) {
  const lines: string[] = []
  let before: number | undefined
  do {
    const page = await desk.history.page({ before, limit, key })
    expect(page.changes.length).toBeLessThanOrEqual(limit)
    for (const { revision, by, made: objects } of page.changes)
      lines.push([revision, by, ...objects.map(lineOf)].join(' '))
    before = page.next
  } while (before !== undefined)
  return lines
}

test('the changes of several writers are in the history, newest first, whatever the size of a page', async () => {
  const topic = await newTopic()
  const keys = catalogKeys()
  const [one, other] = [openHistoryDesk(topic, keys), openHistoryDesk(topic, keys)]
  const first = await made(one, [source('shop'), destination('crm')])
  const ids = Array.from({ length: 12 }, (_, index) => `d${index}`)
  await Promise.all(
    ids.map((id, index) =>
      made(index % 2 === 0 ? one : other, [destination(id)], index % 2 === 0 ? 'ann' : 'bob'),
    ),
  )
  const last = await made(other, [{ name: { kind: 'destination', id: 'crm' }, op: 'remove' }], 'bob')
  const all = await listed(one, 100)
  expect(all).toHaveLength(14)
  expect(all[0]).toBe(`${last} bob - destination/crm`)
  expect(all.at(-1)).toBe(`${first} ann + source/shop + destination/crm`)
  expect(all.map((line) => Number(line.split(' ')[0]))).toEqual(
    Array.from({ length: 14 }, (_, index) => last - index),
  )
  expect(new Set(all.slice(1, -1).map((line) => line.split(' + ')[1]))).toEqual(
    new Set(ids.map((id) => `destination/${id}`)),
  )
  for (const limit of [1, 3, 5]) expect(await listed(other, limit)).toEqual(all)
  expect(await listed(one, 2, 'destination/crm')).toEqual([all[0], all.at(-1)])
  for (const line of all) {
    const revision = Number(line.split(' ')[0])
    expect(await findChange(one, revision)).toMatchObject({ ok: true, change: { revision } })
  }
  expect(await findChange(one, last + 1)).toMatchObject({ ok: false, kind: 'unknown' })
})

test('an undo brings an object back with its secrets, which are nowhere in clear', async () => {
  const topic = await newTopic()
  const desk = openHistoryDesk(topic, catalogKeys())
  const crm = {
    sharedSecret: 's3cr3tSHARED',
    hooks: [{ url: 'https://example.com/s3cr3tPATH', headers: { 'X-Key': 's3cr3tHEADER' } }],
  }
  await made(desk, [source('shop'), destination('crm', crm)])
  const before = await plainOf(desk, 'crm')
  const changed = await made(desk, [
    destination('crm', { ...crm, sharedSecret: 's3cr3tOTHER', state: 'off' }),
  ])
  const removed = await made(desk, [{ name: { kind: 'destination', id: 'crm' }, op: 'remove' }])

  expect(await undone(desk, changed)).toMatchObject({ ok: false, kind: 'blocked' })
  expect(await undone(desk, removed, true)).toMatchObject({ ok: true, changed: [{ what: 'created' }] })
  expect(await plainOf(desk, 'crm')).toBeUndefined()
  expect(await undone(desk, removed)).toMatchObject({ ok: true, changed: [{ what: 'created' }] })
  expect(await plainOf(desk, 'crm')).toMatchObject({ sharedSecret: 's3cr3tOTHER', state: 'off' })
  const back = await undone(desk, changed)
  expect(back).toMatchObject({ ok: true, changed: [{ what: 'changed' }] })
  expect(await plainOf(desk, 'crm')).toEqual(before)
  const again = await undone(desk, back.ok ? back.revision : 0)
  expect(again).toMatchObject({ ok: true })
  expect(await plainOf(desk, 'crm')).toMatchObject({ sharedSecret: 's3cr3tOTHER', state: 'off' })

  const found = await findChange(desk, changed)
  const [difference] = found.ok ? found.change.objects : []
  if (difference === undefined) throw new Error('the change has no object')
  const fields = shownFields(desk.definitions, difference, { showsUrls: false })
  expect(fields.map(({ field }) => field).toSorted()).toEqual(['sharedSecret', 'state'])
  const raw = [...(await readAll(topic)), ...(await readAll(`${topic}-history`))]
  expect(JSON.stringify([fields, raw.map(({ value }) => String(value))])).not.toContain('s3cr3t')
})

test('an undo is refused if the object was changed since, and names the change that has to be undone first', async () => {
  const topic = await newTopic()
  const desk = openHistoryDesk(topic, catalogKeys())
  await made(desk, [source('shop'), destination('crm'), destination('erp')])
  const first = await made(desk, [destination('crm', { state: 'off' }), destination('erp', { state: 'off' })])
  const second = await made(desk, [destination('crm', { state: 'paused' })])
  const third = await made(desk, [destination('crm', { state: 'on' })])

  const blocked = await undone(desk, first)
  expect(blocked).toMatchObject({ ok: false, kind: 'blocked' })
  expect(blocked).toMatchObject({
    problem: expect.stringContaining(`by change ${third}: undo that one first`),
  })
  expect((await desk.look()).objects.get('destination/erp')?.definition['state']).toBe('off')
  expect(await undone(desk, third)).toMatchObject({ ok: true })
  // The latest change is the undo of the third one, which doesn't count any more.
  expect(await undone(desk, first)).toMatchObject({
    problem: expect.stringContaining(`by change ${second}:`),
  })
  expect(await undone(desk, second)).toMatchObject({ ok: true })
  const last = await undone(desk, first)
  expect(last).toMatchObject({ ok: true, changed: [{ what: 'changed' }, { what: 'changed' }] })
  const log = await desk.look()
  expect(log.of('destination').map(({ definition }) => definition['state'])).toEqual([undefined, undefined])
  const twice = await undone(desk, first)
  expect(twice).toMatchObject({ problem: expect.stringContaining('was undone by change') })
  // What a rule of the catalog refuses isn't made by an undo either.
  const shop = await made(desk, [source('blog'), destination('news', { sources: ['blog'] })])
  await made(desk, [destination('crm', { sources: ['blog'] })])
  expect(await undone(desk, shop)).toMatchObject({ ok: false, kind: 'faulty' })
})

test('a change of 5,000 objects is split over records, and undone as a whole', async () => {
  const topic = await newTopic()
  const desk = openHistoryDesk(topic, catalogKeys())
  const ids = Array.from({ length: 5_000 }, (_, index) => `d${index}`)
  const revision = await made(desk, [
    source('shop'),
    ...ids.map((id) => destination(id, { name: 'x'.repeat(100) })),
  ])
  const records = await readAll(`${topic}-history`)
  expect(records.length).toBeGreaterThan(5)
  expect(Math.max(...records.map(({ value }) => value?.length ?? 0))).toBeLessThan(300 * 1_024)
  const { changes } = await desk.history.page({ limit: 10 })
  expect(changes).toMatchObject([{ revision, count: 5_001, isWhole: true }])
  expect(changes[0]?.made.length).toBeLessThan(200)
  const answer = await undone(desk, revision)
  expect(answer).toMatchObject({ ok: true, revision: revision + 1 })
  expect((await desk.look()).objects.size).toBe(0)
  expect(await undone(desk, revision + 1)).toMatchObject({ ok: true })
  expect((await desk.look()).objects.size).toBe(5_001)
})

test('what retention has deleted is told, and records of others are left out', async () => {
  const topic = await newTopic()
  const keys = catalogKeys()
  const desk = openHistoryDesk(topic, keys)
  const first = await made(desk, [source('shop')])
  const second = await made(desk, [destination('crm')])
  const raw = (await readAll(`${topic}-history`)).at(0)
  await produce(`${topic}-history`, [
    { key: 'change/1/0', value: '{"part":0,"of":1,"sides":[],"revision":9999999999}' },
  ])
  // An old record that is written again keeps its revision, and hides nothing.
  await produce(`${topic}-history`, [
    { key: raw?.key ?? null, value: raw?.value ?? null, headers: raw?.headers ?? {} },
  ])
  const third = await made(desk, [destination('crm', { state: 'off' })])
  expect(await findChange(desk, third)).toMatchObject({ ok: true })
  expect(await findChange(desk, second)).toMatchObject({ ok: true })
  expect(desk.refused).toContain('was not written by Sluice')
  const history = `${topic}-history`
  await withAdmin(otherProgram(), async (admin) => {
    await admin.fetchTopicOffsets(history)
    await admin.deleteTopicRecords({ topic: history, partitions: [{ partition: 0, offset: '2' }] })
  })
  const cut = await undone(desk, first)
  expect(cut).toMatchObject({
    ok: false,
    kind: 'unknown',
    problem: expect.stringContaining(`begins with change ${second}`),
  })
  expect(await undone(desk, third)).toMatchObject({ ok: true })
})

test('after the key was replaced, an undo seals with the new one; without the old one it says what it lacks', async () => {
  const topic = await newTopic()
  const [old, present] = [newKeyLine('k1'), newKeyLine('k2')]
  const before = openDesk(topic, catalogKeys(old))
  await before.change({
    edits: [source('shop'), destination('crm', { sharedSecret: 'the-secret' })],
    by: 'ann',
  })
  const revision = await made(before, [destination('crm', { sharedSecret: 'another' })])
  const both = openHistoryDesk(topic, catalogKeys(present, old))
  expect(await undone(both, revision)).toMatchObject({ ok: true })
  const stored = (await both.look()).objects.get('destination/crm')?.definition ?? {}
  const only = new Definitions(topic, catalogKeys(present))
  expect(only.plain({ kind: 'destination', id: 'crm' }, stored)).toMatchObject({ sharedSecret: 'the-secret' })
  const without = openHistoryDesk(topic, catalogKeys(present))
  await without.history.page({ limit: 5 })
  expect(without.refused).toContain('was written with the key k1, which catalog.keysFile lacks')
})
