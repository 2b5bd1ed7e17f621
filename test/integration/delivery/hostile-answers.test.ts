import { connect } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { OutboundProxy } from '../../../src/delivery/connect/proxy.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { judge, type VerdictKind } from '../../../src/delivery/outcomes/verdict.ts'
import { createAuthority } from '../../support/certificates.ts'
import {
  atFirst,
  type Behaviour,
  belowTls,
  dripping,
  drips,
  early,
  endlessly,
  floods,
  goodStatus,
  type Hostile,
  type HostileReceiver,
  instead,
  onceHeard,
  says,
  startHostileReceiver,
} from '../../support/hostile-receiver.ts'
import { until } from '../../support/until.ts'

/**
 * Tests of answers of hostile endpoints. Each row of the tables has a server, and therefore a pool, that no
 * other row uses. The first request of a row gets the hostile answer. The next request must be delivered at
 * once, by the same pool.
 */

/** The deadline of most rows, in milliseconds. Rows with the real deadline (`realMs`) say so. */
const shortMs = 1_000
const realMs = 5_000
/**
 * The time that a busy machine may add to a deadline, in milliseconds. `atOnceMs` is the limit for "at once"
 * on such a machine.
 */
const slackMs = 150
const atOnceMs = 500
/**
 * The most bytes that an endpoint may send to us in one row. They include the buffers of the kernel on both
 * sides. `mostGrownBytes` is the limit on the growth of our memory.
 */
const mostBytesSent = 16 * 2 ** 20
const mostGrownBytes = 64 * 2 ** 20

type Row = {
  name: string
  does: Behaviour
  tls?: true
  verdict: VerdictKind
  /** The whole outcome of the first request. Some codes are given as a pattern. */
  outcome: Outcome | { kind: 'connection'; code: RegExp }
  /** The time at which the outcome is known. */
  at: 'once' | 'deadline'
  timeoutMs?: number
  /** True if the next request uses the same connection. */
  keeps: boolean
  /** True if the server doesn't get the first request. */
  unread?: true
  /**
   * True if the first request is larger than what the kernel buffers. Most of it has not been sent when the
   * answer comes.
   */
  large?: true
  /**
   * True if the next request waits until the connection is lost. It is lost because of the bytes that the
   * server sends after its answer.
   */
  lost?: true
}

type More = Partial<Pick<Row, 'outcome' | 'keeps' | 'tls' | 'timeoutMs' | 'unread' | 'large' | 'lost'>>
/** An error code, or a pattern for it. Some codes of OpenSSL differ between its versions. */
type Code = string | RegExp

const row = (does: Behaviour | Hostile): Behaviour => (typeof does === 'function' ? atFirst(does) : does)

/**
 * Returns a row whose answer has a complete head with a 2xx status. It counts as delivered, whatever follows.
 */
const delivered = (name: string, does: Behaviour | Hostile, more: More & { status?: number } = {}): Row => {
  const { status = 200, ...rest } = more
  const outcome: Outcome = { kind: 'answer', status }
  return { name, does: row(does), verdict: 'delivered', outcome, at: 'once', keeps: false, ...rest }
}

/** Returns a row whose answer has a complete head with another status. */
const answered = (
  name: string,
  status: number,
  verdict: VerdictKind,
  does: Hostile,
  more: More = {},
): Row => ({
  name,
  does: row(does),
  verdict,
  outcome: { kind: 'answer', status },
  at: 'once',
  keeps: true,
  ...more,
})

/** Returns a row whose connection ends without an answer, or with bytes that are not an answer. */
const broken = (name: string, code: Code, does: Behaviour | Hostile, more: More = {}): Row => ({
  name,
  does: row(does),
  verdict: 'retry',
  outcome: typeof code === 'string' ? { kind: 'connection', code } : { kind: 'connection', code },
  at: 'once',
  keeps: false,
  ...more,
})

/** Returns a row whose answer has no complete head by the deadline. */
const late = (name: string, does: Behaviour | Hostile, more: More = {}): Row => ({
  name,
  does: row(does),
  verdict: 'retry',
  outcome: { kind: 'timeout' },
  at: 'deadline',
  keeps: false,
  ...more,
})

const head = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`
const ok = (...lines: string[]): string => head('HTTP/1.1 200 OK', ...lines)
const empty = ok('content-length: 0')
const silence: Hostile = () => {}
const bomb = gzipSync(Buffer.alloc(48 * 2 ** 20), { level: 9 })

const withoutAnswer: Row[] = [
  late('silence', silence),
  late('silence, with the real deadline', silence, { timeoutMs: realMs }),
  late('silence inside of TLS', silence, { tls: true }),
  late('half a status line', says('HTTP/1.1 20')),
  late('a head without its empty line', says('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n')),
  late('a status line that drips', drips('HTTP/1.1 200 OK, all is well, and more so', 60)),
  late('a reason phrase that drips without end', drips(dripping('HTTP/1.1 200 ', 'O'), 20)),
  late('a header value that drips without end', drips(dripping('HTTP/1.1 200 OK\r\nx: ', 'x'), 20)),
  late(
    'a header value that drips, with the real deadline',
    drips(dripping('HTTP/1.1 200 OK\r\nx: ', 'x'), 40),
    {
      timeoutMs: realMs,
    },
  ),
  late('headers that come one by one without end', drips(dripping('HTTP/1.1 200 OK\r\n', 'x: y\r\n'), 20)),
  late('empty lines that drip', drips(endlessly('\r\n'), 20)),
  late('a head that is complete after the deadline', drips(['', '', '', '', '', '', '', empty], 170)),
  late('102 and nothing else', says(head('HTTP/1.1 102 Processing'))),
  late('100 and nothing else', says(head('HTTP/1.1 100 Continue'))),
  late('103 that drips without end', drips(endlessly(head('HTTP/1.1 103 Early Hints', 'link: </a>')), 20)),
  late('100 that drips without end', drips(endlessly(head('HTTP/1.1 100 Continue')), 20), {
    timeoutMs: realMs,
  }),
  late('no answer to a TLS handshake', instead(silence), { tls: true, unread: true }),
  late('no answer to a TLS handshake, with the real deadline', instead(silence), {
    tls: true,
    unread: true,
    timeoutMs: realMs,
  }),
  late(
    'a TLS handshake that drips',
    instead(drips(dripping('\x16\x03\x03\x3f\x00\x02\x00\x3e\x00', '\x03'), 20)),
    { tls: true, unread: true },
  ),
  late(
    'a request that nobody reads',
    instead((socket) => socket.pause()),
    { unread: true },
  ),
  late(
    'a large request that nobody reads',
    instead((socket) => socket.pause()),
    { unread: true, large: true },
  ),
  late(
    'a large request that is read slowly without end',
    instead((socket) => {
      socket.pause()
      const timer = setInterval(() => socket.read(512), 20)
      socket.once('close', () => clearInterval(timer))
    }),
    { unread: true, large: true },
  ),
]

const brokenOff: Row[] = [
  broken('a close without an answer', 'UND_ERR_SOCKET', (socket) => socket.end()),
  broken('a reset without an answer', 'ECONNRESET', (socket) => socket.resetAndDestroy()),
  broken(
    'a close at once',
    'UND_ERR_SOCKET',
    instead((socket) => socket.resume().end()),
    { unread: true },
  ),
  broken(
    'a reset at the first byte',
    'ECONNRESET',
    instead(onceHeard((socket) => socket.resetAndDestroy())),
    {
      unread: true,
    },
  ),
  broken('a close within the status line', 'UND_ERR_SOCKET', says('HTTP/1.1 2', 'closes')),
  broken('a close within the headers', 'UND_ERR_SOCKET', says('HTTP/1.1 200 OK\r\nserv', 'closes')),
  broken('a close before the empty line', 'UND_ERR_SOCKET', says('HTTP/1.1 200 OK\r\na: b\r\n', 'closes')),
  broken('a reset within the headers', 'ECONNRESET', says('HTTP/1.1 200 OK\r\nserv', 'resets')),
  broken('a close after an announcement', 'UND_ERR_SOCKET', says(head('HTTP/1.1 103 Early Hints'), 'closes')),
  broken('a close within the TLS handshake', 'ECONNRESET', instead(onceHeard((socket) => socket.end())), {
    tls: true,
    unread: true,
  }),
  broken(
    'a reset within the TLS handshake',
    'ECONNRESET',
    instead(onceHeard((socket) => socket.resetAndDestroy())),
    {
      tls: true,
      unread: true,
    },
  ),
  broken(
    'a TLS alert instead of a handshake',
    /^ERR_SSL_.*ALERT_HANDSHAKE_FAILURE$/,
    instead(onceHeard(says('\x15\x03\x03\x00\x02\x02\x28'))),
    { tls: true, unread: true },
  ),
  broken('HTTP instead of a TLS handshake', 'ERR_SSL_WRONG_VERSION_NUMBER', instead(onceHeard(says(empty))), {
    tls: true,
    unread: true,
  }),
  broken(
    'garbage instead of a TLS record',
    'ERR_SSL_BAD_RECORD_TYPE',
    belowTls(says('garbage, and a lot of it')),
    { tls: true },
  ),
  broken(
    'a TLS record that was tampered with',
    'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC',
    belowTls(says(`\x17\x03\x03\x00\x20${'x'.repeat(32)}`)),
    { tls: true },
  ),
  broken('a close inside of TLS without an answer', 'UND_ERR_SOCKET', (socket) => socket.end(), {
    tls: true,
  }),
]

const parse = 'HTTPParserError'
const length = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
const notHttp: Row[] = [
  broken('the banner of another protocol', parse, says('SSH-2.0-OpenSSH_9.9\r\n')),
  broken('a page without a head, as of HTTP/0.9', parse, says('<html>thanks</html>', 'closes')),
  broken('random bytes', parse, says(Buffer.from('8f3a00ff17c2d9e4b1000d0a0d0a', 'hex'))),
  broken('zeros', parse, says(Buffer.alloc(64))),
  broken('an HTTP/2 SETTINGS frame', parse, says(Buffer.from('000000040000000000', 'hex'))),
  broken('a TLS alert in plain text', parse, says('\x15\x03\x01\x00\x02\x02\x46')),
  broken('a request instead of an answer', parse, says(head('POST / HTTP/1.1', 'host: x'))),
  broken('a status line in lower case', parse, says(head('http/1.1 200 ok', 'content-length: 0'))),
  broken('a version that does not exist', parse, says(head('HTTP/9.9 200 OK', 'content-length: 0'))),
  broken(
    'a status line of RTSP',
    'SLUICE_ANSWER_NOT_HTTP',
    says(head('RTSP/1.0 200 OK', 'content-length: 0')),
  ),
  broken('a status line of ICE', 'SLUICE_ANSWER_NOT_HTTP', says(head('ICE/1.0 200 OK', 'content-length: 0'))),
  broken(
    'a status line of RTSP behind empty lines',
    'SLUICE_ANSWER_NOT_HTTP',
    says(`\r\n\r\n${head('RTSP/1.0 200 OK', 'content-length: 0')}`),
  ),
  broken(
    'a status line of RTSP that drips',
    'SLUICE_ANSWER_NOT_HTTP',
    drips(['\r', '\n', 'R', head('TSP/1.0 200 OK', 'content-length: 0')], 20),
  ),
  broken(
    'a status line of Shoutcast',
    'SLUICE_ANSWER_NOT_HTTP',
    says(head('ICY 200 OK', 'content-length: 0')),
  ),
  broken('a status of two digits', parse, says(head('HTTP/1.1 20 OK', 'content-length: 0'))),
  broken('a status of four digits', parse, says(head('HTTP/1.1 2000 OK', 'content-length: 0'))),
  broken('a status in letters', parse, says(head('HTTP/1.1 two OK', 'content-length: 0'))),
  broken('a negative status', parse, says(head('HTTP/1.1 -200 OK', 'content-length: 0'))),
  broken('status 000', 'SLUICE_ANSWER_STATUS', says(head('HTTP/1.1 000 Zero', 'content-length: 0'))),
  broken('status 099', 'SLUICE_ANSWER_STATUS', says(head('HTTP/1.1 099 Low', 'content-length: 0'))),
  broken(
    '101 to another protocol',
    'UND_ERR_SOCKET',
    says(head('HTTP/1.1 101 Switching', 'connection: upgrade', 'upgrade: websocket')),
  ),
  broken('101 to nowhere', 'SLUICE_ANSWER_STATUS', says(head('HTTP/1.1 101 Switching'))),
  broken('a negative content-length', parse, says(ok('content-length: -1'))),
  broken('a content-length in letters', parse, says(ok('content-length: ten'))),
  broken('a content-length beyond 64 bits', length, says(ok('content-length: 99999999999999999999'))),
  broken('a list of content-lengths', length, says(ok('content-length: 2, 2'))),
  broken(
    'two content-lengths that differ',
    length,
    says(`${ok('content-length: 2', 'content-length: 3')}okk`),
  ),
  broken(
    'content-length and transfer-encoding',
    length,
    says(`${ok('content-length: 2', 'transfer-encoding: chunked')}0\r\n\r\n`),
  ),
  broken(
    'transfer-encoding and content-length',
    parse,
    says(`${ok('transfer-encoding: chunked', 'content-length: 2')}0\r\n\r\n`),
  ),
  broken('a header without a colon', parse, says(ok('nonsense', 'content-length: 0'))),
  broken('a space before the colon', parse, says(ok('content-length : 0'))),
  broken('line feeds instead of line ends', parse, says('HTTP/1.1 200 OK\ncontent-length: 0\n\n')),
  broken('carriage returns instead of line ends', parse, says('HTTP/1.1 200 OK\rcontent-length: 0\r\r')),
  broken('a header that goes on in the next line', parse, says(ok('x: a', ' content-length: 0'))),
  broken('a zero byte in a header', parse, says(ok('x: a\0b', 'content-length: 0'))),
  broken('a control character in the name of a header', parse, says(ok('x\x01: y', 'content-length: 0'))),
  broken('a bare CR in a header', parse, says(ok('x: a\rcontent-length: 0'))),
  broken(
    '64 KB of one header',
    'UND_ERR_HEADERS_OVERFLOW',
    says(ok(`x: ${'x'.repeat(2 ** 16)}`, 'content-length: 0')),
  ),
  broken(
    '64 KB of the name of a header',
    'UND_ERR_HEADERS_OVERFLOW',
    says(ok(`${'x'.repeat(2 ** 16)}: x`, 'content-length: 0')),
  ),
  broken(
    '10,000 headers',
    'UND_ERR_HEADERS_OVERFLOW',
    says(ok(...Array.from({ length: 10_000 }, (_, i) => `x-${i}: y`), 'content-length: 0')),
  ),
]

const statuses: Row[] = [
  answered('status 999', 999, 'retry', says(head('HTTP/1.1 999 Denied', 'content-length: 0'))),
  answered('status 600', 600, 'retry', says(head('HTTP/1.1 600 Six', 'content-length: 0'))),
  answered(
    'a redirect to itself',
    307,
    'final',
    says(head('HTTP/1.1 307 Again', 'location: /', 'content-length: 0')),
  ),
  answered('a redirect without a place', 302, 'final', says(head('HTTP/1.1 302 Found', 'content-length: 0'))),
  answered(
    '401 that asks for a password',
    401,
    'final',
    says(head('HTTP/1.1 401 Who', 'www-authenticate: Basic realm="x"', 'content-length: 0')),
  ),
  answered(
    '304 with a content-length',
    304,
    'final',
    says(`${head('HTTP/1.1 304 Same', 'content-length: 4')}body`),
    { keeps: false },
  ),
  answered(
    '500 with a body that never ends',
    500,
    'retry',
    says(head('HTTP/1.1 500 Broken', 'content-length: 9')),
    { keeps: false },
  ),
  answered(
    '503 with a Retry-After of 10,000 digits',
    503,
    'retry',
    says(head('HTTP/1.1 503 Later', `retry-after: ${'9'.repeat(10_000)}`, 'content-length: 0')),
    {
      outcome: { kind: 'answer', status: 503, retryAfterMs: 365 * 24 * 3_600_000 },
    },
  ),
  answered(
    '429 with ten Retry-After',
    429,
    'retry',
    says(
      head(
        'HTTP/1.1 429 Slower',
        ...Array.from({ length: 10 }, (_, i) => `retry-after: ${i + 7}`),
        'content-length: 0',
      ),
    ),
    {
      outcome: { kind: 'answer', status: 429, retryAfterMs: 7_000 },
    },
  ),
]

const goodHeads: Row[] = [
  delivered('a good answer in pieces of four bytes', drips(empty.match(/[^]{1,4}/g) ?? [], 5), {
    keeps: true,
  }),
  delivered('a status line without a reason', says(head('HTTP/1.1 200', 'content-length: 0')), {
    keeps: true,
  }),
  delivered(
    'a reason and a header beyond ASCII',
    says(head('HTTP/1.1 200 Schön', 'x: é\xff', 'content-length: 0')),
    { keeps: true },
  ),
  delivered('a head of 15 KB', says(ok(`x: ${'x'.repeat(15_000)}`, 'content-length: 0')), { keeps: true }),
  delivered(
    '1,000 headers',
    says(ok(...Array.from({ length: 1_000 }, (_, i) => `x-${i}: y`), 'content-length: 0')),
    { keeps: true },
  ),
  delivered(
    'headers that are names of JavaScript',
    says(ok('__proto__: x', 'constructor: y', 'hasOwnProperty: z', '__proto__: w', 'content-length: 0')),
    { keeps: true },
  ),
  delivered('an offer of HTTP/2', says(ok('connection: upgrade', 'upgrade: h2c', 'content-length: 0')), {
    keeps: true,
  }),
  delivered(
    'a Keep-Alive of 0 s',
    says(ok('connection: keep-alive', 'keep-alive: timeout=0', 'content-length: 0')),
  ),
  delivered(
    'a Keep-Alive of a thousand years',
    says(ok('keep-alive: timeout=31536000000', 'content-length: 0')),
    { keeps: true },
  ),
  delivered('a Keep-Alive that is no time', says(ok('keep-alive: timeout=,,,;=', 'content-length: 0')), {
    keeps: true,
  }),
  delivered(
    'five announcements before the answer',
    says(head('HTTP/1.1 103 Early Hints', 'link: </a>').repeat(5) + empty),
    { keeps: true },
  ),
  delivered('100 before the answer', says(head('HTTP/1.1 100 Continue') + empty), { keeps: true }),
  delivered('100 in a packet before the answer', drips([head('HTTP/1.1 100 Continue'), empty], 30), {
    keeps: true,
  }),
  delivered(
    '100, 103, 100 and 102 before the answer',
    says(
      ['100 Continue', '103 Early Hints', '100 Continue', '102 Processing']
        .map((line) => head(`HTTP/1.1 ${line}`))
        .join('') + empty,
    ),
    { keeps: true },
  ),
  delivered('empty lines before the answer', says(`\r\n\r\n${empty}`), { keeps: true }),
  delivered('an answer of HTTP/1.0', says(`${head('HTTP/1.0 200 OK', 'content-length: 2')}ok`)),
  delivered(
    'an answer of HTTP/1.0 that keeps the connection',
    says(`${head('HTTP/1.0 200 OK', 'connection: keep-alive', 'content-length: 2')}ok`),
    { keeps: true },
  ),
  delivered(
    'an answer that says it closes, and does not',
    says(ok('connection: close', 'content-length: 0')),
  ),
  delivered('an answer before the request was read', early(says(empty)), { keeps: true }),
  delivered('an answer before the request was read, inside of TLS', early(says(empty)), {
    keeps: true,
    tls: true,
  }),
  delivered('an answer before a large request, of which no more is read', instead(says(empty)), {
    unread: true,
    large: true,
  }),
  delivered('an answer before the request was read, and a close', instead(says(empty, 'closes')), {
    unread: true,
  }),
]

const bodies: Row[] = [
  delivered('a body that does not come', says(ok('content-length: 9'))),
  delivered('a body that drips', drips(dripping(ok('content-length: 999999'), 'x'), 20)),
  delivered('a body without a length that drips', drips(dripping(ok(), 'x'), 20)),
  delivered('a chunked body that drips', drips(dripping(ok('transfer-encoding: chunked'), '1\r\nx\r\n'), 20)),
  delivered('a close right after the head', says(ok('content-length: 9'), 'closes')),
  delivered('a close right after a head without a length', says(ok(), 'closes')),
  delivered('a reset right after the head', says(ok('content-length: 9'), 'resets')),
  delivered('a close within the body', says(`${ok('content-length: 9')}body`, 'closes')),
  delivered('a close within the body, inside of TLS', says(`${ok('content-length: 9')}body`, 'closes'), {
    tls: true,
  }),
  delivered('a close within a chunk', says(`${ok('transfer-encoding: chunked')}9\r\nbody`, 'closes')),
  delivered(
    'a close before the last chunk',
    says(`${ok('transfer-encoding: chunked')}4\r\nbody\r\n`, 'closes'),
  ),
  delivered('a length of 2^63 - 1', says(`${ok('content-length: 9223372036854775807')}body`)),
  delivered(
    'a chunk size that is no number',
    says(`${ok('transfer-encoding: chunked')}zz\r\nbody\r\n0\r\n\r\n`),
  ),
  delivered(
    'a chunk size beyond 64 bits',
    says(`${ok('transfer-encoding: chunked')}fffffffffffffffff\r\nbody`),
  ),
  delivered('a chunk longer than it says', says(`${ok('transfer-encoding: chunked')}2\r\nbody\r\n0\r\n\r\n`)),
  delivered('a transfer-encoding that is none', says(`${ok('transfer-encoding: nonsense')}body`, 'closes')),
  delivered('gzip that is none', says(`${ok('content-encoding: gzip', 'content-length: 4')}body`), {
    keeps: true,
  }),
  delivered('a body longer than its length', says(`${ok('content-length: 2')}body`)),
  delivered('204 with a body', says(`${head('HTTP/1.1 204 None', 'content-length: 4')}body`), {
    status: 204,
  }),
  delivered('204 with a body of no length', says(`${head('HTTP/1.1 204 None')}body`), { status: 204 }),
  delivered(
    '204 with chunks',
    says(`${head('HTTP/1.1 204 None', 'transfer-encoding: chunked')}4\r\nbody\r\n0\r\n\r\n`),
    { status: 204 },
  ),
  delivered('205 with a body', says(`${head('HTTP/1.1 205 Reset', 'content-length: 4')}body`), {
    status: 205,
    keeps: true,
  }),
  delivered('a second answer behind the first', says(empty + empty)),
  delivered('a failure behind the answer', says(empty + head('HTTP/1.1 500 Broken', 'content-length: 0'))),
  delivered('a second answer a moment later', drips([empty, empty], 20), { lost: true }),
  delivered('garbage a moment later', drips([empty, 'garbage'], 20), { lost: true }),
  delivered(
    'garbage below TLS a moment later',
    belowTls(drips(['', 'garbage, and a lot of it'], 30), empty),
    { tls: true, lost: true },
  ),
  delivered('empty lines behind the answer', says(`${empty}\r\n\r\n`), { keeps: true }),
]

const flooded: Row[] = [
  broken('a reason phrase without end', 'SLUICE_ANSWER_TOO_LONG', floods('HTTP/1.1 200 ', 'O')),
  broken('a header value without end', 'UND_ERR_HEADERS_OVERFLOW', floods('HTTP/1.1 200 OK\r\nx: ', 'x')),
  broken('headers without end', 'SLUICE_ANSWER_TOO_LONG', floods('HTTP/1.1 200 OK\r\n', 'x: y\r\n')),
  broken(
    'spaces before a header value without end',
    'SLUICE_ANSWER_TOO_LONG',
    floods('HTTP/1.1 200 OK\r\nx:', ' '),
  ),
  broken('empty lines without end', 'SLUICE_ANSWER_TOO_LONG', floods('', '\r\n')),
  broken('102 without end', 'SLUICE_ANSWER_TOO_LONG', floods('', head('HTTP/1.1 102 Processing'))),
  broken(
    '103 with links without end',
    'SLUICE_ANSWER_TOO_LONG',
    floods('', head('HTTP/1.1 103 Early Hints', `link: <${'x'.repeat(999)}>`)),
  ),
  // A `100 Continue` that the end of a block cuts in two is not removed.
  broken('100 without end', 'UND_ERR_SOCKET', floods('', head('HTTP/1.1 100 Continue'))),
  delivered('a body without end', floods(ok(), 'x')),
  delivered('a body of a petabyte', floods(ok('content-length: 1125899906842624'), 'x')),
  delivered('a body without end, inside of TLS', floods(ok(), 'x'), { tls: true }),
  delivered('chunks of one byte without end', floods(ok('transfer-encoding: chunked'), '1\r\nx\r\n')),
  delivered('a chunk extension without end', floods(`${ok('transfer-encoding: chunked')}1;`, 'x')),
  delivered('zeros before a chunk size without end', floods(ok('transfer-encoding: chunked'), '0')),
  delivered('trailers without end', floods(`${ok('transfer-encoding: chunked')}0\r\n`, 'x: y\r\n')),
  delivered('answers without end', floods('', empty)),
  delivered('empty lines behind the answer without end', floods(empty, '\r\n'), { lost: true }),
  delivered(
    'a gzip bomb',
    (socket) => {
      says(ok('content-encoding: gzip', `content-length: ${bomb.length}`))(socket)
      socket.write(bomb)
    },
    { keeps: true },
  ),
  delivered('gzip bombs without end', (socket) =>
    floods(ok('content-encoding: gzip'), bomb.toString('latin1'))(socket),
  ),
]

const rows = [...withoutAnswer, ...brokenOff, ...notHttp, ...statuses, ...goodHeads, ...bodies]

type Exchanged = { outcomes: Outcome[]; releases: number; answeredMs: number; releasedMs: number }
/** The result of one row. `grownBytes` is the most by which the memory of the process grew during the row. */
type Result = {
  server: HostileReceiver
  bad: Exchanged
  good: Exchanged
  bytesSent: number
  grownBytes: number
}

const testAuthority = createAuthority('Sluice test authority')
const identity = testAuthority.issue({ names: ['127.0.0.1'] })
const results = new Map<Row, Result>()
const ended: (() => Promise<void>)[] = []
/**
 * The growth of the memory of the process, in bytes. `byOthers`: while all rows except the floods were
 * played, many at the same time. `byFloods`: while the floods were played.
 */
const grown = { byOthers: 0, byFloods: 0 }

beforeAll(async () => {
  setDefaultCACertificates([...getCACertificates(), testAuthority.cert])
  const policy = createAddressPolicy(['127.0.0.1'])
  const startBytes = process.memoryUsage.rss()
  const senders = new Map(
    [shortMs, realMs].map((timeoutMs) => [timeoutMs, createSender({ policy, timeoutMs, poolIdleMs: 4_000 })]),
  )
  const play = async (one: Row, most = 6): Promise<void> => {
    const sender = senders.get(one.timeoutMs ?? shortMs) ?? expect.fail()
    for (let left = most; left > 0 && !isInTime(results.get(one), one); left--)
      results.set(one, await run(one, sender))
  }
  ended.push(async () => void (await Promise.all([...senders.values()].map((sender) => sender.close()))))
  // Only 16 at a time, because rows that begin with a handshake would keep too many others waiting.
  const atOnce = rows.filter(({ at }) => at === 'once')
  const inTurn = async (): Promise<void> => {
    for (let next = atOnce.pop(); next !== undefined; next = atOnce.pop()) await play(next, 1)
  }
  await Promise.all([
    ...rows.filter(({ at }) => at === 'deadline').map((one) => play(one, 1)),
    ...Array.from({ length: 16 }, inTurn),
  ])
  // If the machine stood still for a moment, the rows in progress took too long. They are played again, alone.
  for (const one of rows) await play(one)
  const beforeBytes = process.memoryUsage.rss()
  grown.byOthers = beforeBytes - startBytes
  // One flood at a time, so that the memory of one flood isn't taken for that of another.
  for (const one of flooded) await play(one)
  grown.byFloods = process.memoryUsage.rss() - beforeBytes
})

afterAll(async () => {
  for (const end of ended.toReversed()) await end()
})

async function run(one: Row, sender: Sender): Promise<Result> {
  const server = await startHostileReceiver(one.does, one.tls === true ? { identity } : {})
  ended.push(() => server.stop())
  const to: Target = { origin: server.origin, path: '/', headers: [] }
  const beforeBytes = process.memoryUsage.rss()
  let mostBytes = beforeBytes
  const watch = setInterval(() => (mostBytes = Math.max(mostBytes, process.memoryUsage.rss())), 10)
  const bad = await exchange(sender, to, one.large === true ? 'bad'.padEnd(2 ** 24) : 'bad')
  if (one.lost === true)
    await until(`the connection is lost: ${one.name}`, () => server.open === 0, {
      timeoutMs: 2_500,
      everyMs: 5,
    })
  const good = await exchange(sender, to, 'good')
  clearInterval(watch)
  const grownBytes = Math.max(mostBytes, process.memoryUsage.rss()) - beforeBytes
  return { server, bad, good, bytesSent: server.bytesSent, grownBytes }
}

/** Posts `body`, and waits until the outcome is known and the slot is free. */
async function exchange(
  by: Sender,
  to: Target,
  body: string,
  signatureHeaders: readonly string[] = [],
): Promise<Exchanged> {
  const startedMs = performance.now()
  const seen: Exchanged = { outcomes: [], releases: 0, answeredMs: 0, releasedMs: 0 }
  await new Promise<void>((resolve) => {
    by.post(to, Buffer.from(body), signatureHeaders, {
      answered(outcome) {
        seen.outcomes.push(outcome)
        seen.answeredMs = performance.now() - startedMs
      },
      released() {
        seen.releases++
        seen.releasedMs = performance.now() - startedMs
        resolve()
      },
    })
  })
  return seen
}

function resultOf(one: Row): Result {
  const result = results.get(one)
  if (result === undefined) throw new Error(`nothing is known of ${one.name}`)
  return result
}

function expected({ outcome }: Row): unknown {
  if (outcome.kind !== 'connection' || typeof outcome.code === 'string') return outcome
  return { ...outcome, code: expect.stringMatching(outcome.code) }
}

function expectVerdict(one: Row): void {
  const { bad } = resultOf(one)
  const [outcome] = bad.outcomes
  expect({ outcomes: bad.outcomes, releases: bad.releases }).toEqual({
    outcomes: [expected(one)],
    releases: 1,
  })
  expect(outcome === undefined ? undefined : judge(outcome).kind).toBe(one.verdict)
}

/** Returns the earliest and the latest time at which the outcome may be known, in milliseconds. */
function limitsOf({ at, timeoutMs = shortMs }: Row): [fromMs: number, toMs: number] {
  return at === 'once' ? [0, atOnceMs] : [timeoutMs, timeoutMs * 1.1 + slackMs]
}

/**
 * Returns the latest time at which the slot may be free, in milliseconds. This is the deadline, whatever
 * comes after the head. An `unread` row may take longer, because undici counts its connect timeout in half
 * seconds.
 */
function slotLimitOf({ unread, timeoutMs = shortMs }: Row): number {
  return timeoutMs * 1.1 + slackMs + (unread === true ? 1_500 : 0)
}

function isInTime(result: Result | undefined, one: Row): boolean {
  if (result === undefined) return false
  const { bad, good } = result
  return bad.answeredMs < limitsOf(one)[1] && bad.releasedMs < slotLimitOf(one) && good.answeredMs < atOnceMs
}

function expectInTime(one: Row): void {
  const { bad, good } = resultOf(one)
  const [fromMs, toMs] = limitsOf(one)
  expect(bad.answeredMs).toBeGreaterThanOrEqual(fromMs)
  expect(bad.answeredMs).toBeLessThan(toMs)
  expect(bad.releasedMs).toBeLessThan(slotLimitOf(one))
  expect(good.answeredMs).toBeLessThan(atOnceMs)
}

/**
 * Checks how many bytes the server could send. The sender has read these bytes, or they are in the buffers of
 * the kernel on both sides.
 */
function expectBounded(one: Row): void {
  const { bytesSent, grownBytes } = resultOf(one)
  expect(bytesSent).toBeLessThan(mostBytesSent)
  // The other rows are played at the same time, so the memory of one of them is not known.
  if (flooded.includes(one)) expect(grownBytes).toBeLessThan(mostGrownBytes)
}

function expectUnharmed(one: Row): void {
  const { server, good } = resultOf(one)
  expect(good).toMatchObject({ outcomes: [{ kind: 'answer', status: goodStatus }], releases: 1 })
  expect(server.requests).toEqual(one.unread === true ? ['good'] : ['bad', 'good'])
  expect(server.connections).toBe(one.keeps ? 1 : 2)
}

test('at least sixty behaviours are tried, each once', () => {
  const names = [...rows, ...flooded].map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThanOrEqual(60)
})

describe.each([
  ['no complete head', withoutAnswer],
  ['a connection that breaks', brokenOff],
  ['what is no answer', notHttp],
  ['a status', statuses],
  ['a good head', goodHeads],
  ['a body', bodies],
  ['a flood', flooded],
])('%s', (_group, members) => {
  // oxlint-disable-next-line vitest/expect-expect -- the four functions expect, because all tables share them
  test.each(members)(
    '$name: $verdict, in time and memory, and the next request is delivered at once',
    (one) => {
      expectVerdict(one)
      expectInTime(one)
      expectBounded(one)
      expectUnharmed(one)
    },
  )
})

test('floods are kept nowhere: all of them cost less memory than one would in a second', () => {
  expect(grown.byFloods).toBeLessThan(128 * 2 ** 20)
})

test('all others at once cost little more than the large requests that are sent in three of them', () => {
  expect(grown.byOthers).toBeLessThan(256 * 2 ** 20)
})

describe('a pool', () => {
  const policy = createAddressPolicy(['127.0.0.1'])
  const settings = { policy, timeoutMs: shortMs, poolIdleMs: 4_000 }

  test('keeps its only connection for the next request when undici refuses one', async () => {
    const sender = createSender(settings)
    const server = await startHostileReceiver({})
    ended.push(
      () => sender.close(),
      () => server.stop(),
    )
    const to: Target = { origin: server.origin, path: '/', headers: [] }
    for (let i = 0; i < 3; i++) {
      const refused = await exchange(sender, to, 'bad', ['X-Signature', 'a\r\nb'])
      expect(refused).toMatchObject({ outcomes: [{ kind: 'request' }], releases: 1 })
    }
    expect(await exchange(sender, to, 'good')).toMatchObject({ outcomes: [{ status: goodStatus }] })
    expect(server.requests).toEqual(['good'])
  })

  test('connects once when the answer is there before the request could be written', async () => {
    let opened = 0
    // A proxy delivers the bytes that its target sends at once together with its own answer.
    const proxy: OutboundProxy = {
      open(authority, done) {
        opened++
        const socket = connect({ port: Number(authority.split(':')[1]), host: '127.0.0.1' })
        if (opened > 1) socket.once('connect', () => done(null, socket))
        else socket.once('readable', () => done(null, socket))
      },
      close: async () => {},
    }
    const sender = createSender({ ...settings, proxy })
    const server = await startHostileReceiver({
      greets: (socket, connection) => connection === 1 && says(empty)(socket),
    })
    ended.push(
      () => sender.close(),
      () => server.stop(),
    )
    const to: Target = { origin: server.origin, path: '/', headers: [] }
    const outcome = { kind: 'connection', code: 'SLUICE_LOST_BEFORE_REQUEST' }
    expect(await exchange(sender, to, 'bad')).toMatchObject({ outcomes: [outcome], releases: 1 })
    expect(opened).toBe(1)
    expect(await exchange(sender, to, 'good')).toMatchObject({ outcomes: [{ kind: 'answer' }], releases: 1 })
    expect(opened).toBe(2)
  })
})
