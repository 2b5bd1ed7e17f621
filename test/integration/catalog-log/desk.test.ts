import { expect, test } from 'vitest'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import type { ChangeAnswer } from '../../../src/catalog-log/desk.ts'
import type { Edit } from '../../../src/catalog-log/judge.ts'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import type { RefusedRecord } from '../../../src/catalog-log/log.ts'
import { Pen } from '../../../src/kafka/pen/pen.ts'
import { catalogKeys, openDesk } from '../../support/catalog-log.ts'
import { createTopic, produce, randomPrefix, readAll } from '../../support/kafka.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

async function newTopic(): Promise<string> {
  const topic = `${randomPrefix()}catalog`
  await createTopic(topic, { settings: { 'cleanup.policy': 'compact' } })
  await createTopic(`${topic}-audit`)
  await createTopic(`${topic}-history`)
  return topic
}

function source(id: string, more: object = {}): Edit {
  return { name: { kind: 'source', id }, op: 'put', given: { id, ...more } }
}

function destination(id: string, more: object = {}, base?: number | 'none'): Edit {
  const given = { id, sources: ['shop'], hooks: [{ url: `https://example.com/${id}` }], ...more }
  return { name: { kind: 'destination', id }, op: 'put', given, ...(base !== undefined && { base }) }
}

function versionOf(answer: ChangeAnswer): number | undefined {
  return answer.ok ? answer.changed[0]?.version : undefined
}

test('a change is judged by all that was written before, by whichever process', async () => {
  const topic = await newTopic()
  const keys = catalogKeys()
  const [one, other] = [openDesk(topic, keys), openDesk(topic, keys)]
  const orphan = await one.change({ edits: [destination('crm')], by: 'ann' })
  expect(orphan).toMatchObject({
    ok: false,
    kind: 'faulty',
    faults: [{ file: 'destination/crm', path: 'sources[0]' }],
  })
  const both = await one.change({
    edits: [source('shop', { writeKeys: ['w1'] }), destination('crm')],
    by: 'ann',
  })
  expect(both).toMatchObject({ ok: true, changed: [{ what: 'created' }, { what: 'created' }] })
  const first = both.ok ? both.revision : 0
  const crm = both.ok ? both.changed[1]?.version : undefined
  if (crm === undefined) throw new Error('no version')

  const paused = await other.change({ edits: [destination('crm', { state: 'paused' }, crm)], by: 'bob' })
  expect(paused).toMatchObject({ ok: true, revision: first + 1, changed: [{ what: 'changed' }] })
  const late = await one.change({ edits: [destination('crm', { state: 'off' }, crm)], by: 'ann' })
  expect(late).toMatchObject({ ok: false, kind: 'outdated', present: { version: versionOf(paused) } })
  const again = await one.change({ edits: [destination('crm', {}, 'none')], by: 'ann' })
  expect(again).toMatchObject({ ok: false, kind: 'outdated' })

  const used = await other.change({
    edits: [{ name: { kind: 'source', id: 'shop' }, op: 'remove' }],
    by: 'bob',
  })
  expect(used).toMatchObject({ ok: false, kind: 'faulty', faults: [{ file: 'destination/crm' }] })
  const taken = await other.change({ edits: [source('other', { writeKeys: ['w1'] })], by: 'bob' })
  expect(taken).toMatchObject({ ok: false, kind: 'faulty' })
  const same = await other.change({ edits: [destination('crm', { state: 'paused' })], by: 'bob' })
  expect(same).toMatchObject({ ok: true, revision: first + 1, changed: [{ what: 'unchanged' }] })
  const removed = await other.change({
    edits: [{ name: { kind: 'destination', id: 'crm' }, op: 'remove' }],
    by: 'bob',
  })
  expect(removed).toMatchObject({
    ok: true,
    revision: first + 2,
    changed: [{ what: 'removed', version: undefined }],
  })
  expect([...(await one.look()).objects.keys()]).toEqual(['source/shop'])
})

test('no accepted change is lost, and no refused one is made, however many processes write', async () => {
  const topic = await newTopic()
  const keys = catalogKeys()
  const desks = [openDesk(topic, keys), openDesk(topic, keys), openDesk(topic, keys)]
  await desks[0]?.change({
    edits: [source('shop'), destination('crm', { rateLimit: { perSecond: 1 } })],
    by: 'ann',
  })
  // Each process counts up by comparing: it writes only if nobody else has since it looked.
  const each = 5
  const refused = new Set<ChangeAnswer>()
  const countUp = async (desk: (typeof desks)[number]): Promise<void> => {
    for (let done = 0; done < each;) {
      const { objects } = await desk.look()
      const crm = objects.get('destination/crm')
      const limit = Object(crm?.definition['rateLimit'])
      const next = { rateLimit: { perSecond: Number(limit.perSecond) + 1 } }
      const answers = await Promise.all([
        desk.change({ edits: [destination('crm', next, crm?.version)], by: 'ann' }),
        desk.change({ edits: [destination(`other-${done % 3}`)], by: 'ann' }),
      ])
      if (answers[0].ok) done++
      else refused.add(answers[0])
    }
  }
  await Promise.all(desks.map(countUp))
  for (const desk of [...desks, openDesk(topic, keys)]) {
    const log = await desk.look()
    expect(log.objects.get('destination/crm')?.definition['rateLimit']).toEqual({ perSecond: 1 + 3 * each })
    expect(log.of('destination')).toHaveLength(4)
    expect(log.damage).toBeUndefined()
  }
  expect([...refused].every((answer) => !answer.ok && ['outdated', 'busy'].includes(answer.kind))).toBe(true)
})

test('secrets are not in the topic, are kept by what is read, and go to no other host', async () => {
  const topic = await newTopic()
  const keys = catalogKeys()
  const desk = openDesk(topic, keys)
  const hooks = [
    { url: 'https://example.com/T02/s3cr3tPATH', headers: { Authorization: 'Bearer s3cr3tHEADER' } },
  ]
  const crm = { sharedSecret: '${CATALOG_CRM}', hooks }
  const variables = { CATALOG_CRM: 's3cr3tSHARED ${' }
  await desk.change({ edits: [source('shop', { serverKeys: ['s3cr3tSERVERKEY1'] })], by: 'ann' })
  const made = await desk.change({ edits: [destination('crm', crm)], by: 'ann', variables })
  expect(made).toMatchObject({ ok: true })
  const raw = (await readAll(topic)).map(({ value }) => String(value)).join('\n')
  expect(raw).toContain('https://example.com ')
  expect(raw).not.toContain('s3cr3t')

  const name = { kind: 'destination', id: 'crm' } as const
  const definitions = new Definitions(topic, keys)
  const stored = (await desk.look()).objects.get('destination/crm')?.definition ?? {}
  const shown = definitions.shown(name, stored, { showsUrls: false })
  expect(JSON.stringify(shown)).not.toContain('s3cr3t')
  const keeps = await desk.change({ edits: [{ name, op: 'put', given: shown }], by: 'bob' })
  expect(keeps).toMatchObject({ ok: true, changed: [{ what: 'unchanged' }] })
  const plain = definitions.plain(name, (await desk.look()).objects.get('destination/crm')?.definition ?? {})
  expect(plain).toMatchObject({ sharedSecret: 's3cr3tSHARED $${', hooks })

  const headers = Object(shown['hooks'])[0].headers
  const moved = [{ url: 'https://evil.example/T02', headers }]
  const carried = await desk.change({
    edits: [{ name, op: 'put', given: { ...shown, hooks: moved } }],
    by: 'eve',
  })
  expect(carried).toMatchObject({
    ok: false,
    kind: 'faulty',
    faults: [{ path: 'hooks[0].headers.Authorization', advice: 'write the value itself' }],
  })
})

test('records of others, of other keys and of the past are refused, told, and seen when they destroyed something', async () => {
  const topic = await newTopic()
  const refused: RefusedRecord[] = []
  const keys = catalogKeys()
  const desk = openDesk(topic, keys)
  await desk.change({ edits: [source('shop'), destination('crm')], by: 'ann' })
  const early = (await readAll(topic)).find(({ key }) => key === 'destination/crm')
  await desk.change({ edits: [destination('crm', { state: 'off' })], by: 'ann' })
  await produce(topic, [
    {
      key: 'destination/crm',
      value: '{"id":"crm","sources":["shop"],"hooks":[{"url":"https://evil.example"}]}',
    },
    { key: 'destination/crm', value: early?.value ?? null, headers: early?.headers ?? {} },
  ])
  // A process with another key knows nothing, and so changes nothing.
  const foreign = openDesk(topic, catalogKeys(), () => undefined)
  expect((await foreign.look()).damage).toContain('none of its records was written with a key')
  expect(await foreign.change({ edits: [source('shop')], by: 'eve' })).toMatchObject({
    ok: false,
    kind: 'damaged',
  })
  const reader = openDesk(topic, keys, (one) => refused.push(one))
  const log = await reader.look()
  expect(log.objects.get('destination/crm')?.definition['state']).toBe('off')
  expect(refused.map(({ problem }) => problem)).toEqual([
    'was not written by Sluice',
    'is older than the records before it: it was written again',
  ])
  expect(log.overwritten).toEqual(['destination/crm'])
  const edits = [source('shop'), destination('crm', { state: 'off' })]
  expect(await desk.change({ edits, by: 'ann', isRepair: true })).toMatchObject({ ok: true })
  expect((await reader.look()).overwritten).toEqual([])
  expect((await openDesk(topic, keys).look()).overwritten).toEqual([])
})

test('a key is replaced in steps: nobody who lacks one writes, and the old one is not needed in the end', async () => {
  const topic = await newTopic()
  const [first, second] = [newKeyLine('k1'), newKeyLine('k2')]
  const before = openDesk(topic, catalogKeys(first))
  const crm = destination('crm', { sharedSecret: 'the-secret' })
  await before.change({ edits: [source('shop', { serverKeys: ['a-server-key-of-shop'] }), crm], by: 'ann' })
  const both = openDesk(topic, catalogKeys(second, first))
  await both.change({ edits: [destination('erp')], by: 'ann' })
  expect(await before.change({ edits: [destination('late')], by: 'bob' })).toMatchObject({
    ok: false,
    kind: 'damaged',
  })
  const definitions = new Definitions(topic, catalogKeys(second, first))
  const edits = [...(await both.look()).objects.values()].map(({ kind, id, definition }): Edit => {
    const name = { kind, id }
    return { name, op: 'put', given: definitions.shown(name, definition, { showsUrls: true }) }
  })
  expect(await both.change({ edits, by: 'ann', isRepair: true })).toMatchObject({ ok: true })
  const after = openDesk(topic, catalogKeys(second))
  const log = await after.look()
  expect(log.damage).toBeUndefined()
  const only = new Definitions(topic, catalogKeys(second))
  const stored = log.objects.get('destination/crm')?.definition ?? {}
  expect(only.plain({ kind: 'destination', id: 'crm' }, stored)).toMatchObject({ sharedSecret: 'the-secret' })
  expect(new Set(log.of('destination').map(({ id }) => id))).toEqual(new Set(['crm', 'erp']))
})

test('a foreign program that takes the pen all the time makes nobody loop, and no answer is wrong', async () => {
  const topic = await newTopic()
  let takes = 0
  const desk = openDesk(topic, catalogKeys(), undefined, {
    penOf: (pen) => ({
      get isHeld() {
        return pen.isHeld
      },
      take(transactionMs) {
        takes++
        return pen.take(transactionMs)
      },
      write: (records, beside) => pen.write(records, beside),
      close: () => pen.close(),
    }),
  })
  expect(await desk.change({ edits: [source('shop')], by: 'ann' })).toMatchObject({ ok: true })

  const foreign = new Pen({ kafka: workerKafka(), transactionalId: topic, topic })
  const fences: number[] = []
  const fencing = setInterval(() => {
    foreign.take().then(
      () => fences.push(0),
      () => undefined,
    )
  }, 50)
  const made: string[] = []
  for (let change = 0; fences.length < 20; change++) {
    takes = 0
    const id = `d${change}`
    const answer = await desk.change({ edits: [destination(id)], by: 'ann' })
    // Each try takes the pen once, and there are eight at most.
    expect(takes).toBeLessThanOrEqual(8)
    if (answer.ok) made.push(id)
    else expect(answer).toEqual({ ok: false, kind: 'busy' })
  }
  clearInterval(fencing)
  await foreign.close()
  const { objects } = await desk.look()
  expect([...objects.keys()].toSorted()).toEqual(
    ['source/shop', ...made.map((id) => `destination/${id}`)].toSorted(),
  )
  expect(await desk.change({ edits: [destination('last')], by: 'ann' })).toMatchObject({ ok: true })
})
