import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { measureMasks } from '../../../bench/refusals/masks.ts'
import { isSameJson } from '../../../src/audience/decide.ts'
import { readChange } from '../../../src/audience/records/change-record.ts'
import { propertyName } from '../../../src/audience/records/property-name.ts'
import { escapeId, unescapeId } from '../../../src/audience/store/store-keys.ts'
import { oddityOf } from '../../../src/audience-files/odd-ids.ts'
import { headerNameBreach, headerValueBreach, parseHookUrl } from '../../../src/catalog/hook-rules.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import { secretBreach, standardSecretBreach } from '../../../src/catalog/secret-rules.ts'
import { fillIn } from '../../../src/catalog/variables.ts'
import { createValuesOf } from '../../../src/delivery-log/indexed-values.ts'
import { answerLines, plain } from '../../../src/delivery-log/lines.ts'
import { judgeConnect } from '../../../src/delivery/connect/connect-answer.ts'
import { KeptAnswer } from '../../../src/delivery/send/kept-answer.ts'
import { parseRetryAfter } from '../../../src/http/retry-after.ts'
import { webhookIdOf } from '../../../src/delivery/signature.ts'
import { plainAddress } from '../../../src/http/client-address.ts'
import { preflightHeaders } from '../../../src/gateway/http/browser.ts'
import { RequestWork } from '../../../src/gateway/messages/request-work.ts'
import { scanBatch } from '../../../src/gateway/messages/scan-body.ts'
import { SharedObject, withIp } from '../../../src/gateway/messages/shared-object.ts'
import { keysIn, keysOf } from '../../../src/gateway/messages/write-key.ts'
import { findExcess } from '../../../src/message/depth-and-keys.ts'
import { enter } from '../../../src/message/enter.ts'
import { globOf } from '../../../src/message/glob.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import { filtering } from '../../../src/message/message-filter.ts'
import { RawObject } from '../../../src/message/message-outline.ts'
import { parseOrigin } from '../../../src/message/record-headers.ts'
import { parseTimestamp } from '../../../src/message/timestamp.ts'
import { decodeRetryState } from '../../../src/retry/retry-state.ts'
import { route } from '../../../src/routing/route.ts'
import { createAvroReader } from '../../../src/schema-registry/avro.ts'
import { parseAvroSchema } from '../../../src/schema-registry/avro-schema.ts'
import { compileJsonSchema, createJsonReader } from '../../../src/schema-registry/json-schema.ts'
import { secretsOf } from '../../../src/secrets/secret-texts.ts'
import { withoutSecrets } from '../../../src/secrets/without-secrets.ts'
import { contextIn } from '../../../src/tracing/carrier.ts'
import { costRatio, growthOf, leastCpuMs, leastOf } from '../../support/cost.ts'
import { rewriteOrdinaryBody } from '../../support/ordinary-body.ts'
import { encodeBatch, encodeRecords, readBatches } from '../../support/raw-batch.ts'

// Nothing that a customer, a receiver or a producer writes may cost more than in proportion to its length.
// Each test makes the input eight times as long. Linear work then takes eight times as long, and quadratic
// work 64 times.

/**
 * A time may grow this many times. That is nearly three times as much as linear work needs, and nearly a third
 * of what quadratic work needs.
 */
const most = 22

/** Returns how the time of `make(n)` grows, up to `to`. */
function growth(make: (n: number) => () => unknown, to: number): number {
  return growthOf(make, to, most)
}

const filled = (part: string, n: number): string => part.repeat(Math.ceil(n / part.length))
const many = <T>(n: number, of: (index: number) => T): T[] => Array.from({ length: n }, (_, at) => of(at))

/** Texts of which all texts below are made by repeating. A pattern that backtracks is slow for one of them. */
const parts = ['a', '1', ' ', 'a ', '/', '%41', '\\', '"', 'é\u0301']

const noWork = new RequestWork(0, 0)
const unlimited = { ...defaultLimits, maxKeys: Infinity }
let names = 0

/** Returns a name that nothing had before, because the names of properties are remembered. */
function freshName(name: string): { readonly key: undefined; readonly name: string } {
  return { key: undefined, name: `${name}${names++}` }
}

const hostile = secretsOf([`Bearer ${filled('a', 4_000)}b ${filled('a', 4_000)}`, 'x1y2z3w4', '"""""""'], '/')

describe.each<[what: string, work: (text: string) => unknown, own?: readonly string[]]>([
  [
    'an answer, without its secrets',
    (text) => withoutSecrets(Buffer.from(text), hostile),
    ['&a', '&amp;', 'x1y2z3w4 '],
  ],
  [
    'an answer that nearly is a secret',
    (text) => {
      const third = text.slice(0, text.length / 3)
      return withoutSecrets(Buffer.from(text), [`${third}b${third}`])
    },
  ],
  [
    'secrets that are looked for',
    (text) => withoutSecrets(Buffer.from('aaaa%'), [text]),
    ['&a', 'x1y2z3w4 '],
  ],
  ['the secrets of a header', (text) => secretsOf([text, `Basic ${text}`], '/')],
  ['the secrets of a URL', (text) => secretsOf([], `/in?${text}`), ['&a', '&']],
  ['Retry-After', (text) => [parseRetryAfter(text, 0), parseRetryAfter(`${text}x`, 0)]],
  ["a proxy's answer", (text) => judgeConnect(500, { 'proxy-status': text, 'x-squid-error': text }), [';  ']],
  ['an answer in the output of a command', (text) => [answerLines(text), plain(text)]],
  ['the path of a URL', (text) => parseHookUrl(`https://a.example/${text}`)],
  ['the host of a URL', (text) => parseHookUrl(`https://${text}`), [':', '@', '.']],
  ['the name of a header', headerNameBreach, ['_']],
  ['the value of a header', (text) => [headerValueBreach(text), headerValueBreach(`${text}a`)]],
  ['a secret', (text) => [secretBreach(text), standardSecretBreach(`whsec_${text}`)]],
  ['variables', (text) => fillIn(text, { CATALOG_A: 'x' }), ['${CATALOG_A}', '$']],
  ['a write key in a header', (text) => [keysOf(text), keysOf(`Basic ${text}`), keysOf(`Basic ${text} x`)]],
  [
    'a write key in a body',
    (text) => [...keysIn(Buffer.from(text))],
    ['"writeKey":"a",', '"w\\u0072', '\\u00'],
  ],
  ['the address of a client', plainAddress, ['1.', '[1', '::']],
  ['the headers that a browser asks for', (text) => preflightHeaders(text, text), ['a,', 'a://a']],
  ['a timestamp', (text) => [parseTimestamp(text), parseTimestamp(`2020-01-01T00:00:00.${text}`)]],
  ['the origin of a record', (text) => [parseOrigin(text), parseOrigin(`${text}x`)], ['/1', '1/']],
  ['the headers of a trace', (text) => contextIn({ traceparent: text, tracestate: text })],
  ['the name of an audience', (text) => propertyName(freshName(text)), ['aBC', 'IDs', 'İ']],
  ['an id in a key of the store', (text) => unescapeId(escapeId(text)), ['\u007f', '\ud7ff', '\ud800']],
  ['an id in a header', webhookIdOf],
  [
    'an id in a file of users',
    oddityOf,
    [' 1', '--', "'", '.', '(1,', 'a: ', 'total', '[^', '\ud83d\udc69', '="', '{a'],
  ],
  [
    'brackets in a message',
    (text) => findExcess(text, {}, { maxDepth: Infinity, maxKeys: Infinity }),
    ['{[', '{', '[', '"{'],
  ],
  [
    'what a batch has for all of its messages',
    (text) => [
      scanBatch(Buffer.from(`{"batch":[],"context":[1234567890123456789${text}`), defaultLimits, noWork),
      new SharedObject(withIp(new RawObject(JSON.stringify({ [text]: text })), text), defaultLimits).asBytes,
    ],
    [',9007199254740993', ',1e', ',{}'],
  ],
  [
    'the members of the context of a batch',
    (text) => {
      const context = new RawObject(`{${text}"ip":1}`)
      return new SharedObject(withIp(context, '192.0.2.1'), unlimited).asBytes
    },
    ['"a":1,', '"1":{},', '"a":{"b":[1e999]},'],
  ],
])('%s', (_, work, own = []) => {
  test('costs no more than in proportion to its length', () => {
    const growths = [...parts, ...own].map((part) => {
      const make = (n: number) => {
        const text = filled(part, n)
        return () => work(text)
      }
      return [part, growth(make, 2 ** 18)] as const
    })
    expect(growths.filter(([, times]) => times >= most)).toEqual([])
  })
})

const origin = { topic: 'events', partition: 0, offset: 0, timestampMs: 0 }
const limits = { maxBytes: 2 ** 30, maxDepth: 100, maxKeys: 2 ** 30 }
const listed = (n: number, of: (index: number) => string): string => many(n, of).join(',')
const track = (more: string): Buffer =>
  Buffer.from(`{"type":"track","userId":"u","event":"e","properties":{}${more}}`)

describe('a message costs no more than in proportion to its length if it has', () => {
  test.each<[what: string, of: (n: number) => string]>([
    ['many keys', (n) => `{${listed(n, (at) => `"k${at}":1`)}}`],
    ['one key many times', (n) => `{${listed(n, () => '"k":1')}}`],
    ['keys of digits', (n) => `{${listed(n, (at) => `"${at}":1`)}}`],
    ['escaped keys', (n) => `{${listed(n, (at) => String.raw`"\u0061${at}":1`)}}`],
    ['many keys after a backslash as a key', (n) => `{"\\\\":1,${listed(n, (at) => `"k${at}":1`)}}`],
    ['many objects after a backslash as a key', (n) => `[{"\\\\":1},${listed(n, () => '{}')}]`],
    ['many keys that are a backslash', (n) => `[${listed(n, () => String.raw`{"\\":1}`)}]`],
    ['many keys __proto__', (n) => `{${listed(n, (at) => `"__proto__":{"a${at}":1}`)}}`],
    ['many objects', (n) => `[${listed(n, () => '{}')}]`],
    ['many lists', (n) => `[${listed(n, () => '[]')}]`],
    ['many levels', (n) => '['.repeat(n)],
    ['many deep lists', (n) => `[${listed(n, () => '['.repeat(50) + ']'.repeat(50))}]`],
    ['many nulls and an infinite number', (n) => `[${listed(n, () => 'null')},1e999]`],
    ['many digits', (n) => `[${'1'.repeat(n)}]`],
    ['a number with many zeros', (n) => `[0.${'0'.repeat(n)}1]`],
    ['many long numbers', (n) => `[${listed(n, () => '1234567890123456789')}]`],
    ['many spaces', (n) => `[${' '.repeat(n)}]`],
    ['spaces after each string', (n) => `[${listed(n, () => String.raw`"\\"     `)}]`],
    ['escapes in a text, and spaces after it', (n) => `["${String.raw`\n`.repeat(n)}"${' '.repeat(n)}]`],
    ['quotation marks in a text', (n) => `"${String.raw`\"`.repeat(n)}"`],
  ])('%s', (_, of) => {
    expect(
      growth((n) => {
        const value = track(`,"more":${of(n)}`)
        return () => enter(value, origin, limits)
      }, 2 ** 15),
    ).toBeLessThan(most)
  })

  test.each(['userId', 'messageId', 'event', 'timestamp', 'type'])('a long %s', (field) => {
    for (const part of ['a', '1', 'é🙂', '\\'])
      expect(
        growth((n) => {
          const message = { type: 'track', userId: 'u', event: 'e', [field]: filled(part, n) }
          const value = Buffer.from(JSON.stringify(message))
          return () => enter(value, origin, limits)
        }, 2 ** 18),
      ).toBeLessThan(most)
  })

  test('a text that is tried on patterns', () => {
    const patterns = ['*a*c*', '*a*a*ab'].map(globOf)
    expect(
      growth((n) => {
        const text = filled('a', n)
        return () => patterns.map((isMatch) => isMatch(text))
      }, 2 ** 10),
    ).toBeLessThan(most)
  })

  test('many headers of its record', () => {
    expect(
      growth((n) => {
        const headers = many(n, (at) => [`h${at}`, null] as const)
        const batch = encodeBatch(encodeRecords([{ value: 'a', headers }]), { count: 1 })
        // A batch without compression is read before the call returns.
        return () => void readBatches(batch)
      }, 2 ** 17),
    ).toBeLessThan(most)
  })

  test('values that are indexed, in many lists and objects', () => {
    const forms: readonly ((n: number) => string)[] = [
      (n) => `[${listed(n, (at) => `{"k${at}":1,"b":${at}}`)}]`,
      (n) => `[${listed(n, () => `${'['.repeat(50)}{"b":""}${']'.repeat(50)}`)}]`,
      (n) => `{${listed(n, (at) => `"k${at}":{"a":1}`)},"b":1}`,
    ]
    for (const of of forms)
      expect(
        growth((n) => {
          const text = `{"properties":{"a":${of(n)}}}`
          const paths = many(8, () => 'properties.a.b')
          return () => createValuesOf(paths, () => '')(Buffer.from(text))
        }, 2 ** 12),
      ).toBeLessThan(most)
  })

  test('many integrations', () => {
    expect(
      growth((n) => {
        const value = track(`,"integrations":{${listed(n, (at) => `"i${at}":true`)}}`)
        return () => enter(value, origin, limits)
      }, 2 ** 14),
    ).toBeLessThan(most)
  })
})

describe('a list costs no more than in proportion to its length if it has', () => {
  test('names of events in a filter', () => {
    expect(
      growth((n) => {
        const events = many(n, (at) => `e${at}`)
        return () => filtering('track', track(''))({ types: undefined, events })
      }, 2 ** 18),
    ).toBeLessThan(most)
  })

  test('destinations with a filter', () => {
    expect(
      growth((n) => {
        const filter = { types: undefined, events: ['Bought'] }
        const destinations = many(n, (at) => ({ id: `d${at}`, state: 'on' as const, filter }))
        return () => route({ type: 'track', body: track('') }, destinations)
      }, 2 ** 15),
    ).toBeLessThan(most)
  })

  test.each(['failed-hooks', 'unsent-hooks', 'not-before', 'hook-contents', 'property'])(
    'entries of %s',
    (name) => {
      expect(
        growth((n) => {
          const headers = { [name]: `[${listed(n, (at) => `"h${at}"`)}]` }
          return () => decodeRetryState(headers)
        }, 2 ** 15),
      ).toBeLessThan(most)
    },
  )
})

const place = { ...origin, spaceId: 's', origin: { topic: 't', partition: 0, offset: 0 } }
const trait = { type: 'trait', traitId: 't', traitName: 'T', userId: 'u', value: 1 }
const sync = { type: 'sync', audienceId: 'a', audienceName: 'A', syncId: 's', part: 0, parts: 1 }
const changedAt = '1970-01-01T00:00:00Z'

describe('a change of an audience costs no more than in proportion to its length if it has', () => {
  test.each<[what: string, of: (n: number) => object]>([
    ['a long value', (n) => ({ ...trait, changedAt, value: many(n, (at) => ({ a: at })) })],
    ['many fields', (n) => ({ ...trait, changedAt, ...Object.fromEntries(many(n, (at) => [`k${at}`, at])) })],
    ['a long name', (n) => ({ ...trait, changedAt, traitName: filled('aB', n) })],
    ['a long user id', (n) => ({ ...trait, changedAt, userId: filled('é', n) })],
    ['many users', (n) => ({ ...sync, snapshotAt: changedAt, userIds: many(n, (at) => `u${at}`) })],
    ['users that are no texts', (n) => ({ ...sync, snapshotAt: changedAt, userIds: many(n, (at) => at) })],
  ])('%s', (_, of) => {
    expect(
      growth((n) => {
        const value = Buffer.from(JSON.stringify(of(n)))
        return () => readChange(value, place, { limits, partitions: 3 })
      }, 2 ** 15),
    ).toBeLessThan(most)
  })

  test('a value whose fields have another order', () => {
    expect(
      growth((n) => {
        const fields = many(n, (at) => [`k${at}`, at] as const)
        const [one, other] = [fields, fields.toReversed()].map((list) =>
          JSON.stringify(Object.fromEntries(list)),
        )
        return () => isSameJson(one ?? '', other ?? '')
      }, 2 ** 14),
    ).toBeLessThan(most)
  })

  test('a name with 1,000 marks on one letter', () => {
    // The order of the marks is found by comparing each with each. This is why names have a limit.
    const mostMs = 50
    const name = `a${filled('\u0315\u0300', 995)}`
    expect(leastCpuMs(mostMs, () => propertyName(freshName(name)))).toBeLessThan(mostMs)
  })
})

describe('a schema costs no more than in proportion to its length, or to that of a value, if it has', () => {
  test('many types, symbols and uses of them', () => {
    expect(
      growth((n) => {
        const type = { type: 'fixed', size: 1, logicalType: 'decimal' }
        const types = many(n, (at) => ({ ...type, name: `web-shop.F${at}` }))
        const symbols = { type: 'enum', name: 'E', symbols: many(n, (at) => `S${at}`) }
        const schema = [...types, symbols, ...many(n, () => 'E')]
        return () => createAvroReader(parseAvroSchema(schema))
      }, 2 ** 14),
    ).toBeLessThan(most)
  })

  test('many items that have to be unique', () => {
    const read = createJsonReader(compileJsonSchema({ type: 'array', uniqueItems: true }, []))
    expect(
      growth((n) => {
        const items = Buffer.from(JSON.stringify(many(n, (at) => ({ at }))))
        return () => read(items)
      }, 2 ** 15),
    ).toBeLessThan(most)
  })
})

const destination = (at: number, more: object = {}): object => ({
  id: `d${at}`,
  sources: ['s'],
  hooks: [{ url: `https://a${at}.example/` }],
  ...more,
})
const oneSource = [{ id: 's' }]
const oneDestination = (more: object): object => ({
  sources: oneSource,
  destinations: [destination(0, more)],
})
const hooked = (headers: object): object =>
  oneDestination({ hooks: [{ url: 'https://a.example/', headers }] })
const keyed = (n: number, key: (at: number) => string): object =>
  Object.fromEntries(many(n, (at) => [key(at), 'v']))

/** An id that is so long that only the reader of JSON reads a catalog with many of them. */
const longId = (at: number): string => `s${at}-${filled('x', 80)}`

describe('a catalog costs no more than in proportion to its length if it has', () => {
  test.each<[what: string, to: number, of: (n: number) => object]>([
    [
      'destinations',
      2 ** 10,
      (n) => ({ sources: oneSource, destinations: many(n, (at) => destination(at)) }),
    ],
    ['ids twice', 2 ** 10, (n) => ({ sources: oneSource, destinations: many(n, () => destination(0)) })],
    [
      'write keys',
      2 ** 10,
      (n) => ({ sources: many(n, (at) => ({ id: `s${at}`, writeKeys: [`k${at}`] })), destinations: [] }),
    ],
    [
      'unknown sources',
      2 ** 15,
      (n) => ({
        sources: many(n, (at) => ({ id: longId(at) })),
        destinations: [destination(0, { sources: many(n, (at) => `x${at}`) })],
      }),
    ],
    ['names of headers', 2 ** 15, (n) => hooked(keyed(n, (at) => `X-${at}`))],
    ['faulty names of headers', 2 ** 11, (n) => hooked(keyed(n, (at) => `X ${at}`))],
    ['unknown keys', 2 ** 11, (n) => oneDestination(keyed(n, (at) => `x${at}`))],
    ['a long value of a header', 2 ** 18, (n) => hooked({ X: filled('a é', n) })],
    ['a long name', 2 ** 18, (n) => oneDestination({ name: filled('e\u0301🙂', n) })],
    ['a long secret', 2 ** 18, (n) => oneDestination({ sharedSecret: filled('${', n) })],
    ['names of events', 2 ** 13, (n) => oneDestination({ filter: { events: many(n, (at) => `e${at}`) } })],
  ])('%s', (_, to, of) => {
    expect(
      growth((n) => {
        // A JSON text that has faults is read as YAML too, unless it is long.
        const text = JSON.stringify(of(n))
        return () => parseCatalog(text, { file: 'catalog', allowAddresses: [] })
      }, to),
    ).toBeLessThan(most)
  })
})

test('a mask of 10 KiB of an answer, with 8 KiB of secrets, costs a fraction of a millisecond', () => {
  // On a quiet machine, it is less than 0.5 ms (`npm run bench -- refusals`).
  const mostMs = 5
  expect(leastOf(mostMs, () => measureMasks({ rounds: 1 }).worst_mask_ms)).toBeLessThan(mostMs)
})

test('a mask of the users of a batch costs no more than the bytes of the batch', () => {
  const userIds = many(1_000, () => Buffer.from(randomUUID()))
  const answer = Buffer.from(`no such user: ${String(userIds[500])}; `.repeat(100))
  const keep = (): string => {
    const kept = new KeptAnswer(2_048, [], { headers: [], userId: null, userIds })
    kept.begin({ kind: 'answer', status: 500 }, undefined)
    kept.take(answer)
    return Buffer.from(kept.outcome()?.body ?? []).toString()
  }
  expect(keep()).toMatch(/^no such user: \[redacted\]; no such user: \[redacted\]/)
  // It is less than half a body. A search for all users would cost six.
  const mostBodies = 2
  expect(costRatio(keep, rewriteOrdinaryBody, mostBodies)).toBeLessThan(mostBodies)
})
