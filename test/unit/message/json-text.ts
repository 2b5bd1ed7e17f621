import * as fc from 'fast-check'

/**
 * JSON as text, the way no serialiser of ours would write it: odd spaces, needless escapes, many spellings of a
 * number, repeated keys, keys like integers, `__proto__`, lone surrogates. No number in it is infinite.
 */

const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r\n  ')

const spelledString = fc
  .array(
    fc.oneof(
      fc.constantFrom('a', 'Z', '9', 'é', '漢', '😀', '\u2028', '\u007f', '/', 'null', '\ufeff'),
      fc.constantFrom('\\u0041', '\\u005f', '\\/', '\\"', '\\\\', '\\n', '\\u0000', '\\u001F', '\\u00e9'),
      fc.constantFrom('\\ud800', '\\uDC00', '\\ud83d\\ude00', '\\ude00\\ud83d'),
      fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text).slice(1, -1)),
    ),
    { maxLength: 5 },
  )
  .map((pieces) => `"${pieces.join('')}"`)

const spelledKey = fc.oneof(
  fc.constantFrom(
    '"__proto__"',
    '"__proto\\u005f_"',
    '"constructor"',
    '"prototype"',
    '"toJSON"',
    '"toString"',
  ),
  fc.constantFrom('"2"', '"10"', '"1"', '"\\u0030"', '"01"', '"-1"', '"4294967294"', '"4294967296"', '""'),
  fc.constantFrom('"a"', '"\\u0061"', '"b"', '"length"', '"version "'),
  spelledString,
)

const spelledNumber = fc.oneof(
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
    '1.7976931348623157e308',
  ),
  fc.constantFrom(
    '12345678901234567890',
    '0.1000',
    '100000000000000000000',
    '1e20',
    '123e-7',
    '9007199254740993',
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc
    .tuple(fc.integer(), fc.nat(9999), fc.integer({ min: -30, max: 30 }))
    .map(([a, b, c]) => `${a}.${b}e${c}`),
)

const spelledLiteral = fc.constantFrom('null', 'true', 'false')

const spelledList = (open: string, items: string[], close: string, gaps: string[]): string =>
  open + gaps.join('') + items.join(`${gaps[0] ?? ''},${gaps[1] ?? ''}`) + close

const gaps = fc.tuple(space, space)

const { member, jsonText } = fc.letrec<{ jsonText: string; member: string }>((tie) => ({
  jsonText: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    spelledLiteral,
    spelledNumber,
    spelledString,
    fc
      .tuple(fc.array(tie('jsonText'), { maxLength: 4 }), gaps)
      .map(([items, g]) => spelledList('[', items, ']', g)),
    fc
      .tuple(fc.array(tie('member'), { maxLength: 5 }), gaps)
      .map(([items, g]) => spelledList('{', items, '}', g)),
  ),
  member: fc
    .tuple(spelledKey, space, space, tie('jsonText'), space)
    .map(([key, a, b, value, c]) => `${key}${a}:${b}${value}${c}`),
}))

/** Any JSON value. */
export { jsonText }

const user = fc.constantFrom(
  ['"userId": "u1"'],
  ['"userId":"\\ud800"', '"anonymousId":null'],
  ['"userId":null', '"anonymousId":"a\\u0031"'],
  ['"userId":""', '"anonymousId" :"a"'],
)

const ownFields: fc.Arbitrary<string[]> = fc.oneof(
  user.map((ids) => ['"type":"identify"', ...ids, '"traits":{"__proto__":{"polluted":true},"n":1.0}']),
  user.map((ids) => ['"typ\\u0065":"track"', ...ids, '"event":"Signed \\u0055p"', '"properties":null']),
  user.map((ids) => ['"type" : "page"', ...ids, '"properties":{"2":2,"1":1}']),
  user.map((ids) => ['"type":"screen"', ...ids, '"name":"Home"']),
  user.map((ids) => ['"type":"group"', ...ids, '"groupId":"g"', '"traits":{"a":1,"a":2}']),
  fc.constantFrom<string[][]>(
    ['"type":"alias"', '"userId":"u"', '"previousId":"p"'],
    ['"type":"alias"', '"User ID":"u"', '"Previous ID":"p"', '"previousId":null'],
    ['"type":"alias"', '"User ID":"v"', '"previousId":"p"', '"userId":"u"'],
  ),
  fc.constantFrom<string[][]>(
    ['"type":"delete"', '"userId":"u"'],
    ['"type":"delete"', '"userId":"u"', '"version":2'],
  ),
)

const sometimes = (...fields: string[]) =>
  fc
    .option(fc.constantFrom(...fields), { nil: undefined })
    .map((field) => (field === undefined ? [] : [field]))

const sharedFields = fc
  .tuple(
    sometimes('"version":1', '"version" : 2.50', '"version":"1.1"', '"version":null'),
    sometimes('"timestamp":"2009-11-10T23:00:00+0000"', '"timestamp":null', '"timestamp":"2024-02-29"'),
    sometimes('"messageId":"m-\\ud800"', '"messageId":null', '"messageId":""'),
    sometimes('"context":{"__proto__":null,"ip":"::1"}', '"context":null', '"context":{}'),
    sometimes('"integrations":{"All":true,"__proto__":{"Webhooks":false}}', '"integrations":null'),
  )
  .map((fields) => fields.flat())

const fieldNames = /^"(?:type|version|timestamp|messageId|context|integrations|userId|anonymousId)"/

/** A message that is to be accepted, with fields of any name around and between its own; some of them repeated. */
export const messageText = fc
  .tuple(ownFields, sharedFields, fc.array(member, { maxLength: 6 }), space, space)
  .chain(([own, shared, others, a, b]) => {
    const valid = [...own, ...shared]
    const repeats = valid
      .filter((field) => fieldNames.test(field))
      .map((field) => `${field.split(':')[0]}:[1.0]`)
    return fc
      .tuple(
        fc.subarray(repeats),
        fc.shuffledSubarray([...valid, ...others], { minLength: valid.length + others.length }),
      )
      .map(([first, rest]) => `${a}{${[...first, ...rest].join(`${b},${a}`)}${b}}${a}`)
  })
