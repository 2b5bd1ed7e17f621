import { expect, test } from 'vitest'
import { givenAnotherChance } from '../../../src/recall/edited-destinations.ts'
import { Recoveries } from '../../../src/recall/recoveries.ts'

const hook = { id: 'main', url: 'https://a.example/', origin: 'https://a.example', path: '/', headers: [] }
const plain = {
  state: 'on',
  hooks: [hook],
  sharedSecret: 's1',
  nextSharedSecret: undefined,
  standardWebhooks: false,
} as const

function catalogWith(fields: object) {
  return new Map([['crm', { ...plain, ...fields }]])
}

function changed(before: object, now: object): readonly string[] {
  return givenAnotherChance(catalogWith(before), catalogWith(now))
}

function crm(openForMs: number) {
  return { destinationId: 'crm', openForMs }
}

test('an edit of the URL, the headers or the secret gives a destination another chance', () => {
  for (const edit of [
    { hooks: [{ ...hook, url: 'https://b.example/' }] },
    { hooks: [{ ...hook, headers: [['authorization', 'x']] }] },
    { sharedSecret: 's2' },
    { nextSharedSecret: 's2' },
  ])
    expect(changed({}, edit)).toEqual(['crm'])
  expect(changed({}, {})).toEqual([])
  expect(changed({}, { maxInFlight: 3, name: 'CRM' })).toEqual([])
})

test('a destination that becomes on gets another chance, and one that is not on gets none', () => {
  for (const state of ['paused', 'auto_paused', 'off'])
    expect([changed({ state }, {}), changed({}, { state })]).toEqual([['crm'], []])
  expect(changed({}, { state: 'paused', sharedSecret: 's2' })).toEqual([])
  expect(givenAnotherChance(new Map(), new Map([['crm', plain]]))).toEqual([])
})

test('a destination has recovered when none of its hooks fails any more, and one had failed for long enough', () => {
  const recoveries = new Recoveries(60)
  const erp = { destinationId: 'erp', openForMs: 59 }
  expect(recoveries.look([crm(61), crm(5), erp])).toEqual([])
  // One of its hooks works again, and the other doesn't.
  expect(recoveries.look([crm(10)])).toEqual([])
  expect(recoveries.look([])).toEqual(['crm'])
  expect(recoveries.look([])).toEqual([])
  expect(recoveries.look([crm(59)])).toEqual([])
  expect(recoveries.look([])).toEqual([])
})
