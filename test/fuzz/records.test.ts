import assert from 'node:assert/strict'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { enter } from '../../src/message/enter.ts'
import type { Origin } from '../../src/message/entered.ts'
import { defaultLimits, type MessageLimits } from '../../src/message/limits.ts'
import { attributesFields } from '../../src/message/message-schemas.ts'
import { refusalReasons } from '../../src/message/dead-letter-reasons.ts'
import { enterParsed, meaningOf } from '../support/enter-parsed.ts'
import { fuzz, fuzzTimeoutMs } from '../support/fuzz.ts'
import { damage, isUnpolluted, shortest, timeOf } from '../support/mutation.ts'
import { Random } from '../support/random.ts'
import { parseBody } from '../unit/message/json-text.ts'

/** Messages as SDKs send them. The tests change them a little, so that most of the structure stays. */
const samples = [
  '{"type":"track","userId":"u1","anonymousId":null,"event":"Order Completed","messageId":"m-1","timestamp":"2024-02-29T23:59:59.999Z","properties":{"order_id":"50314b8e","total":27.5,"revenue":25.00,"currency":"USD","products":[{"product_id":"507f","sku":"45790-32","price":19,"quantity":1,"category":"Games"},{"product_id":"505b","price":3.5e0}]},"context":{"ip":"::1","library":{"name":"analytics-go","version":"3.0.0"},"locale":"en-US","userAgent":"Mozilla/5.0","page":{"path":"/a","referrer":"","search":"?q=1","title":"A \\"B\\"","url":"https://example.com/a"}},"integrations":{"All":true,"Webhooks":{"a":1}}}',
  '{"type":"identify","anonymousId":"a","traits":{"email":"a@example.com","name":"J\\u00f6rg \\ud83d\\ude00","address":{"city":"Köln","postalCode":"01"},"logins":5,"tags":["a","b",null,true]},"timestamp":"2009-11-10T23:00:00+0000"}',
  '{"type":"group","userId":"u","groupId":"g","traits":{"employees":329,"plan":"enterprise","__proto__":{"x":1}}}',
  '{"type":"alias","previousId":"old","userId":"new","User ID":"","Previous ID":null}',
  '{"type":"page","userId":"u","name":"Home","properties":{"2":2,"1":1,"":0},"version":2}',
  '{"type":"screen","userId":"","anonymousId":"a","name":"Main","context":{"device":{"id":"B5372DB0","model":"iPhone7,2"},"os":{"name":"iOS","version":"8.1.3"}}}',
  '{"type":"delete","userId":"u","messageId":"delete-1","timestamp":"2012-12-02T00:30:08.276Z"}',
].map((text) => Buffer.from(text))

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+|\s+/g
const fields = [
  'type',
  'userId',
  'anonymousId',
  'messageId',
  'timestamp',
  'event',
  'groupId',
  'previousId',
  'User ID',
]
const moreFields = [
  'Previous ID',
  'context',
  'integrations',
  'properties',
  'traits',
  'version',
  '__proto__',
  'toJSON',
]
const keys = [
  ...fields,
  ...moreFields,
  'constructor',
  '',
  '0',
  '1',
  'a\\\\',
  '\\\\',
  '\\n',
  '\\u005f',
  '\\ud800',
].map((key) => `"${key}"`)
const numbers = [
  '0',
  '-0',
  '1E5',
  '9007199254740993',
  '1e21',
  '5e-324',
  '0.1e1',
  '1'.repeat(300),
  '1e-400',
  '-1.50',
]
const texts = [
  '""',
  '"\\ud800"',
  '"\\u0000"',
  '"\u2028"',
  '"2024-02-30"',
  '"2016-12-31T23:59:60Z"',
  '"page"',
  '"{["',
]
const containers = [
  '[]',
  '{}',
  '{"__proto__":{"a":1}}',
  '{"a":[{"b":[{"c":[{}]}]}]}',
  '[[[[[[[[[[[[]]]]]]]]]]]]',
]
const values = [...numbers, ...texts, ...containers, 'null', 'true', 'false']
const wrong = [
  '1e400',
  '-1e309',
  '9'.repeat(400),
  '01',
  'NaN',
  '"\\x"',
  "'a'",
  '[1,]',
  '"\u0001"',
  '\ufeff',
  '\u00a0',
  '}',
  '{',
  ',',
]
const spaces = [' ', '\n\t', '\r']

/**
 * Returns a JSON text with a few tokens changed. Most of these texts are still JSON, and many are still
 * messages.
 */
function rewrite(random: Random, text: string): string {
  const all: string[] = text.match(tokens) ?? []
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(all.length)
    const token = all[at] ?? ''
    const isDamaged = random.oneIn(10)
    if (isDamaged && random.oneIn(2)) all[at] = random.pick(wrong)
    else if (isDamaged) all.splice(at, 1 + random.below(4))
    else if (random.oneIn(6)) all.splice(at, 0, random.pick(spaces))
    else if (token === '{' && all[at + 1] !== '}')
      all.splice(at + 1, 0, random.pick(keys), ':', random.pick(values), ',')
    else if (all[at + 1] === ':') all[at] = random.oneIn(3) ? escaped(token) : random.pick(keys)
    else if (/^["\w-]/.test(token)) all[at] = valueFor(random, token)
  }
  return all.join('')
}

function valueFor(random: Random, token: string): string {
  return random.oneIn(2) ? random.pick(values) : wrapped(random, escaped(token))
}

function escaped(token: string): string {
  if (!token.startsWith('"')) return token
  return token.replace(/[a-z]/, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)
}

function wrapped(random: Random, token: string): string {
  const levels = random.below(random.pick([2, 3, 12, 120]))
  return random.oneIn(2)
    ? `${'['.repeat(levels)}${token}${']'.repeat(levels)}`
    : `${'{"a":'.repeat(levels)}${token}${'}'.repeat(levels)}`
}

/** Returns a `page` message with many keys. Some of the keys repeat. */
function many(random: Random): string {
  const count = 1 + random.below(random.pick([90, 110, 300]))
  const name = (index: number) => `"${random.oneIn(9) ? random.below(50) : `k${index}`}"`
  const members = Array.from({ length: count }, (_, index) => `${name(index)}:${random.pick(values)}`).join(
    ',',
  )
  return `{"type":"page","userId":"u",${random.oneIn(2) ? `"n":{${members}}` : members}}`
}

function input(random: Random, corpus: readonly Buffer[]): Buffer {
  const from = random.pick(corpus)
  switch (random.below(10)) {
    case 0:
      return damage(random, from, corpus)
    case 1:
      return random.bytes(random.below(60))
    case 2:
      return Buffer.from(many(random))
    default:
      return Buffer.from(rewrite(random, from.toString()))
  }
}

const origin: Origin = { topic: 'sluice.events', partition: 3, offset: 42, timestampMs: 1_700_000_000_000 }
const elsewhere: Origin = { topic: 'other', partition: 0, offset: 7, timestampMs: 0 }
const tight: MessageLimits = { maxBytes: 4_000, maxDepth: 10, maxKeys: 100 }

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function keysOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members: unknown[] = Object.values(value)
  return (
    (Array.isArray(value) ? 0 : members.length) +
    members.reduce<number>((sum, member) => sum + keysOf(member), 0)
  )
}

const rewritten = new Set([
  'version',
  'timestamp',
  'messageId',
  'context',
  'userId',
  'previousId',
  'User ID',
  'Previous ID',
])
const own = (object: object, key: string): unknown => Object.getOwnPropertyDescriptor(object, key)?.value

/**
 * `JSON.parse` of another V8 context. The values that it makes can't change the prototypes of this context.
 */
const parseElsewhere: (text: string) => unknown = runInNewContext('JSON.parse')
const utf8 = new TextDecoder('utf-8', { fatal: true })

function isJson(bytes: Buffer): boolean {
  try {
    parseElsewhere(utf8.decode(bytes))
    return true
  } catch {
    return false
  }
}

/** Checks that `enter`, which makes no values, has the result of parsing and writing the message. */
function checkMeaning(bytes: Buffer, limits: MessageLimits): void {
  if (bytes.length === 0 || bytes.length > limits.maxBytes) return
  assert.deepEqual(meaningOf(enter(bytes, origin, limits)), enterParsed(bytes, origin, limits))
}

/**
 * Checks what has to be true for any bytes. Uses the assertions of Node, because those of the test runner
 * would take most of the time.
 */
function check(bytes: Buffer, limits: MessageLimits): void {
  checkMeaning(bytes, limits)
  const result = enter(bytes, origin, limits)
  if (!result.ok) {
    assert.ok(refusalReasons.includes(result.reason))
    assert.match(result.detail, /^S(end|et) [^\n]*\.$/)
    if (result.reason === 'not_json' || result.reason === 'not_utf8') assert.ok(!isJson(bytes), 'it is JSON')
    return
  }
  const { body, type } = result.message
  const attributes = attributesFields[type]
  const text = body.toString()
  const read = parseBody(text)
  assert.equal(JSON.stringify(read), text)
  assert.ok(body.length <= limits.maxBytes)
  assert.ok(depthOf(read) <= limits.maxDepth)
  assert.ok(keysOf(read) <= limits.maxKeys)
  const again = enter(body, elsewhere, limits)
  assert.equal(again.ok && again.message.body.toString(), text)
  const sent = parseBody(utf8.decode(bytes))
  for (const key of Object.keys(sent)) {
    const isFilledIn = key === attributes && own(sent, key) === null
    if (!rewritten.has(key) && !isFilledIn)
      assert.equal(JSON.stringify(own(read, key)), JSON.stringify(own(sent, key)), key)
  }
  const mayBeThere = (key: string): boolean =>
    rewritten.has(key) || key === attributes || Object.hasOwn(sent, key)
  for (const key of Object.keys(read)) assert.ok(mayBeThere(key), key)
  if (attributes !== undefined) assert.match(JSON.stringify(own(read, attributes)), /^\{/)
}

/**
 * Returns the time limit for a message, in milliseconds. It is one millisecond, and half a microsecond for
 * each byte. The largest messages need a fraction of this.
 */
const mostMs = (bytes: Buffer) => 1 + bytes.length / 2_000

function fails(bytes: Buffer, limits: MessageLimits): unknown {
  try {
    check(bytes, limits)
    assert.ok(timeOf(() => enter(bytes, origin, limits), mostMs(bytes)) <= mostMs(bytes), 'it takes too long')
    return undefined
  } catch (error) {
    return error
  }
}

test(
  'whatever a record holds, it is entered in canonical form or refused for a reason, in good time',
  async () => {
    const seen = new Map<string, number>()
    await fuzz(({ seed, numRuns }) => {
      const random = new Random(seed)
      // Changed texts that are still JSON are added to the corpus, so that changes add up. Each seed starts
      // with a new corpus, so that only the seed decides what happens.
      const corpus: Buffer[] = [...samples]
      for (let run = 0; run < numRuns; run++) {
        const bytes = input(random, corpus)
        const limits = random.oneIn(2) ? tight : defaultLimits
        const error = fails(bytes, limits)
        if (error !== undefined) {
          const short = shortest(bytes, (candidate) => fails(candidate, limits) !== undefined)
          throw new Error(`${JSON.stringify(short.toString())} (base64 ${short.toString('base64')})`, {
            cause: error,
          })
        }
        const result = enter(bytes, origin, limits)
        const kind = result.ok ? 'ok' : result.reason
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
        if (bytes.length < 3_000 && random.oneIn(5) && isJson(bytes)) corpus.push(bytes)
      }
      expect(isUnpolluted()).toBe(true)
    })
    process.stdout.write(`records: ${[...seen].map(([kind, count]) => `${kind} ${count}`).join(', ')}\n`)
    expect(seen.size).toBeGreaterThan(10)
  },
  fuzzTimeoutMs,
)

test(
  'large records take no longer for their size than small ones',
  async () => {
    await fuzz(({ seed }) => {
      const random = new Random(seed)
      const unit = random.pick([
        ...values,
        ...keys.map((key) => `{${key}:0}`),
        `"${'\\"'.repeat(30)}"`,
        '[',
        '{"a":',
        '"\\u0041',
      ])
      const count = Math.floor(900_000 / (unit.length + 1))
      const text = `{"type":"page","userId":"u","n":[${Array.from({ length: count }, () => unit).join(',')}]}`
      const bytes = random.oneIn(3) ? damage(random, Buffer.from(text), samples) : Buffer.from(text)
      const tookMs = timeOf(() => enter(bytes, origin), mostMs(bytes))
      expect({
        what: `${count} times ${unit.slice(0, 100)}`,
        isSlow: tookMs > mostMs(bytes),
        tookMs,
      }).toMatchObject({
        isSlow: false,
      })
    })
  },
  fuzzTimeoutMs,
)
