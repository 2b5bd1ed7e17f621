import { gzipSync } from 'node:zlib'
import { maxBatchBytes } from '../../src/gateway/messages/request-limits.ts'

/** The body of a request that should cost the gateway much time or memory. `name` describes it. */
export type HarmfulBody = { readonly name: string; readonly body: Buffer }

/**
 * Returns harmful bodies. None is larger than a batch may be. A body in gzip may become larger than that when
 * it is unpacked.
 */
export function harmfulBodies(): readonly HarmfulBody[] {
  return Object.entries({ ...sharedContexts(), ...items(), ...texts(), ...compressed() }).map(
    ([name, body]) => ({
      name,
      body: typeof body === 'string' ? Buffer.from(body) : body,
    }),
  )
}

type Bodies = Readonly<Record<string, string | Buffer>>

const tiny = '{"type":"page","userId":"u"}'
/** The bytes that a body at the size limit has left for its variable part. */
const room = maxBatchBytes - 200

function batchOf(item: string, count: number, shared = ''): string {
  return `{${shared}"batch":[${Array(count).fill(item).join(',')}]}`
}

/** Returns a batch with as many items as fit. It has at most 2,500 items, as many as a batch may have. */
function fullBatchOf(item: string, shared = ''): string {
  const count = Math.floor((room - shared.length) / (item.length + 1))
  return batchOf(item, Math.min(2_500, count), shared)
}

/** Returns a batch of one message whose properties have as many members as fit. */
function largeItemOf(member: (index: number) => string, [open, close]: readonly [string, string]): string {
  const members: string[] = []
  for (let bytes = 0, index = 0; ; index++) {
    const text = member(index)
    bytes += text.length + 1
    if (bytes > room) break
    members.push(text)
  }
  return `{"batch":[{"type":"page","userId":"u","properties":${open}${members.join(',')}${close}}]}`
}

function keys(count: number, value = '1'): string {
  return Array.from({ length: count }, (_, index) => `"k${index.toString(36)}":${value}`).join(',')
}

/** Returns an object with this number of keys. Objects of different parents share keys, which keeps it small. */
function nestedKeys(count: number): string {
  const inner = Array.from({ length: 26 }, (_, index) => `"${String.fromCharCode(97 + index)}":1`)
  const full = Array(Math.floor((count - 1) / 26)).fill(`{${inner.join(',')}}`)
  return `{"a":[${[...full, `{${inner.slice(0, (count - 1) % 26).join(',')}}`].join(',')}]}`
}

/**
 * Returns a batch of 2,500 messages. Each message gets this number of keys from the fields of the batch.
 * `count` should be close to the number of keys that a message may have.
 */
function nearLimitOfKeys(count: number): string {
  const half = Math.floor(count / 2)
  const shared = `"context":${nestedKeys(half)},"integrations":${nestedKeys(count - half)},`
  return batchOf('{"type":"alias","userId":"u","previousId":"p"}', 2_500, shared)
}

/** Returns bodies whose batch sets fields for all of its messages. */
function sharedContexts(): Bodies {
  const deep = `"context":${'{"a":'.repeat(119)}1${'}'.repeat(119)},`
  const large = `"context":{"pad":"${'x'.repeat(30_000)}"},`
  const manyKeys = `"context":{${keys(2_500)}},`
  return {
    '3,300 keys and 1e999 for 2,500 messages': batchOf(
      '{"type":"page","userId":"u"}',
      2_500,
      `"context":{${keys(3_300)},"n":1e999},`,
    ),
    '3,300 keys and 1e999, each a number': fullBatchOf('7', `"context":{${keys(3_300)},"n":1e999},`),
    '120 levels for 2,500 messages': fullBatchOf(tiny, deep),
    '30 KB for 260 messages': batchOf(tiny, 260, large),
    '30 KB for 2,500 messages': fullBatchOf(tiny, large),
    '30 KB above ASCII for 2,500 messages': fullBatchOf(tiny, `"context":{"pad":"${'漢'.repeat(10_000)}"},`),
    '3 KB for 2,500 messages': fullBatchOf(tiny, `"context":{"pad":"${'x'.repeat(3_000)}"},`),
    '3 KB of escapes for 2,500 messages': fullBatchOf(tiny, `"context":{"pad":"${'\\n'.repeat(1_500)}"},`),
    '2,500 keys for 250 messages that override some': batchOf(
      `{"type":"page","userId":"u","context":{${keys(100, '2')}}}`,
      250,
      manyKeys,
    ),
    '500 keys for 2,500 messages that override some': fullBatchOf(
      `{"type":"page","userId":"u","context":{${keys(20, '2')}}}`,
      `"context":{${keys(350)}},`,
    ),
    'brackets in strings for 2,500 messages': fullBatchOf(tiny, `"context":{"pad":"${'{'.repeat(3_000)}"},`),
    'nulls for 2,500 messages': fullBatchOf(
      tiny,
      `"context":{"pad":[${Array(600).fill('null').join(',')}]},`,
    ),
    'as many keys as a message may have, for 2,500 messages': nearLimitOfKeys(9_987),
    'as many keys as only the gateway would take, for 2,500 messages': nearLimitOfKeys(9_989),
    'context and integrations of 1.5 KB each': fullBatchOf(
      tiny,
      `"context":{"pad":"${'x'.repeat(1_500)}"},"integrations":{"pad":"${'x'.repeat(1_500)}"},`,
    ),
  }
}

/** Returns bodies whose messages are harmful. */
function items(): Bodies {
  return {
    '2,500 messages': fullBatchOf(tiny),
    '2,500 messages of other fields each': `{"batch":[${Array.from({ length: 2_500 }, (_, index) => `{"type":"page","userId":"u${index}","f${index}":1,"g${index}":{"h${index}":1}}`).join(',')}]}`,
    '2,500 messages without a user': fullBatchOf('{"type":"track","event":"E"}'),
    '2,500 messages whose event is a number': fullBatchOf('{"type":"track","userId":"u","event":7}'),
    '2,500 messages whose properties are a list': fullBatchOf(
      '{"type":"track","userId":"u","event":"E","properties":[]}',
    ),
    '2,500 messages in which all is wrong': fullBatchOf(
      '{"type":"alias","userId":[],"anonymousId":{},"messageId":[],"timestamp":7,"context":7,"integrations":7,"previousId":[],"User ID":7,"Previous ID":7}',
    ),
    '2,500 messages whose texts are too long': fullBatchOf(
      `{"type":"group","userId":"u","messageId":"${'x'.repeat(101)}"}`,
    ),
    '2,500 times null': fullBatchOf('null'),
    '100,000 times null': `{"batch":[${Array(100_000).fill('null').join(',')}]}`,
    '2,500 messages with a NaN': fullBatchOf('{"type":"page","userId":"u","properties":{"a":NaN}}'),
    'one message with 120,000 NaNs': largeItemOf(() => 'NaN', ['[', ']']),
    'one message with 250,000 numbers': largeItemOf(() => '1', ['[', ']']),
    'one message of numbers of 17 digits': largeItemOf(
      (index) => `12345678901${100_000 + index}`,
      ['[', ']'],
    ),
    'one message of fractions of 300 digits': largeItemOf(
      (index) => `0.${index}${'7'.repeat(290)}e-300`,
      ['[', ']'],
    ),
    'one message of 1e999': largeItemOf(() => '1e999', ['[', ']']),
    'one message of empty objects': largeItemOf(() => '{}', ['[', ']']),
    'one message of empty lists': largeItemOf(() => '[]', ['[', ']']),
    'one message of objects of a field each': largeItemOf(
      (index) => `{"${index.toString(36)}":1}`,
      ['[', ']'],
    ),
    'one message of objects of one field': largeItemOf(() => '{"a":1}', ['[', ']']),
    'one message of many keys': largeItemOf((index) => `"${index.toString(36)}":1`, ['{', '}']),
    'one message of keys like numbers': largeItemOf((index) => `"${index * 7_919}":1`, ['{', '}']),
    'one message of one key': largeItemOf(() => '"a":1', ['{', '}']),
    'one message of __proto__': largeItemOf(() => '"__proto__":{}', ['{', '}']),
    'messages of 30 KB with 5,000 keys': fullBatchOf(
      `{"type":"page","userId":"u","properties":{${keys(3_800)}}}`,
    ),
    'messages of 30 KB with 10,000 empty objects': fullBatchOf(
      `{"type":"page","userId":"u","properties":[${Array(9_900).fill('{}').join(',')}]}`,
    ),
    'messages of 90 levels': fullBatchOf(
      `{"type":"page","userId":"u","a":${'['.repeat(90)}${']'.repeat(90)}}`,
    ),
    'messages of 110 levels': fullBatchOf(
      `{"type":"page","userId":"u","a":${'['.repeat(110)}${']'.repeat(110)}}`,
    ),
    'messages of 15,000 levels': fullBatchOf(
      `{"type":"page","userId":"u","a":${'['.repeat(15_000)}${']'.repeat(15_000)}}`,
    ),
    'messages of 5,000 levels of objects': fullBatchOf(
      `{"type":"page","userId":"u","a":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`,
    ),
    'one message of 250,000 levels': fullBatchOf(
      `{"type":"page","userId":"u","a":${'['.repeat(250_000)}${']'.repeat(250_000)}}`,
    ),
    'one message of 80,000 levels of objects': `{"batch":[{"type":"page","userId":"u","a":${'{"a":'.repeat(80_000)}1${'}'.repeat(80_000)}}]}`,
  }
}

/** Returns bodies whose strings or numbers are harmful. */
function texts(): Bodies {
  const escapedKey = '"\\\\":1,'
  return {
    backslashes: `{"batch":["${'\\\\'.repeat(room / 2)}"]}`,
    'escaped quotes': `{"batch":["${'\\"'.repeat(room / 2)}"]}`,
    'an escaped key and 250,000 numbers': largeItemOf(
      (index) => (index === 0 ? '{"\\\\":1,"\\n":1}' : '1'),
      ['[', ']'],
    ),
    'an escaped key and empty objects': largeItemOf(
      (index) => (index === 0 ? '{"\\\\":1,"\\n":1}' : '{}'),
      ['[', ']'],
    ),
    'an escaped key and many keys': largeItemOf(
      (index) => (index === 0 ? '"\\\\":1,"\\n":1' : `"${index.toString(36)}":1`),
      ['{', '}'],
    ),
    'an escaped key and 70,000 strings': largeItemOf(
      (index) => (index === 0 ? '{"\\\\":1,"\\n":1}' : '"\\n"'),
      ['[', ']'],
    ),
    'an escaped key and objects of a field': largeItemOf(
      (index) => (index === 0 ? '{"\\\\":1,"\\n":1}' : `{"${index.toString(36)}":1}`),
      ['[', ']'],
    ),
    'escaped keys, all the same': `{"batch":[{"type":"page","userId":"u",${escapedKey.repeat(Math.floor(room / escapedKey.length) - 20)}"a":1}]}`,
    'an unclosed string of escapes': `{"batch":["${'\\n'.repeat(room / 2)}`,
    'NaN before an unclosed string of escapes': `{"batch":[NaN,"${'\\n'.repeat(room / 2)}`,
    'a number of 500,000 digits': `{"batch":[${'9'.repeat(room)}]}`,
    'a number of 500,000 digits and a fault': `{"batch":[${'9'.repeat(room)}}`,
    'brackets without an end': '['.repeat(maxBatchBytes),
    'write keys': `{"batch":[${Array(30_000).fill('{"writeKey":1}').join(',')}]}`,
    'characters above ASCII': `{"batch":["${'漢'.repeat(room / 3)}"]}`,
    'a key of 500 KB': `{"${'k'.repeat(room)}":1}`,
  }
}

/** Returns bodies that are harmful because of their gzip. */
function compressed(): Bodies {
  const mebi = 1_024 * 1_024
  const empty = gzipSync('')
  return {
    'gzip of spaces, 400 MB': gzipSync(Buffer.alloc(400 * mebi, ' ')),
    'gzip of numbers up to the limit': gzipSync(largeItemOf(() => '1', ['[', ']'])),
    'gzip of 25,000 empty members': Buffer.concat(
      Array(Math.floor(maxBatchBytes / empty.length)).fill(empty),
    ),
    'gzip of empty blocks': emptyBlocks(),
    'gzip without an end': gzipSync(Buffer.alloc(16 * mebi, 'x')).subarray(0, 10_000),
  }
}

/** Returns a gzip stream of stored blocks that are all empty. It has no last block. */
function emptyBlocks(): Buffer {
  const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3])
  const block = Buffer.from([0, 0, 0, 0xff, 0xff])
  const blocks = Array(Math.floor((maxBatchBytes - head.length) / block.length)).fill(block)
  return Buffer.concat([head, ...blocks])
}
