import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MessageView } from '../../../src/conditions/message-view.ts'
import { joinedPath, ownRequest } from '../../../src/delivery/own-request.ts'
import { outgoingAgain, outgoingOf } from '../../../src/shape/choice.ts'
import type { Mapping } from '../../../src/shape/definition.ts'
import { mappingFaults } from '../../../src/shape/faults.ts'
import { Shaper, shaperOfText } from '../../../src/shape/shaper.ts'

const order = {
  version: 1,
  type: 'track',
  event: 'Order Completed',
  userId: 'u/1',
  properties: {
    total: 30,
    email: 'a@b.example',
    items: [
      { sku: 'A', cost: 1 },
      { sku: 'B', cost: 2 },
    ],
  },
  context: { ip: '203.0.113.7', page: { path: '/x' } },
}
const bytes = Buffer.from(JSON.stringify(order))

function shaped(mapping: Mapping, message: object = order) {
  const body = Buffer.from(JSON.stringify(message))
  const result = new Shaper(mapping).of(new MessageView(body), body)
  return result.ok ? result.shaped : result.detail
}

test('a mapping without a body sends the bytes of the message', () => {
  const result = new Shaper({ method: 'PUT' }).of(new MessageView(bytes), bytes)
  expect(result.ok && result.shaped.body).toBe(bytes)
  expect(result).toMatchObject({
    shaped: { method: 'PUT', path: '', headers: [], contentType: 'application/json' },
  })
})

test('allowed and blocked fields are paths, also through lists', () => {
  const allow = ['type', 'properties.items.sku', 'properties.total', 'properties.no']
  expect(JSON.parse(String(Object(shaped({ allow })).body))).toEqual({
    type: 'track',
    properties: { total: 30, items: [{ sku: 'A' }, { sku: 'B' }] },
  })
  expect(
    JSON.parse(String(Object(shaped({ block: ['context.ip', 'properties.items.cost', 'userId'] })).body)),
  ).toEqual({
    version: 1,
    type: 'track',
    event: 'Order Completed',
    properties: { total: 30, email: 'a@b.example', items: [{ sku: 'A' }, { sku: 'B' }] },
    context: { page: { path: '/x' } },
  })
  // What is blocked is also absent for the body, for headers and for the path.
  const hidden = {
    block: ['properties.email'],
    body: { mail: { '@path': '$.properties.email' }, all: { '@path': '$.' } },
  }
  expect(String(Object(shaped(hidden)).body)).not.toContain('a@b.example')
})

test('a form has the members in their order, with lists and objects as JSON', () => {
  const body = {
    a: 'x y&z',
    b: { '@path': '$.properties.items' },
    c: null,
    d: { '@path': '$.no' },
    e: 1.5,
    f: true,
  }
  const made = shaped({ format: 'form', body })
  expect(made).toMatchObject({ contentType: 'application/x-www-form-urlencoded' })
  expect(Object.fromEntries(new URLSearchParams(String(Object(made).body)))).toEqual({
    a: 'x y&z',
    b: JSON.stringify(order.properties.items),
    c: '',
    e: '1.5',
    f: 'true',
  })
  expect(shaped({ format: 'form', body: 'text' })).toContain('makes no object')
})

describe('a path', () => {
  test.each([
    ['/users/{{userId}}', '/users/u%2F1'],
    ['/o?total={{properties.total}}&p={{context.page.path}}', '/o?total=30&p=%2Fx'],
    ['/plain', '/plain'],
  ])('%s becomes %s', (path, expected) => {
    expect(shaped({ path })).toMatchObject({ path: expected })
  })

  test.each([['..'], ['.'], [''], [null], ['\ud800'], [{ a: 1 }], ['x'.repeat(3_000)]])(
    'no value leads out of it: %j',
    (userId) => {
      expect(shaped({ path: '/users/{{userId}}/orders' }, { ...order, userId })).toMatch(/^path /)
    },
  )

  test.each(['users', '/a/../b', '/a/%2e%2E/b', '/a/..%2Fb', '/a%5c..', '/a b', '/a#b', '//{{x}}\\', '/%zz'])(
    '%s is refused',
    (path) => {
      expect(mappingFaults({ path })).toMatchObject([{ path: ['path'] }])
    },
  )

  test('is added to the path of the URL, whose query stays', () => {
    expect(joinedPath('/hook?key=1', '/users/2?a=b')).toBe('/hook/users/2?key=1&a=b')
    expect(joinedPath('/', '/users')).toBe('/users')
    expect(joinedPath('/hook?key=1', '')).toBe('/hook?key=1')
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 60 }), (userId) => {
        const made = shaped({ path: '/u/{{userId}}/x' }, { ...order, userId })
        if (typeof made === 'string') return
        const url = new URL(`https://a.example${joinedPath('/hook/', made.path)}`)
        expect(url.pathname.startsWith('/hook/u/')).toBe(true)
        expect(url.pathname.split('/')).toHaveLength(5)
      }),
    )
  })
})

test('headers take the place of those of the URL, and no value breaks a request', () => {
  const headers = { 'X-Event': { '@path': '$.event' }, 'x-team': 'ops', 'X-None': { '@path': '$.no' } }
  const made = shaped({ headers })
  if (typeof made === 'string') throw new Error(made)
  expect(made.headers).toEqual(['X-Event', 'Order Completed', 'x-team', 'ops'])
  const target = {
    origin: 'https://a.example',
    path: '/',
    headers: ['User-Agent', 'Sluice/1.0', 'Content-Type', 'application/json', 'X-Team', 'crm'],
  }
  expect(ownRequest(target, made).headers).toEqual([
    'User-Agent',
    'Sluice/1.0',
    'Content-Type',
    'application/json',
    'X-Event',
    'Order Completed',
    'x-team',
    'ops',
  ])
  for (const event of ['a\r\nX-Evil: 1', 'ключ', '\u0000'])
    expect(shaped({ headers }, { ...order, event })).toContain('headers.X-Event gets a value')
})

test.each(['[', '{"a":'])('a text that is decoded has at most 100 levels: %s', (opening) => {
  const textOf = (levels: number) =>
    opening.repeat(levels) + '1' + (opening === '[' ? ']' : '}').repeat(levels)
  const decode = { '@json': { mode: 'decode', value: { '@path': '$.properties.text' } } }
  const bodies = [
    { a: decode },
    { '@json': { mode: 'encode', value: decode } },
    { '@excludeWhenNull': decode },
    { '@flatten': { separator: '.', value: decode } },
  ]
  for (const body of bodies) {
    expect(shaped({ body }, { properties: { text: textOf(100) } })).toHaveProperty('body')
    for (const levels of [101, 5_000, 60_000])
      expect(shaped({ body }, { properties: { text: textOf(levels) } })).toContain('more than 100 levels')
  }
})

test('no key of a message becomes one of an earlier message, which may be of another customer', () => {
  // JSON.parse alone would read the second key like the first one (nodejs/node#63785).
  const texts = [String.raw`{"z":1,"\\":2}`, String.raw`{"z":1,"\n":2}`]
  const views = texts.map((text) => new MessageView(Buffer.from(text)).value)
  expect(views.map(Object.keys)).toEqual([
    ['z', '\\'],
    ['z', '\n'],
  ])
  const body = { '@json': { mode: 'decode', value: { '@path': '$.properties.text' } } }
  const made = texts.map((text) => shaped({ body }, { properties: { text } }))
  expect(made.map((one) => String(Object(one).body))).toEqual(texts)
})

test('a mapping that waits in Kafka is read though one before it had another name in the same place', () => {
  const texts = ['\\', '\n'].map((name) => new Shaper({ body: { waits: 1, [name]: 2 } }).text)
  expect(texts.map((text) => shaperOfText(text).text)).toEqual(texts)
})

describe('the mapping of a message', () => {
  const mappings: readonly Mapping[] = [
    { name: 'orders', condition: 'event == "Order Completed"', body: { kind: 'order' } },
    { name: 'other tracks', condition: 'type == "track"', body: { kind: 'track' } },
  ]
  const kindOf = (message: object, isOwed = false) => {
    const outgoing = outgoingOf(mappings, { body: Buffer.from(JSON.stringify(message)), isOwed })
    return outgoing.kind === 'shaped' ? outgoing.shaped.body.toString() : outgoing.kind
  }

  test('is the first that is for it', () => {
    expect(kindOf(order)).toBe('{"kind":"order"}')
    expect(kindOf({ type: 'track', event: 'Other' })).toBe('{"kind":"track"}')
    expect(kindOf({ type: 'page' })).toBe('none')
    // Deletes, and values of audiences, are never withheld.
    expect(kindOf({ type: 'delete' }, true)).toBe('plain')
    expect(outgoingOf(undefined, { body: bytes, isOwed: false })).toEqual({ kind: 'plain' })
  })

  test('that can not be told is said', () => {
    const body = Buffer.from(JSON.stringify(order))
    expect(outgoingOf([{ condition: 'int(event) == 1' }], { body, isOwed: false })).toMatchObject({
      kind: 'failed',
      reason: 'filter_failed',
    })
    expect(outgoingOf([{ body: { '@path': '$.no' } }], { body, isOwed: false })).toMatchObject({
      kind: 'failed',
      reason: 'mapping_failed',
    })
  })

  test('makes the same bytes again from its text, whatever its name and condition', () => {
    const mapping: Mapping = {
      name: 'n',
      condition: 'type == "track"',
      method: 'PATCH',
      path: '/{{userId}}',
      headers: { 'X-E': { '@path': '$.event' } },
      body: { b: { '@path': '$.properties' }, a: '\ud800ä' },
      format: 'json',
    }
    const first = outgoingOf([mapping], { body: bytes, isOwed: false })
    if (first.kind !== 'shaped') throw new Error(first.kind)
    const again = outgoingAgain(first.shaper.text, bytes)
    expect(again.kind === 'shaped' && again.shaped).toEqual(first.shaped)
    expect(first.shaper.text).not.toContain('condition')
  })
})
