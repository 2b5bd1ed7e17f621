import { writeFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthority, dayMs, type Identity, selfSigned } from '../../support/certificates.ts'
import type { SeenRecord } from '../../support/kafka.ts'
import {
  answer,
  inTurn,
  isWholeRequest,
  neverAnswer,
  type RawReceiver,
  type RawScript,
  type Receiver,
  type Script,
  startRawReceiver,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, deploy } from './deployment.ts'

/**
 * The verdict table, row by row: one event to one destination with one hook, from Kafka through a worker to a
 * real socket, and what then became of it. All rows go through one worker at once.
 */

const minuteMs = 60_000

type Row = {
  name: string
  /** An answering server, one without HTTP, or the URL where there is none. */
  hook: { answers: Script; identity?: Identity } | { raw: RawScript; identity?: Identity } | { url: string }
  /** As in the metric `sluice_attempts_total`. */
  outcome: string
  statusClass?: string
} & (
  | { verdict: 'delivered' }
  | { verdict: 'retry'; tier?: string; lastOutcome: string | RegExp; notBeforeMs?: number }
  | { verdict: 'final'; lastOutcome: string | RegExp }
)

const authority = createAuthority('Sluice test authority')
const strangeAuthority = createAuthority('An authority that nobody trusts')
const here = ['127.0.0.1']
const strange = strangeAuthority.issue({ names: here })
/** Sees what a redirect points at. */
const elsewhere = await startReceiver()

const http = (status: number, rest: { headers?: Record<string, string> } = {}) => ({
  hook: { answers: answer(status, rest.headers) },
  outcome: 'answer',
  statusClass: `${Math.floor(status / 100)}xx`,
  lastOutcome: `status ${status}`,
})

/** Answers a whole request with these bytes. */
const replies = (text: string, { thenEnds = false } = {}): RawScript => ({
  data(socket, received) {
    if (!isWholeRequest(received)) return
    socket.write(text)
    if (thenEnds) socket.end()
  },
})

const delivered: Row[] = [
  ...[200, 201, 202, 204, 226, 299].map((status) => ({
    name: `status ${status}`,
    verdict: 'delivered' as const,
    ...http(status),
  })),
  {
    name: 'an announcement (103), then 200',
    verdict: 'delivered',
    hook: { raw: replies('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n') },
    outcome: 'answer',
    statusClass: '2xx',
  },
  {
    name: '200 with a body that never ends',
    verdict: 'delivered',
    hook: { raw: replies('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<') },
    outcome: 'answer',
    statusClass: '2xx',
  },
  {
    name: '200 with a body of a megabyte',
    verdict: 'delivered',
    hook: { answers: answer(200, {}, 'x'.repeat(2 ** 20)) },
    outcome: 'answer',
    statusClass: '2xx',
  },
  {
    name: 'a certificate of a trusted authority',
    verdict: 'delivered',
    hook: { answers: answer(200), identity: authority.issue({ names: here }) },
    outcome: 'answer',
    statusClass: '2xx',
  },
]

const timeout = { verdict: 'retry', outcome: 'timeout', lastOutcome: 'timeout' } as const

const timeouts: Row[] = [
  { name: 'no answer in 5 s', ...timeout, hook: { answers: neverAnswer } },
  { name: 'half a response head in 5 s', ...timeout, hook: { raw: replies('HTTP/1.1 200 OK\r\nserver: slow') } },
  { name: 'only an announcement (102) in 5 s', ...timeout, hook: { raw: replies('HTTP/1.1 102 Processing\r\n\r\n') } },
  { name: 'a response head that drips', ...timeout, hook: { raw: { data: drip } } },
]

const retried: Row[] = [
  ...[500, 501, 502, 503, 504, 599, 408, 423, 425, 429].map((status) => ({
    name: `status ${status}`,
    verdict: 'retry' as const,
    ...http(status),
  })),
  ...[429, 503].flatMap((status) => [
    {
      name: `status ${status} with a Retry-After of 5 minutes`,
      verdict: 'retry' as const,
      ...http(status, { headers: { 'retry-after': '300' } }),
      tier: '10m',
      notBeforeMs: 5 * minuteMs,
    },
    {
      name: `status ${status} with a Retry-After that is no time`,
      verdict: 'retry' as const,
      ...http(status, { headers: { 'retry-after': 'soon' } }),
    },
  ]),
  {
    name: 'status 500 with a Retry-After, which holds for 429 and 503 alone',
    verdict: 'retry',
    ...http(500, { headers: { 'retry-after': '300' } }),
  },
  {
    name: 'a connection that is refused',
    verdict: 'retry',
    // Nobody listens on port 1.
    hook: { url: 'http://127.0.0.1:1/' },
    outcome: 'connection',
    lastOutcome: 'connection ECONNREFUSED',
  },
  {
    name: 'a connection that is reset after the request',
    verdict: 'retry',
    hook: { raw: { data: (socket, received) => isWholeRequest(received) && socket.resetAndDestroy() } },
    outcome: 'connection',
    lastOutcome: 'connection ECONNRESET',
  },
  {
    name: 'a connection that is reset at once',
    verdict: 'retry',
    hook: { raw: { connected: (socket) => socket.resetAndDestroy() } },
    outcome: 'connection',
    lastOutcome: /^connection /,
  },
  {
    name: 'a connection that is closed without an answer',
    verdict: 'retry',
    hook: { raw: { data: (socket, received) => isWholeRequest(received) && socket.end() } },
    outcome: 'connection',
    lastOutcome: /^connection /,
  },
  {
    name: 'a connection that is closed within the response head',
    verdict: 'retry',
    hook: { raw: replies('HTTP/1.1 200 OK\r\nserv', { thenEnds: true }) },
    outcome: 'connection',
    lastOutcome: /^connection /,
  },
  {
    name: 'an answer that is not HTTP',
    verdict: 'retry',
    hook: { raw: replies('SSH-2.0-OpenSSH_9.9\r\n') },
    outcome: 'connection',
    lastOutcome: /^connection HPE_INVALID/,
  },
  {
    name: 'a response head of 64 KB',
    verdict: 'retry',
    hook: { raw: replies(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(2 ** 16)}\r\n\r\n`) },
    outcome: 'connection',
    lastOutcome: /^connection (UND_ERR_HEADERS_OVERFLOW|HPE_HEADER_OVERFLOW)/,
  },
  {
    name: 'a name that does not exist',
    verdict: 'retry',
    hook: { url: 'http://hooks.sluice.invalid/' },
    outcome: 'dns',
    lastOutcome: /^dns (ENOTFOUND|EAI_AGAIN)$/,
  },
]

const certificate = (name: string, identity: Identity, code: string): Row => ({
  name,
  verdict: 'final',
  hook: { raw: { data: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n') }, identity },
  outcome: 'certificate',
  lastOutcome: `certificate ${code}`,
})

const certificates: Row[] = [
  certificate('a self-signed certificate', selfSigned({ names: here }), 'DEPTH_ZERO_SELF_SIGNED_CERT'),
  certificate(
    "a certificate for another's name",
    authority.issue({ names: ['hooks.example.com'] }),
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ),
  certificate(
    'an expired certificate',
    authority.issue({ names: here, fromMs: -2 * dayMs, untilMs: -dayMs }),
    'CERT_HAS_EXPIRED',
  ),
  certificate(
    'a certificate that is not valid yet',
    authority.issue({ names: here, fromMs: dayMs, untilMs: 2 * dayMs }),
    'CERT_NOT_YET_VALID',
  ),
  certificate('a certificate of an untrusted authority', strange, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
  certificate(
    'a certificate with its untrusted authority',
    { ...strange, cert: strange.cert + strangeAuthority.cert },
    'SELF_SIGNED_CERT_IN_CHAIN',
  ),
]

const refused: Row[] = [
  ...[301, 302, 303, 307, 308].map((status) => ({
    name: `status ${status}`,
    verdict: 'final' as const,
    ...http(status, { headers: { location: `${elsewhere.origin}/redirected` } }),
  })),
  ...[300, 304, 400, 401, 403, 404, 405, 409, 410, 413, 422, 451, 499].map((status) => ({
    name: `status ${status}`,
    verdict: 'final' as const,
    ...http(status),
  })),
]

/** One header byte every 300 ms, for as long as the client listens. */
function drip(socket: Parameters<NonNullable<RawScript['connected']>>[0], received: Buffer): void {
  if (!isWholeRequest(received)) return
  socket.write('HTTP/1.1 200 OK\r\nx: ')
  const timer = setInterval(() => socket.write('x'), 300)
  socket.once('close', () => clearInterval(timer))
}
