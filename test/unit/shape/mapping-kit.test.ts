/* oxlint-disable unicorn/no-thenable -- the directive @if has this key; no function, so no await calls it */
import { describe, expect, test } from 'vitest'
import { MessageView } from '../../../src/conditions/message-view.ts'
import { MappingFault } from '../../../src/shape/fault.ts'
import { Shaper } from '../../../src/shape/shaper.ts'

// The examples that Segment publishes for mapping-kit, as data: a mapping, an input, and the result.

function made(mapping: unknown, input: object): unknown {
  const bytes = Buffer.from(JSON.stringify(input))
  const result = new Shaper({ body: mapping }).of(new MessageView(bytes), bytes)
  if (!result.ok) return `failed: ${result.detail}`
  const text = result.shaped.body.toString()
  const value: unknown = JSON.parse(text)
  // The canonical form: a receiver that parses and stringifies it has the bytes that were signed.
  expect(JSON.stringify(value)).toBe(text)
  return value
}

const path = (text: string) => ({ '@path': text })
const products = {
  products: [
    { productId: '123', price: 0.5 },
    { productId: '456', price: 0.99 },
  ],
}
const shape = { product_id: path('$.productId'), monies: path('$.price') }
const nulls = { foo: { bar: null, aces: { a: 1, b: 2, c: null, d: { a: null, b: null } } } }
const replace = (value: unknown, more: object) => [
  { '@replace': { value: path('$.a'), ...more } },
  { a: value },
]
const asked = { a: 1, b: true, c: false, d: null, e: '' }
const choice = (kind: 'exists' | 'blank', at: string) => ({
  '@if': { [kind]: path(at), then: 'yes', else: 'no' },
})
const cased = (operator: string, value: unknown) => [
  { '@case': { operator, value: path('$.a') } },
  { a: value },
]
const json = (mode: string, foo: unknown) => [{ '@json': { mode, value: path('$.foo') } }, { foo }]
const merge = (direction: string, ...objects: unknown[]) => ({ '@merge': { direction, objects } })
const flat = (foo: unknown, more: object = {}) => [
  { '@flatten': { value: path('$.foo'), separator: '.', ...more } },
  { foo },
]

type Example = readonly [what: string, mapping: unknown, input: object, result: unknown]
function named(what: string, [mapping, input]: readonly unknown[], result: unknown): Example {
  return [what, mapping, Object(input), result]
}

const examples: readonly Example[] = [
  [
    'a mapping of everything',
    {
      name: 'Mr. Rogers',
      neighborhood: path('$.properties.neighborhood'),
      greeting: { '@template': "Won't you be my {{properties.noun}}?" },
    },
    { type: 'track', event: 'Sweater On', properties: { neighborhood: 'Latrobe', noun: 'neighbor' } },
    { name: 'Mr. Rogers', neighborhood: 'Latrobe', greeting: "Won't you be my neighbor?" },
  ],
  ['an empty mapping', {}, { cool: false }, {}],
  ['plain values', { cool: true, list: [1, 'a', null] }, {}, { cool: true, list: [1, 'a', null] }],
  ['a list with directives', [path('$.a'), { b: path('$.b') }], { a: 1, b: 2 }, [1, { b: 2 }]],
  [
    'absent values are left out, null stays',
    { foo: path('$.a'), bar: path('$.b'), baz: null },
    { a: 1 },
    { foo: 1, baz: null },
  ],
  [
    'nested absent values',
    { x: { y: path('$.no'), z: 1 }, foo: { bar: { baz: path('$.no') } } },
    {},
    { x: { z: 1 }, foo: { bar: {} } },
  ],
  ['_metadata beside a directive', { a: { '@path': '$.a', _metadata: { label: 'x' } } }, { a: 1 }, { a: 1 }],
  ['@literal', { simple: { '@literal': false } }, {}, { simple: false }],
  [
    '@literal with directives',
    { nested: { '@literal': { a: path('$.a'), b: path('$.b') } } },
    { a: 'some value' },
    { nested: { a: 'some value' } },
  ],

  ['@path', path('$.foo'), { foo: 'bar' }, 'bar'],
  ['@path without $.', path('foo.bar'), { foo: { bar: 42 } }, 42],
  ['@path to the whole', path('$.'), { foo: 'bar' }, { foo: 'bar' }],
  ['@path to the whole, empty', path(''), { foo: 'bar' }, { foo: 'bar' }],
  ['@path into a list', path('$.foo.baz[0].num'), { foo: { baz: [{ num: 1 }, { num: 2 }] } }, 1],
  ['@path with quotes', path('$.foo[\'a b\']["c"]'), { foo: { 'a b': { c: 1 } } }, 1],
  [
    '@path with spaces',
    path('$.integrations.Actions Amplitude.session_id'),
    { integrations: { 'Actions Amplitude': { session_id: 'bar' } } },
    'bar',
  ],
  ['@path of a key with brackets', path('$.a[b]'), { 'a[b]': 1 }, 1],
  ['@path made by a directive', { '@path': path('$.foo') }, { foo: 'bar', bar: 'baz' }, 'baz'],
  ['@path through a text', { neat: path('$.foo.bar.baz') }, { foo: 'bar' }, {}],
  ['@path through null', { neat: path('$.foo.bar') }, { foo: null }, { neat: null }],

  ['@template', { '@template': 'Hello, {{who}}!' }, { who: 'World' }, 'Hello, World!'],
  [
    '@template nested',
    { '@template': '{{traits.name}} ({{userId}})' },
    { userId: 'abc123', traits: { name: 'Mr. Rogers' } },
    'Mr. Rogers (abc123)',
  ],
  [
    '@template escapes nothing',
    { '@template': '<blink>{{a}} {{{a}}}</blink>' },
    { a: '<b>Hi</b>' },
    '<blink><b>Hi</b> <b>Hi</b></blink>',
  ],
  ['@template without the field', { '@template': '{{oops.yo}}' }, {}, ''],
  ['@template with spaces', { '@template': '{{ a }}/{{b}}' }, { a: 1, b: false }, '1/false'],
  [
    '@template fills in nothing of what is filled in',
    { '@template': '{{{a}}}' },
    { a: '{{b}}', b: 'secret' },
    '{{b}}',
  ],
  ['@template with a list', { '@template': '{{a}}' }, { a: ['x', 1, null] }, 'x,1,'],

  ...(['$.a', '$.e'] as const).map((at): Example => [`@if exists ${at}`, choice('exists', at), asked, 'yes']),
  ...(['$.d', '$.x'] as const).map((at): Example => [`@if exists ${at}`, choice('exists', at), asked, 'no']),
  ['@if blank of 1', choice('blank', '$.a'), asked, 'yes'],
  ...(['$.c', '$.d', '$.e', '$.x'] as const).map((at): Example => [
    `@if blank ${at}`,
    choice('blank', at),
    asked,
    'no',
  ]),
  ['@if without else', { foo: { '@if': { exists: path('$.foo'), then: true } } }, { a: 'cool' }, {}],
  ['@if with a directive', { a: { '@if': { exists: path('$.a'), then: path('$.b') } } }, asked, { a: true }],

  named('@case lower', cased('lower', 'MAKE ME'), 'make me'),
  named('@case upper', cased('upper', 'mIXeD W/ 190wdB'), 'MIXED W/ 190WDB'),
  named('@case of an empty text', cased('lower', ''), ''),
  ...[1, null, false, { key: ['hi', true, null] }].map((value) =>
    named(`@case leaves ${JSON.stringify(value)}`, cased('lower', value), value),
  ),

  named('@replace nothing', replace('', { pattern: '_', replacement: 'rrrrr' }), ''),
  named('@replace in null', replace(null, { pattern: '_', replacement: 'rrrrr' }), ''),
  named(
    '@replace by case',
    replace('cWWl-story-ww', { pattern: 'WW', replacement: 'oo', ignorecase: false }),
    'cool-story-ww',
  ),
  named(
    '@replace in any case',
    replace('aab-----AaB---aab', { pattern: 'AaB', replacement: 'nice', ignorecase: true }),
    'nice-----nice---nice',
  ),
  named(
    '@replace all',
    replace('many+different+things', { pattern: '+', replacement: '_' }),
    'many_different_things',
  ),
  named(
    '@replace the first',
    replace('just-the-first', { pattern: '-', replacement: '@', global: false }),
    'just@the-first',
  ),
  named(
    '@replace without replacement',
    replace('many+different+things', { pattern: 'many+' }),
    'different+things',
  ),
  named('@replace in a boolean', replace(true, { pattern: 'true', replacement: 'granted' }), 'granted'),
  named('@replace in a number', replace(1, { pattern: '1', replacement: 'granted' }), 'granted'),
  named(
    '@replace two',
    replace('something-great!', {
      pattern: '-',
      replacement: ' ',
      pattern2: 'great',
      replacement2: 'awesome',
    }),
    'something awesome!',
  ),
  named(
    '@replace the second',
    replace(false, { pattern: 'true', replacement: 'granted', pattern2: 'false', replacement2: 'denied' }),
    'denied',
  ),
  named('@replace of signs', replace('a.*b(c)', { pattern: '.*b(', replacement: '$&' }), 'a$&c)'),

  ['@merge nothing', merge('right'), {}, {}],
  ['@merge one', merge('left', { cool: true }), {}, { cool: true }],
  [
    '@merge to the right',
    merge('right', { cool: true, hey: 'there' }, path('foo')),
    { foo: { bar: 'baz', hey: 'you' } },
    { cool: true, hey: 'you', bar: 'baz' },
  ],
  [
    '@merge to the left',
    merge('left', { cool: true, hey: 'there' }, path('foo')),
    { foo: { bar: 'baz', hey: 'you' } },
    { bar: 'baz', hey: 'there', cool: true },
  ],
  [
    '@merge with defaults',
    merge('right', { name: 'Missing name', neighborhood: 'Missing neighborhood' }, path('traits')),
    { traits: { name: 'Mr. Rogers' } },
    { name: 'Mr. Rogers', neighborhood: 'Missing neighborhood' },
  ],

  named('@flatten', flat({ bar: 'baz', aces: { a: 1, b: 2 } }), { bar: 'baz', 'aces.a': 1, 'aces.b': 2 }),
  named('@flatten a list', flat([{ fazz: 'bar', fizz: 'baz' }]), { '0.fazz': 'bar', '0.fizz': 'baz' }),
  named('@flatten without lists', flat({ bar: 'baz', aces: [1, 2] }, { omitArrays: true }), {
    bar: 'baz',
    aces: [1, 2],
  }),

  named('@json encode a text', json('encode', 'bar'), '"bar"'),
  named('@json encode an object', json('encode', { bar: 'baz' }), '{"bar":"baz"}'),
  named('@json encode a list', json('encode', ['foo', 'bar']), '["foo","bar"]'),
  named('@json decode a text', json('decode', '"bar"'), 'bar'),
  named('@json decode an object', json('decode', '{"bar":"baz"}'), { bar: 'baz' }),
  named('@json decode a list', json('decode', '["bar","baz"]'), ['bar', 'baz']),
  named('@json decode no JSON', json('decode', 'Hello World'), 'Hello World'),
  ['@json encode nothing', { neat: { '@json': { mode: 'encode', value: path('$.bad') } } }, {}, {}],

  ['@arrayPath', { neat: { '@arrayPath': ['$.products'] } }, products, { neat: products.products }],
  [
    '@arrayPath with a shape',
    { neat: { '@arrayPath': ['$.products', shape] } },
    products,
    {
      neat: [
        { product_id: '123', monies: 0.5 },
        { product_id: '456', monies: 0.99 },
      ],
    },
  ],
  [
    '@arrayPath with a directive',
    {
      neat: {
        '@arrayPath': [{ '@if': { exists: path('$.products'), then: path('$.products'), else: [] } }, shape],
      },
    },
    products,
    {
      neat: [
        { product_id: '123', monies: 0.5 },
        { product_id: '456', monies: 0.99 },
      ],
    },
  ],
  [
    '@arrayPath of an object',
    { neat: { '@arrayPath': ['$.properties', shape] } },
    { properties: products.products[0] },
    { neat: [{ product_id: '123', monies: 0.5 }] },
  ],
  [
    '@arrayPath of another object',
    { neat: { '@arrayPath': ['$.products', shape] } },
    { products: { notAnArray: true } },
    { neat: [{}] },
  ],

  [
    '@excludeWhenNull',
    { no: { '@excludeWhenNull': path('$.foo.bar') }, yes: path('$.foo.aces.a') },
    nulls,
    { yes: 1 },
  ],
  [
    '@excludeWhenNull in an object',
    { neat: { '@excludeWhenNull': path('$.foo') } },
    nulls,
    { neat: { aces: { a: 1, b: 2, d: {} } } },
  ],
]

test.each(examples)('%s', (_what, mapping, input, result) => {
  expect(made(mapping, input)).toEqual(result)
})

describe('what is refused with the catalog', () => {
  test.each<[mapping: unknown, path: string, words: string]>([
    [{ a: 1, '@path': '$.b' }, 'body', 'beside other keys'],
    [{ '@path': '$.a', '@template': 'b' }, 'body', 'beside other keys'],
    [{ x: { '@liquid': '{{ a }}' } }, 'body.x.@liquid', 'not a directive'],
    [{ '@transform': {} }, 'body.@transform', 'not a directive'],
    [{ '@path': {} }, 'body.@path', 'neither text nor a directive'],
    [{ '@template': false }, 'body.@template', 'neither text nor a directive'],
    [{ '@merge': [{}, 123] }, 'body.@merge', 'has no fields'],
    [merge('up', {}), 'body.@merge.direction', 'neither left nor right'],
    [{ '@merge': { direction: 'left', objects: {} } }, 'body.@merge.objects', 'no list'],
    [{ '@case': 'x' }, 'body.@case', 'has no fields'],
    [{ '@case': { operator: 'snake', value: 'x' } }, 'body.@case.operator', 'neither lower nor upper'],
    [{ '@json': { mode: 'oops', value: 'x' } }, 'body.@json.mode', 'neither encode nor decode'],
    [{ '@if': { then: 1 } }, 'body.@if', 'neither exists nor blank'],
    [{ '@replace': { value: 'x' } }, 'body.@replace.pattern', 'is missing'],
    [{ '@replace': { value: 'x', pattern: 'more than ten' } }, 'body.@replace.pattern', 'at most 10'],
    [{ '@flatten': { value: 'x' } }, 'body.@flatten.separator', '1 to 10 characters'],
    [{ '@arrayPath': '$.a' }, 'body.@arrayPath', 'no list of a path'],
    [Array.from({ length: 600 }, () => 1), 'body.499', 'more than 500'],
    [{ text: 'x'.repeat(8_000) }, '', 'has 8'],
    [nested(25), 'body', 'deeper than 20'],
  ])('%j', (mapping, place, words) => {
    const refuse = () => new Shaper({ body: mapping })
    expect(refuse).toThrow(MappingFault)
    expect(refuse).toThrow(words)
    try {
      refuse()
    } catch (error) {
      if (!(error instanceof MappingFault)) throw error
      expect(error.path.join('.').startsWith(place)).toBe(true)
    }
  })
})

function nested(levels: number): unknown {
  return levels === 0 ? 1 : { a: nested(levels - 1) }
}

test('keys of messages that JavaScript knows come through unharmed, and pollute nothing', () => {
  const odd = JSON.parse('{"traits":{"__proto__":{"admin":true},"constructor":1,"toString":2}}')
  const bytes = Buffer.from(JSON.stringify(odd))
  for (const mapping of [
    path('$.traits'),
    merge('right', path('$.traits')),
    { '@excludeWhenNull': path('$.traits') },
  ]) {
    const result = new Shaper({ body: mapping }).of(new MessageView(bytes), bytes)
    expect(result.ok && result.shaped.body.toString()).toBe(
      '{"__proto__":{"admin":true},"constructor":1,"toString":2}',
    )
  }
  expect(
    made(
      { a: path('$.traits.hasOwnProperty'), b: path('$.traits.toString'), c: path('$.event.length') },
      { ...odd, event: 'abc' },
    ),
  ).toEqual({ b: 2 })
  expect(Object.hasOwn(Object.prototype, 'admin')).toBe(false)
})
