import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { parseJson } from '../../../src/message/json/json.ts'

/**
 * A JSON text and the value that it means. No serialiser of ours would write such texts. They have odd
 * spaces, needless escapes, many spellings of a number, repeated keys, keys like integers, `__proto__` and
 * lone surrogates. No number in them is infinite. The tests can't ask JSON.parse for the meaning, because it
 * is wrong about some of these texts (nodejs/node#63785).
 */
type Spelled<T = unknown> = { text: string; value: T }
type Member = { text: string; entry: [key: string, value: unknown] }

const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r\n  ')

const written = fc.oneof(
  fc.constantFrom('a', 'Z', '9', 'é', '漢', '😀', '\u2028', '\u007f', '/', ':', 'null', '\ufeff'),
  fc.string({ unit: 'binary' }).filter((text) => !/["\\\p{Cc}\p{Cs}]/u.test(text)),
)
const escape = fc.constantFrom(
  { text: '\\u0041', value: 'A' },
  { text: '\\u005f', value: '_' },
  { text: '\\u005C', value: '\\' },
  { text: '\\\\', value: '\\' },
  { text: '\\/', value: '/' },
  { text: '\\"', value: '"' },
  { text: '\\n', value: '\n' },
  { text: '\\u0000', value: '\u0000' },
  { text: '\\u001F', value: '\u001f' },
  { text: '\\u00e9', value: 'é' },
  { text: '\\ud800', value: '\ud800' },
  { text: '\\uDC00', value: '\udc00' },
  { text: '\\ud83d\\ude00', value: '😀' },
  { text: '\\ude00\\ud83d', value: '\ude00\ud83d' },
)
const spelledString: fc.Arbitrary<Spelled<string>> = fc
  .array(fc.oneof(written.map(plain), escape), { maxLength: 5 })
  .map((pieces) => ({
    text: `"${pieces.map(({ text }) => text).join('')}"`,
    value: pieces.map(({ value }) => value).join(''),
  }))

function plain(text: string): Spelled<string> {
  return { text, value: text }
}

const spelledKey: fc.Arbitrary<Spelled<string>> = fc.oneof(
  fc
    .constantFrom('__proto__', 'constructor', 'prototype', 'toJSON', 'toString', 'a', 'b', 'version ')
    .map(quoted),
  fc.constantFrom('2', '10', '1', '01', '-1', '4294967294', '4294967296', '').map(quoted),
  fc.constantFrom(
    { text: '"__proto\\u005f_"', value: '__proto__' },
    { text: '"\\u0061"', value: 'a' },
    { text: '"\\u0030"', value: '0' },
    { text: '"\\u00e9t\\u00e9"', value: 'été' },
    { text: '"\\\\u0"', value: '\\u0' },
    { text: '"a\\\\"', value: 'a\\' },
    { text: '"a\\n"', value: 'a\n' },
    { text: '"\\\\"', value: '\\' },
    { text: '"\\n"', value: '\n' },
    { text: '"\\""', value: '"' },
  ),
  spelledString,
)

function quoted(value: string): Spelled<string> {
  return { text: `"${value}"`, value }
}

const spelledNumber: fc.Arbitrary<Spelled> = fc
  .oneof(
    fc.constantFrom(
      '1.0',
      '1e21',
      '-0',
      '-0.0',
      '0e5',
      '1E+2',
      '1e3',
      '5e-324',
      '1e-400',
      '9007199254740993',
    ),
    fc.constantFrom('12345678901234567890', '0.1000', '1e20', '123e-7', '1.7976931348623157e308'),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc
      .tuple(fc.integer(), fc.nat(9999), fc.integer({ min: -30, max: 30 }))
      .map(([whole, fraction, exponent]) => `${whole}.${fraction}e${exponent}`),
  )
  .map((text) => ({ text, value: Number(text) }))

const spelledLiteral: fc.Arbitrary<Spelled> = fc.constantFrom(
  { text: 'null', value: null },
  { text: 'true', value: true },
  { text: 'false', value: false },
)

function spelledArray(items: Spelled[], [a, b]: [string, string]): Spelled {
  return {
    text: `[${a}${items.map(({ text }) => text).join(`${b},${a}`)}${b}]`,
    value: items.map(({ value }) => value),
  }
}

/**
 * Returns an object with these members. The last of repeated keys counts. A field `__proto__` is a field like
 * any other.
 */
function spelledObject(members: Member[], [a, b]: [string, string]): Spelled<object> {
  return {
    text: `{${a}${members.map(({ text }) => text).join(`${b},${a}`)}${b}}`,
    value: Object.fromEntries(members.map(({ entry }) => entry)),
  }
}

const gaps = fc.tuple(space, space)

const { member, json } = fc.letrec<{ json: Spelled; member: Member }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    spelledLiteral,
    spelledNumber,
    spelledString,
    fc
      .tuple(fc.array(tie('json'), { maxLength: 4 }), gaps)
      .map(([items, around]) => spelledArray(items, around)),
    fc
      .tuple(fc.array(tie('member'), { maxLength: 5 }), gaps)
      .map(([members, around]) => spelledObject(members, around)),
  ),
  member: fc.tuple(spelledKey, space, space, tie('json')).map(([key, a, b, value]) => ({
    text: `${key.text}${a}:${b}${value.text}`,
    entry: [key.value, value.value],
  })),
}))

/** Any JSON value. */
export const spelledJson = json

/**
 * Returns members that are spelled as in these texts. JSON.parse reads them while the file is loaded. By then
 * JSON.parse hasn't seen anything odd.
 */
function fields(...texts: string[]): Member[] {
  return texts.map((text) => {
    const [entry] = Object.entries<unknown>(JSON.parse(`{${text}}`))
    if (entry === undefined) throw new Error('no member')
    return { text, entry }
  })
}

const ids = [
  fields('"userId": "u1"'),
  fields('"userId":"\\ud800"', '"anonymousId":null'),
  fields('"userId":null', '"anonymousId":"a\\u0031"'),
  fields('"userId":""', '"anonymousId" :"a"'),
]
const kinds = [
  fields('"type":"identify"', '"traits":{"__proto__":{"polluted":true},"n":1.0}'),
  fields('"typ\\u0065":"track"', '"event":"Signed \\u0055p"', '"properties":null'),
  fields('"type" : "page"', '"properties":{"2":2,"1":1}'),
  fields('"type":"screen"', '"name":"Home"'),
  fields('"type":"group"', '"groupId":"g"', '"traits":{"a":1,"a":2}'),
].flatMap((kind) => ids.map((user) => [...kind, ...user]))
const kindsOfTheirOwn = [
  fields('"type":"alias"', '"userId":"u"', '"previousId":"p"'),
  fields('"type":"alias"', '"User ID":"u"', '"Previous ID":"p"', '"previousId":null'),
  fields('"type":"alias"', '"User ID":"v"', '"previousId":"p"', '"userId":"u"'),
  fields('"type":"delete"', '"userId":"u"'),
  fields('"type":"delete"', '"userId":"u"', '"version":2'),
]

const sometimes = (...texts: string[]) => fc.constantFrom([], ...fields(...texts).map((field) => [field]))

const sharedFields = fc
  .tuple(
    sometimes('"version":1', '"version" : 2.50', '"version":"1.1"', '"version":null'),
    sometimes('"timestamp":"2009-11-10T23:00:00+0000"', '"timestamp":null', '"timestamp":"2024-02-29"'),
    sometimes('"messageId":"m-\\ud800"', '"messageId":null', '"messageId":""'),
    sometimes('"context":{"__proto__":null,"ip":"::1"}', '"context":null', '"context":{}'),
    sometimes('"integrations":{"All":true,"__proto__":{"Webhooks":false}}', '"integrations":null'),
  )
  .map((chosen) => chosen.flat())

/**
 * A message that must be accepted, with fields of any name around and between its own fields. Some of its own
 * fields occur twice, first with a value that would be refused.
 */
export const spelledMessage: fc.Arbitrary<Spelled<object>> = fc
  .tuple(
    fc.constantFrom(...kinds, ...kindsOfTheirOwn),
    sharedFields,
    fc.array(member, { maxLength: 6 }),
    gaps,
  )
  .chain(([own, shared, others, around]) => {
    const members = [...own, ...shared, ...others]
    const repeats = [...own, ...shared].map(({ entry: [key] }): Member => ({
      text: `${JSON.stringify(key)}:[1.0]`,
      entry: [key, [1]],
    }))
    return fc
      .tuple(fc.subarray(repeats), fc.shuffledSubarray(members, { minLength: members.length }))
      .map(([first, rest]) => spelledObject([...first, ...rest], around))
  })

const parseUnspoilt: (text: string) => object = runInNewContext('JSON.parse')

/**
 * Returns what a receiver reads from a body. A key with a backslash would spoil JSON.parse for all other
 * users of its realm. So `parseJson` reads the texts that might have such a key. Other tests compare
 * `parseJson` with what texts mean.
 */
export function parseBody(text: string): object {
  if (!text.includes('\\\\')) return parseUnspoilt(text)
  const result = parseJson(text)
  return Object(result.ok ? result.value : undefined)
}
