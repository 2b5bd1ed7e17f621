/* oxlint-disable unicorn/no-thenable -- the directive @if has this key; no function, so no await calls it */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MessageView } from '../../../src/conditions/message-view.ts'
import { joinedPath, ownRequest } from '../../../src/delivery/own-request.ts'
import { outgoingAgain, outgoingOf } from '../../../src/shape/choice.ts'
import type { Mapping } from '../../../src/shape/definition.ts'
import { mappingFaults } from '../../../src/shape/faults.ts'
import { mappingLimits } from '../../../src/shape/limits.ts'
import { Shaper } from '../../../src/shape/shaper.ts'

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

  test('that names a long value very often is made only until it is too long', () => {
    const path = `/${'{{a}}'.repeat(390)}`
    const message = { a: 'я'.repeat(200) }
    const { user } = process.cpuUsage()
    for (let times = 0; times < 500; times++) expect(shaped({ path }, message)).toMatch(/^path gets a value/)
    // To its end, each has half a million characters, which takes two milliseconds.
    expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(500)
  })

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

test('a mapping that decodes a text, or copies an object, very often does not do it to its end', () => {
  const members = Array.from({ length: 1_500 }, (_member, at) => [`k${at}`, 1] as const)
  const text = `[${String.raw`{"\\":1},`.repeat(2_000)}{}]`
  const message = { properties: { text, ...Object.fromEntries(members) } }
  const decode = { '@json': { mode: 'decode', value: { '@path': '$.properties.text' } } }
  const objects = Array<object>(150).fill({ '@path': '$.properties' })
  const { user } = process.cpuUsage()
  for (const body of [Array<object>(50).fill(decode), { '@merge': { direction: 'left', objects } }])
    expect(shaped({ body }, message)).toContain('steps')
  // To its end, each takes 100 ms or more.
  expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(1_000)
})

test('a text that a replacement makes too long is not made to its end', () => {
  const replace = { pattern: 'a', replacement: 'bbbbbbbbbb', pattern2: 'b', replacement2: 'cccccccccc' }
  const body = { '@replace': { ...replace, value: { '@path': '$.properties.text' } } }
  const message = { properties: { text: 'a'.repeat(300_000) } }
  const { user } = process.cpuUsage()
  expect(shaped({ body }, message)).toContain('steps')
  // To its end, it has 30 million characters, and takes more than a second.
  expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(700)
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

/** Random mappings of all directives, deep and wide, on messages that are as large as they may be. */
const leaf = fc.oneof(
  fc
    .constantFrom('$.', '$.properties', '$.properties.a', '$.properties.a[0]', '$.no')
    .map((one) => ({ '@path': one })),
  fc
    .constantFrom('{{properties.b}}', '{{properties.b}}{{properties.b}}{{properties.a}}', 'x')
    .map((one) => ({ '@template': one })),
  fc.constantFrom<unknown>(1, 'x', null, true),
)
const { body: anyMapping } = fc.letrec<{ body: unknown }>((tie) => ({
  body: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('body'), { maxLength: 6 }),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__', '0'), tie('body'), { maxKeys: 4 }),
    fc.record({ '@json': fc.record({ mode: fc.constantFrom('encode', 'decode'), value: tie('body') }) }),
    fc.record({
      '@merge': fc.record({
        direction: fc.constantFrom('left', 'right'),
        objects: fc.array(tie('body'), { maxLength: 5 }),
      }),
    }),
    fc.record({
      '@flatten': fc.record({ separator: fc.constantFrom('.', 'xxxxxxxxxx'), value: tie('body') }),
    }),
    fc.record({
      '@replace': fc.record({
        pattern: fc.constantFrom('a', 'ab', '"'),
        replacement: fc.constantFrom('aaaaaaaaaa', '""""""""""'),
        value: tie('body'),
      }),
    }),
    fc.record({ '@case': fc.record({ operator: fc.constantFrom('lower', 'upper'), value: tie('body') }) }),
    fc
      .tuple(fc.constantFrom('$.properties.a', '$.', ''), tie('body'))
      .map(([at, item]) => ({ '@arrayPath': [at, { i: item }] })),
    fc.record({ '@excludeWhenNull': tie('body') }),
    fc.record({ '@if': fc.record({ exists: tie('body'), then: tie('body') }) }),
  ),
}))

test('no mapping that is allowed costs more than its bound, and each makes canonical bytes or says why not', () => {
  const large = {
    type: 'track',
    properties: {
      a: Array.from({ length: 3_000 }, (_, at) => ({ x: at, y: ['a', null] })),
      b: 'ab"'.repeat(30_000),
    },
  }
  const body = Buffer.from(JSON.stringify(large))
  const view = new MessageView(body)
  void view.value
  let applied = 0
  fc.assert(
    fc.property(anyMapping, (mapping) => {
      if (mappingFaults({ body: mapping }).length > 0) return
      applied++
      const { user } = process.cpuUsage()
      const result = new Shaper({ body: mapping }).of(view, body)
      // A few million steps. Without a bound, these grow a hundredfold with each level.
      expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(3_000)
      if (!result.ok) return
      const text = result.shaped.body.toString()
      expect(result.shaped.body.length).toBeLessThanOrEqual(mappingLimits.bodyBytes)
      expect(JSON.stringify(JSON.parse(text))).toBe(text)
    }),
    { numRuns: 300 },
  )
  expect(applied).toBeGreaterThan(50)
})
