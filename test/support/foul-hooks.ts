import * as fc from 'fast-check'
import type { Trial } from './hook-trials.ts'

/** Hooks that are well-formed, and hooks that an attacker or a faulty copy would write. */

type HeaderEntry = readonly [name: string, value: string]

/** The parts from which harmful values, paths and ids are put together. */
const viciousParts: readonly string[] = [
  ['\r\n', '\n', '\r', '\0', '\t', ' ', '\u007f', '\u0085', '\u00a0', '\u2028', '\ufeff', '\u00ad'],
  // The low bytes of these characters are line breaks and a space. A program that cuts characters to their
  // low bytes would send those.
  ['\u010d\u010a', '\u0a0d', '\u0120'],
  ['\ud800', '\udc00', 'x'.repeat(1_000), 'ü'.repeat(700)],
  'é € 漢 😀 % %zz %00 %0d%0a %2e%2e %20 .. / // ? # & = ; @ : \\ , a B 0 . -'.split(' '),
  '" \' < > ` { } | ^ [ ] $ ${ ${CATALOG_X}'.split(' '),
  [' HTTP/1.1\r\nHost: evil\r\n\r\n', '\r\nContent-Length: 0', '\r\nTransfer-Encoding: chunked'],
  ['\r\n\r\nPOST /smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'],
].flat()

const foulNames: readonly string[] = [
  'Host host Content-Length CONTENT-LENGTH content_length Transfer-Encoding transfer_encoding'.split(' '),
  'Connection Keep-Alive Upgrade Expect TE Trailer Proxy-Authorization Proxy-Connection'.split(' '),
  'HTTP2-Settings Content-Type Content-Encoding User-Agent X-Signature x_signature webhook-id'.split(' '),
  ['', ' ', 'X Y', 'X:Y', 'X-A\r\nX-B', 'X-A\n', '\0', 'X\0', 'Ü', 'X-\u010d\u010a', ':', 'X-A: b\r\nX'],
].flat()

/** Names that look harmful but are allowed. */
const strangeNames = ['__proto__', 'constructor', 'toString', 'Authorization', 'Cookie', '-', '_', '~']

/** Returns beginnings of URLs, of the server and of other addresses. Some of the spellings are valid. */
function startsOf(port: number): readonly string[] {
  const there = `127.0.0.1:${port}`
  return [
    [`http://${there}`, `HTTP://${there}`, `http://127.0.0.1:00${port}`, `http://127.1:${port}`],
    [`http://2130706433:${port}`, `http://0x7f.0.0.1:${port}`, `http://0177.1:${port}`],
    [`http://１２７.0.0.1:${port}`, `http://127.0.0.1.:${port}`, `http://127%2e0.0.1:${port}`],
    [`http://user:password@${there}`, `http://@${there}`, `http://a@b@${there}`, `http://${there}:${port}`],
    [`http:\\\\${there}`, `http:/${there}`, `http:${there}`, `//${there}`, `ftp://${there}`],
    [` http://${there}`, `ht\ntp://${there}`, `http://127.0.\t0.1:${port}`],
    ['http://127.0.0.1:25', 'http://127.0.0.1:0', 'http://127.0.0.1:65536', 'http://a.:22', 'http://a.'],
    ['http://a..b', `http://${'a'.repeat(64)}`, `http://${'a.'.repeat(130)}a`, 'http://xn--a', 'http://a b'],
    ['http://[::1', 'http://[::1]]', 'http://a"b', 'http://a{b}', 'http://\ud800', 'http://%00'],
    ['', 'http://', 'https://', 'javascript:', 'file://'],
  ].flat()
}

const anything = fc.string({ unit: 'binary', maxLength: 20 })
const vicious = fc.array(fc.constantFrom(...viciousParts), { maxLength: 6 }).map((parts) => parts.join(''))

const goodName = fc
  .string({ unit: fc.constantFrom(...'a b X Y 0 9 - _ ! # $ % & * + . ^ ` | ~'.split(' ')), maxLength: 30 })
  .map((name) => `X-${name}`)

/** Visible characters of Latin-1. Spaces are only inside of the value. */
const goodValue = fc
  .array(fc.oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0xa0, max: 0xff })), {
    maxLength: 40,
  })
  .map((codes) => String.fromCharCode(...codes).replaceAll(/^ +| +$/g, ''))

const goodHeader: fc.Arbitrary<HeaderEntry> = fc.tuple(goodName, goodValue)

const foulHeader: fc.Arbitrary<HeaderEntry> = fc.oneof(
  fc.tuple(fc.oneof(fc.constantFrom(...foulNames), fc.constantFrom(...strangeNames), anything), goodValue),
  fc.tuple(goodName, fc.oneof(anything, vicious)),
  fc.tuple(goodName, fc.constantFrom('x'.repeat(8_100), 'x'.repeat(8_200), ' ', '\t', 'x\ty')),
)

/**
 * Returns lists of headers without repeated names. A rule of the catalog forbids repeated names. It says
 * nothing about which headers can be sent.
 */
function headersOf(entry: fc.Arbitrary<HeaderEntry>): fc.Arbitrary<HeaderEntry[]> {
  return fc.uniqueArray(entry, { selector: ([name]) => name.toLowerCase(), maxLength: 6 })
}

function goodUrl(port: number): fc.Arbitrary<string> {
  const query = fc.webQueryParameters().map((text) => (text === '' ? '' : `?${text}`))
  return fc.tuple(fc.webPath(), query).map(([path, search]) => `http://127.0.0.1:${port}${path}${search}`)
}

function foulUrl(port: number): fc.Arbitrary<string> {
  const separator = fc.constantFrom('/', '/', '/', '?', '#', '')
  return fc
    .tuple(fc.constantFrom(...startsOf(port)), separator, fc.oneof(anything, vicious))
    .map((parts) => parts.join(''))
}

/** Returns trials with hooks at a server on a port of 127.0.0.1. About half of the hooks are well-formed. */
export function trialsAt(port: number): fc.Arbitrary<Trial> {
  const messageId = fc.oneof(fc.uuid(), anything, vicious)
  const good = fc.record({ url: goodUrl(port), headers: headersOf(goodHeader), messageId })
  const foul = fc.record({
    url: fc.oneof(goodUrl(port), foulUrl(port)),
    headers: headersOf(fc.oneof({ weight: 3, arbitrary: goodHeader }, foulHeader)),
    messageId,
  })
  return fc.oneof(good, foul)
}
