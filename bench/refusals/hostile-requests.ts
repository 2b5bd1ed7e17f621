import { gzipSync } from 'node:zlib'
import { isGzip } from '../../src/gateway/messages/inflate-body.ts'
import { maxBatchBytes, maxMessageBytes } from '../../src/gateway/messages/request-limits.ts'
import type { Random } from '../../test/support/random.ts'
import { filled, members, type Piece, values } from './hostile-json.ts'
import type { Call } from '../../src/gateway/messages/item.ts'

/** The length of the requests' bodies as they are sent. */
const requestBytes = 2_048
/** The write key of a source that is in the catalog. */
export const knownKey = 'bench-write-key'

/** A kind of request that should be expensive for the gateway. */
export type HostileRequest = {
  readonly name: string
  readonly call: Call
  /** True if the head of the request has a known write key. */
  readonly hasKey: boolean
  /** Returns a body of at most `requestBytes`. */
  readonly make: (random: Random) => Buffer
}

type Place = { of: readonly Piece[]; open: string; close: string; call?: Call; hasKey?: boolean }

const page = '"type":"page","userId":"u"'
/** A message as Python writes it. */
const textWithEscapes = `{ ${page},"x":"${'x'.repeat(29_500)}${'\\ud83d\\ude00'.repeat(200)}"}`
const wrongValues = ['1', '[]', '""', 'null', '{}']
const checkedFields = [
  'userId',
  'anonymousId',
  'messageId',
  'context',
  'integrations',
  'properties',
  'traits',
  'event',
]

/** Returns a message whose faults no message had before. What is wrong with a message is remembered. */
function wrong(random: Random): string {
  const fields = checkedFields.flatMap((field) =>
    random.oneIn(2) ? [`"${field}":${random.pick(wrongValues)}`] : [],
  )
  return `{"type":"alias",${[...fields, '"timestamp":7'].join(',')}}`
}

const messages: readonly Piece[] = [
  ['pages', `{${page}}`],
  ['pages with a space', `{ ${page}}`],
  ['pages with ids', (random: Random) => `{${page},"messageId":"${random.below(2 ** 31)}"}`],
  ['aliases', '{"type":"alias","userId":"u","previousId":"p"}'],
  ['messages without a user', '{"type":"track","event":"E","timestamp":"2026-01-01T00:00:00Z"}'],
  ['messages in which all is wrong', '{"type":"alias","userId":[],"messageId":[],"timestamp":7,"context":7}'],
  ['messages with a long id', `{${page},"messageId":"${'x'.repeat(101)}","timestamp":"x"}`],
  ['messages with a context', `{${page},"context":{"a":1,"b":2}}`],
  ['messages with empty lists', `{${page},"context":[],"integrations":[],"properties":[],"traits":[]}`],
  ['messages with a text of 30 KB', `{${page},"x":"${'x'.repeat(30_000)}"}`],
  ['messages with a space and a text of 30 KB', `{ ${page},"x":"${'x'.repeat(30_000)}"}`],
  ['messages with a space and a text of 30 KB that ends in escapes', textWithEscapes],
  ['messages with times', `{${page},"timestamp":"2026-01-01T00:00:00Z","sentAt":"2026-01-01T00:00:00Z"}`],
  ['messages that are wrong in their own way', wrong],
  ['aliases with a space', '{ "type":"alias","userId":"u","previousId":"p"}'],
  ['pages with many spaces', `{ ${page.replaceAll(':', ' : ').replaceAll(',', ' , ')} }`],
  ['pages with escapes', '{"type":"pag\\u0065","userId":"\\/"}'],
  ['pages with a float', `{${page},"a":1.0}`],
  ['pages with a long number', `{${page},"a":12345678901234567890}`],
  ['pages with an index', `{${page},"0":1}`],
  ['pages with a space and an index', `{ ${page},"0":1}`],
].map(([name, make]): Piece => {
  return { name: String(name), make: typeof make === 'function' ? make : () => String(make) }
})

const places = {
  'as messages': { of: [...messages, ...values], open: '{"batch":[', close: ']}' },
  'in a message': { of: values, open: `{"batch":[{${page},"x":[`, close: ']}]}' },
  'in an object of a message': { of: members, open: `{"batch":[{${page},"x":{`, close: '}}]}' },
  'as fields of a message': { of: members, open: `{"batch":[{${page},`, close: '}]}' },
  'in an alias': {
    of: values,
    open: '{"batch":[{"type":"alias","userId":"u","previousId":"p","x":[',
    close: ']}]}',
  },
  'in the context': { of: values, open: `{"batch":[{${page}}],"context":{"x":[`, close: ']}}' },
  'as members of the context': { of: members, open: `{"batch":[{${page}}],"context":{`, close: '}}' },
  'as members of the body': { of: members, open: '{', close: '}' },
  'as members of the body, without a key': { of: members, open: '{', close: '}', hasKey: false },
  'as messages, without a key': {
    of: [...messages, ...values],
    open: '{"batch":[',
    close: ']}',
    hasKey: false,
  },
  'in a second list': { of: values, open: '{"batch":[],"batch":[', close: ']}' },
  'in a list with an escape in its name': { of: values, open: '{"b\\u0061tch":[', close: ']}' },
  'in a single call': { of: values, open: '{"userId":"u","event":"E","x":[', close: ']}', call: 'track' },
  'in an object of a single call': {
    of: members,
    open: '{"userId":"u","event":"E","x":{',
    close: '}}',
    call: 'track',
  },
  'in a single call without a user': { of: values, open: '{"userId":7,"x":[', close: ']}', call: 'page' },
} as const satisfies Record<string, Place>

export type RequestPlace = keyof typeof places
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a literal
const placeNames = Object.keys(places) as RequestPlace[]

/**
 * The lengths of bodies in gzip before they are packed. A body that is too dense is refused early, so the
 * worst one may be shorter.
 */
const lengths = [maxBatchBytes, 280_000, 48_000, 16_000, 6_000, 4_400]

/**
 * Returns a request of these pieces. `length`: the length before gzip, if it fits into a request. `undefined`:
 * without gzip.
 */
function requestOf(
  place: RequestPlace,
  pieces: readonly Piece[],
  length: number | undefined,
): HostileRequest {
  const { open, close, call = 'batch', hasKey = true }: Place = places[place]
  const names = pieces.map(({ name }) => name).join(', ')
  const most = Math.min(length ?? 0, call === 'batch' ? maxBatchBytes : maxMessageBytes)
  return {
    name: `${length === undefined ? '' : `gzip of ${Math.round(most / 1_000)} KB, `}${names} ${place}`,
    call,
    hasKey,
    make(random) {
      const text = (bytes: number): string => filled(pieces, { open, close, most: bytes, random })
      return length === undefined ? Buffer.from(text(requestBytes)) : longestGzip(text, most)
    },
  }
}

/** Returns the gzip of the longest text that fits into a request, found by halving. */
function longestGzip(text: (bytes: number) => string, most: number): Buffer {
  const whole = gzipSync(text(most))
  if (whole.length <= requestBytes) return whole
  let best = gzipSync(text(requestBytes))
  for (let low = requestBytes, high = most; high - low > low / 16;) {
    const middle = Math.floor((low + high) / 2)
    const packed = gzipSync(text(middle))
    if (packed.length > requestBytes) high = middle
    else [low, best] = [middle, packed]
  }
  return best
}

/**
 * Returns a request whose body in gzip has zeros behind its end, which cost nothing. A longer request may cost
 * more.
 */
export function lengthened(of: HostileRequest): HostileRequest {
  return {
    ...of,
    name: `${of.name}, with zeros up to 2 KB`,
    make(random) {
      const body = of.make(random)
      return isGzip(body) ? Buffer.concat([body], Math.max(body.length, requestBytes)) : body
    },
  }
}

function expensive(name: string, body: Buffer | string, hasKey = true): HostileRequest {
  return { name, call: 'batch', hasKey, make: () => (typeof body === 'string' ? gzipSync(body) : body) }
}

/** Returns requests that are expensive in another way than by their pieces. */
function others(): readonly HostileRequest[] {
  const room = maxBatchBytes - 200
  const shared = (bytes: number, count: number): string =>
    `{"context":{"x":"${'x'.repeat(bytes)}"},"batch":[${Array(count).fill(`{${page}}`).join(',')}]}`
  return [
    expensive('gzip of 2,500 pages with a context of 3 KB', shared(3_000, 2_500)),
    expensive('gzip of 260 pages with a context of 30 KB', shared(30_000, 260)),
    expensive('gzip of spaces', `{"batch":[${' '.repeat(room)}]}`),
    expensive('gzip of spaces, without a key', ' '.repeat(room), false),
    expensive('gzip of a key of 500 KB', `{"${'k'.repeat(room)}":1}`),
    expensive('gzip of a text of 500 KB', `{"batch":["${'x'.repeat(room)}"]}`),
    expensive('gzip of a number of 500 KB', `{"batch":[${'9'.repeat(room)}]}`),
    expensive('gzip of escapes', `{"batch":["${'\\n'.repeat(room / 2)}"]}`),
    expensive(
      'gzip of 250,000 levels',
      `{"batch":[{${page},"a":${'['.repeat(room / 2)}${']'.repeat(room / 2)}}]}`,
    ),
    expensive(
      'gzip of 80,000 levels of objects',
      `{"context":${'{"a":'.repeat(80_000)}1${'}'.repeat(80_000)}}`,
    ),
    expensive('gzip of 2 MB', ' '.repeat(2_000_000)),
    expensive('100 empty members of gzip', Buffer.concat(Array(100).fill(gzipSync('')))),
    expensive('gzip of a text of quotation marks, without a key', `{"a":"${'\\"'.repeat(room / 2)}"}`, false),
    expensive(
      'gzip of a text of quotation marks, and writeKey with an escape, without a key',
      `{"a":"${'\\"'.repeat(room / 2 - 500)}","writeKe\\u0079":"a"}`,
      false,
    ),
    expensive(
      '400 empty blocks of gzip',
      Buffer.concat([
        Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]),
        ...Array(400).fill(Buffer.from([0, 0, 0, 0xff, 0xff])),
      ]),
    ),
  ]
}

/** The requests that are known to be expensive: each piece in each place, plain and in gzip. */
export function knownRequests(): readonly HostileRequest[] {
  const ofPieces = placeNames.flatMap((place) =>
    places[place].of.flatMap((one: Piece) =>
      [...lengths, undefined].map((length) => requestOf(place, [one], length)),
    ),
  )
  return [...ofPieces, ...others()]
}

/** Returns a random request of one to three kinds of pieces. */
export function anyRequest(random: Random): HostileRequest {
  const place = random.pick(placeNames)
  const of: readonly Piece[] = places[place].of
  const pieces = Array.from({ length: 1 + random.below(3) }, () => random.pick(of))
  // Half of the lengths are below 32 KB.
  const length = random.oneIn(4) ? undefined : 2_000 * 2 ** (random.below(800) / 100)
  return requestOf(place, pieces, length)
}
