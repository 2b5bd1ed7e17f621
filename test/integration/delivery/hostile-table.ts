import { gzipSync } from 'node:zlib'
import { around, dead, delivered, type HostileRecord, source, sourceId, time, whole } from './hostile-rows.ts'

const MIB = 1024 ** 2

const page = (fields = '"n":1') => `{"type":"page","userId":"u",${fields}}`
const known = (text: string) => `"messageId":"ID","timestamp":"${time}",${text}`
const nested = (levels: number) => `"n":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}`
const keys = (count: number) =>
  `"n":{${Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',')}}`
const latin1 = (text: string) => Buffer.from(text, 'latin1')
/** Returns a text with bytes that are not valid text. They replace the `?` in the text. */
function withBytes(text: string, ...bytes: number[]): Buffer {
  const [before = '', after = ''] = text.split('?')
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])
}

const keysOfObjects: HostileRecord[] = [
  delivered('a field __proto__', '"__proto__":{"admin":true}'),
  delivered('a field __proto__ of null', '"__proto__":null'),
  whole(
    '__proto__ deep inside',
    page(known('"properties":{"a":[{"__proto__":{"polluted":true}}]}')),
    `{"version":1,${page(known('"properties":{"a":[{"__proto__":{"polluted":true}}]},"context":{}')).slice(1)}`,
  ),
  delivered('__proto__ in integrations', '"integrations":{"All":true,"__proto__":{"Webhooks":false}}'),
  delivered('__proto__ with an escape', '"__proto\\u005f_":1', '"__proto__":1'),
  delivered('a field constructor', '"constructor":{"prototype":{"polluted":1}}'),
  delivered('a field toJSON', '"toJSON":"x"'),
  delivered('fields of objects', '"hasOwnProperty":1,"toString":null,"valueOf":[]'),
  delivered('an empty key', '"":1'),
  delivered('a key of spaces', '"  ":1'),
  delivered('a repeated key', '"a":1,"a":2', '"a":2'),
  whole(
    'a repeated key of its own',
    `{"type":"page","userId":5,${known('"n":1')},"userId":"u"}`,
    `{"version":1,${page(known('"n":1,"context":{},"properties":{}')).slice(1)}`,
  ),
  delivered(
    'keys like integers',
    '"n":{"b":1,"10":1,"2":1,"-1":1,"01":1}',
    '"n":{"2":1,"10":1,"b":1,"-1":1,"01":1}',
  ),
  delivered('a key with an escape', '"\\u0061\\u002e":1', '"a.":1'),
  delivered('a key that is a backslash', '"a":1,"\\\\":2'),
  delivered('a key that is an escape', '"a":1,"\\n":2'),
  delivered('a key of a lone surrogate', '"\\ud800":1'),
  delivered('a key of 100 KB', `"${'k'.repeat(100_000)}":1`),
  delivered('as many keys as there may be', keys(9_992)),
]

const numbers: HostileRecord[] = [
  delivered('the number 1E5', '"n":1E5', '"n":100000'),
  delivered('the number 1.0', '"n":1.0', '"n":1'),
  delivered('the number -0', '"n":[-0,-0.0,0e9]', '"n":[0,0,0]'),
  delivered('2^53 + 1', '"n":9007199254740993', '"n":9007199254740992'),
  delivered('twenty digits', '"n":12345678901234567890', '"n":12345678901234567000'),
  delivered('the number 1e21', '"n":1e21', '"n":1e+21'),
  delivered('the number 1e20', '"n":1e20', '"n":100000000000000000000'),
  delivered('the number 1e-400', '"n":1e-400', '"n":0'),
  delivered('the least number', '"n":5e-324'),
  delivered('the largest number', '"n":1.7976931348623157e308', '"n":1.7976931348623157e+308'),
  delivered('a tenth in fifty digits', `"n":0.1${'0'.repeat(48)}1`, '"n":0.1'),
  delivered(
    'a number of 100,000 digits that is small',
    `"n":0.${'1'.repeat(100_000)}`,
    '"n":0.1111111111111111',
  ),
  dead('number_out_of_range', 'the number 1e400', page('"n":1e400')),
  dead('number_out_of_range', 'the number -1e309, deep inside', page('"n":[{"a":[null,-1e309]}]')),
  dead('number_out_of_range', 'a number of 400 digits', page(`"n":${'9'.repeat(400)}`)),
  dead('number_out_of_range', 'a number of 100,000 digits', page(`"n":${'9'.repeat(100_000)}`)),
]

const strings: HostileRecord[] = [
  delivered('a lone surrogate', '"s":"\\ud800"'),
  delivered('surrogates in the wrong order', '"s":"\\ude00\\ud83d"'),
  delivered('an escaped pair of surrogates', '"s":"\\ud83d\\ude00"', '"s":"😀"'),
  delivered('an escaped solidus', '"s":"\\/"', '"s":"/"'),
  delivered('NUL', '"s":"a\\u0000b"'),
  delivered('all control characters', '"s":"\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f"'),
  delivered('DEL and C1 controls', '"s":"\u007f\u0085\u009f"'),
  delivered('line separators', '"s":"\u2028\u2029"'),
  delivered('escaped line separators', '"s":"\\u2028\\u2029"', '"s":"\u2028\u2029"'),
  delivered('noncharacters', '"s":"\ufffe\uffff\ufdd0"'),
  delivered('right-to-left overrides and joiners', '"s":"\u202e\u200d\u200b\ufeff👨‍👩‍👧"'),
  delivered('a letter with a thousand accents', `"s":"e${'\u0301'.repeat(1_000)}"`),
  delivered('a header injection', '"s":"\\r\\nX-Signature: 0\\r\\n\\r\\n"'),
  delivered('a script', '"s":"</script><script>alert(1)</script>"'),
  delivered('a template', '"s":"${CATALOG_SECRET} {{secret}} %s %n"'),
  delivered('a string of 900 KB', `"s":"${'s'.repeat(900_000)}"`),
  delivered('a string of 300,000 escapes', `"s":"${'\\"'.repeat(300_000)}"`),
  delivered('a string of brackets', `"s":"${'[{'.repeat(50_000)}"`),
]

const shapes: HostileRecord[] = [
  delivered('as many levels as there may be', nested(100)),
  delivered('100,000 empty objects', `"n":[${'{},'.repeat(99_999)}{}]`),
  delivered('300,000 numbers', `"n":[${'0,'.repeat(299_999)}0]`),
  delivered('fields of every type', '"a":null,"b":true,"c":[],"d":{},"e":"","f":0'),
  whole(
    'spaces everywhere',
    ` \t\r\n{ "type" : "page" ,\n"userId":"u" , "messageId" : "ID","timestamp":"${time}" , "n" : [ 1 , { } ] } \n `,
    `{"version":1,"type":"page","userId":"u","messageId":"ID","timestamp":"${time}","n":[1,{}],"context":{},"properties":{}}`,
  ),
  whole(
    'a byte order mark',
    `\ufeff${page(known('"n":1'))}`,
    `{"version":1,${page(known('"n":1,"context":{},"properties":{}')).slice(1)}`,
  ),
  whole(
    'an escaped type',
    page(known('"n":1')).replace('type', 'typ\\u0065'),
    `{"version":1,${page(known('"n":1,"context":{},"properties":{}')).slice(1)}`,
  ),
  dead('nested_too_deep', 'a level more than there may be', page(nested(101))),
  dead('nested_too_deep', '101 levels of objects', page(`"n":${'{"a":'.repeat(100)}0${'}'.repeat(100)}`)),
  dead('nested_too_deep', '100,000 levels', page(nested(100_000))),
  dead('nested_too_deep', '100,000 levels in the context', page(`"context":{${nested(100_000)}}`)),
  dead('too_many_keys', 'a key more than there may be', page(keys(10_000))),
  dead('too_many_keys', '70,000 keys', page(keys(70_000))),
  dead('not_json', '500,000 open brackets', '['.repeat(500_000)),
  dead('not_json', '200,000 open objects', '{"a":'.repeat(200_000)),
]

const sizes: HostileRecord[] = [
  dead('body_too_large', 'a message of a mebibyte and more', page(`"s":"${'s'.repeat(MIB)}"`)),
  dead('body_too_large', 'numbers that are long when written out', page(`"n":[${'1e20,'.repeat(60_000)}0]`)),
  dead('body_too_large', 'two mebibytes of spaces', ' '.repeat(2 * MIB), { omits: ['value'] }),
  dead('body_too_large', 'eight mebibytes of message', page(`"s":"${'s'.repeat(8 * MIB)}"`), {
    omits: ['value'],
  }),
  dead('body_too_large', 'a key of a mebibyte', page(), { key: 'k'.repeat(MIB) }),
  dead('body_too_large', 'a key of two mebibytes', page(), {
    key: 'k'.repeat(2 * MIB),
    omits: ['value', 'key'],
  }),
  dead('empty_value', 'no value and a key of two mebibytes', null, {
    key: 'k'.repeat(2 * MIB),
    omits: ['value', 'key'],
  }),
  around('a key of the record of 100 KB', { key: 'k'.repeat(100_000) }),
  around('a key that is no UTF-8', { key: Buffer.from([0xff, 0x00, 0xc0, 0x80]) }),
  around('an empty key of the record', { key: '' }),
  around('no key', { key: null }),
]

const noMessages: HostileRecord[] = [
  dead('empty_value', 'a tombstone', null),
  dead('empty_value', 'a tombstone with a key', null, { key: 'u' }),
  dead('empty_value', 'no bytes', ''),
  dead('not_json', 'a space', ' '),
  dead('not_json', 'a byte order mark alone', '\ufeff'),
  dead('no_schema_registry', 'NUL bytes', Buffer.alloc(16)),
  dead('not_an_object', 'null', 'null'),
  dead('not_an_object', 'true', 'true'),
  dead('not_an_object', 'a number', '42'),
  dead('not_an_object', 'a string', '"page"'),
  dead('not_an_object', 'an empty array', '[]'),
  dead('not_an_object', 'messages in an array', `[${page()}]`),
  dead('unknown_type', 'an empty object', '{}'),
  dead('unknown_type', 'a batch of the HTTP API', `{"batch":[${page()}],"writeKey":"k"}`),
  dead('unknown_type', 'a message inside of __proto__', `{"__proto__":${page()}}`),
  dead('not_json', 'half a message', '{"type":"page","userId":"u'),
  dead('not_json', 'two messages', `${page()}${page()}`),
  dead('not_json', 'two messages in lines', `${page()}\n${page()}`),
  dead('not_json', 'NaN', page('"n":NaN')),
  dead('not_json', 'Infinity', page('"n":-Infinity')),
  dead('not_json', 'undefined', page('"n":undefined')),
  dead('not_json', 'single quotes', "{'type':'page'}"),
  dead('not_json', 'keys without quotes', '{type:"page",userId:"u"}'),
  dead('not_json', 'a comma too many', '{"type":"page","userId":"u",}'),
  dead('not_json', 'a comment', `/* page */${page()}`),
  dead('not_json', 'a leading zero', page('"n":01')),
  dead('not_json', 'a plus', page('"n":+1')),
  dead('not_json', 'a hexadecimal number', page('"n":0x10')),
  dead('not_json', 'a dot without digits', page('"n":1.')),
  dead('not_json', 'a line feed in a string', page('"s":"a\nb"')),
  dead('not_json', 'a control character in a string', page('"s":"\u0001"')),
  dead('not_json', 'an escape that is none', page('"s":"\\x41"')),
  dead('not_json', 'half an escape', page('"s":"\\u12"')),
  dead('not_json', 'a string of JSON with a wrong space', page('\u00a0"n":1')),
  dead('not_json', 'two byte order marks', `\ufeff\ufeff${page()}`),
  dead('not_json', 'XML', '<message type="page"/>'),
  dead('not_json', 'a form', 'type=page&userId=u'),
  dead('not_json', 'UTF-16', Buffer.from(page(), 'utf16le')),
  dead(
    'not_utf8',
    'UTF-16 with its mark',
    Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(page(), 'utf16le')]),
  ),
  dead('not_utf8', 'Latin-1', latin1(page('"s":"é"'))),
  dead('not_utf8', 'an overlong NUL', withBytes(page('"s":"?"'), 0xc0, 0x80)),
  dead('not_utf8', 'an overlong solidus', withBytes(page('"s":"?"'), 0xe0, 0x80, 0xaf)),
  dead('not_utf8', 'surrogates as bytes', withBytes(page('"s":"?"'), 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80)),
  dead('not_utf8', 'a character beyond Unicode', withBytes(page('"s":"?"'), 0xf4, 0x90, 0x80, 0x80)),
  dead('not_utf8', 'half a character', withBytes(page('"s":"?"'), 0xe2, 0x82)),
  dead('not_utf8', 'a byte that is never there', withBytes(page('"s":"?"'), 0xff)),
  dead('not_utf8', 'half a character at the end', withBytes(`${page()}?`, 0xe2)),
  dead('not_utf8', 'gzip', gzipSync(page())),
  dead(
    'no_schema_registry',
    'the frame of a schema registry',
    Buffer.concat([Buffer.from([0, 0, 0, 0, 7]), Buffer.from(page())]),
  ),
  dead('not_utf8', 'random bytes', Buffer.from('9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c', 'hex')),
]

const wrongFields: HostileRecord[] = [
  dead('unknown_type', 'a type that nobody knows', '{"type":"purchase","userId":"u"}'),
  dead('unknown_type', 'a type in capitals', '{"type":"Page","userId":"u"}'),
  dead('unknown_type', 'a type that every object has', '{"type":"__proto__","userId":"u"}'),
  dead('unknown_type', 'a type in an array', '{"type":["page"],"userId":"u"}'),
  dead('no_user_anon_id', 'no ids', '{"type":"page"}'),
  dead('no_user_anon_id', 'empty ids', '{"type":"page","userId":"","anonymousId":null}'),
  dead('no_user_anon_id', 'a delete without its user', '{"type":"delete","anonymousId":"a"}'),
  dead('no_user_anon_id', 'an alias without its user', '{"type":"alias","previousId":"p"}'),
  dead('no_previous_id', 'an alias without what it was', '{"type":"alias","userId":"u"}'),
  dead('id_not_string', 'a number for a userId', '{"type":"page","userId":5}'),
  dead('id_not_string', 'an object for a userId', '{"type":"page","userId":{"$ne":null}}'),
  dead('id_not_string', 'an array for an anonymousId', '{"type":"page","anonymousId":["a"]}'),
  dead('id_not_string', 'a boolean for a groupId', '{"type":"group","userId":"u","groupId":true}'),
  dead('group_id_not_defined', 'a group without an id', '{"type":"group","userId":"u"}'),
  dead('event_not_defined', 'a track without an event', '{"type":"track","userId":"u"}'),
  dead('event_not_defined', 'a track of null', '{"type":"track","userId":"u","event":null}'),
  dead('event_not_string', 'a number for an event', '{"type":"track","userId":"u","event":5}'),
  dead('properties_not_object', 'an array for properties', page('"properties":[]')),
  dead('traits_not_object', 'a string for traits', '{"type":"identify","userId":"u","traits":"t"}'),
  dead('context_not_object', 'a number for a context', page('"context":5')),
  dead('integrations_not_object', 'an array for integrations', page('"integrations":["Webhooks"]')),
  dead('message_id_not_string', 'a number for a messageId', page('"messageId":5')),
  dead('message_id_too_long', 'a messageId of 101 characters', page(`"messageId":"${'m'.repeat(101)}"`)),
  dead('message_id_too_long', 'a messageId of half a megabyte', page(`"messageId":"${'m'.repeat(500_000)}"`)),
  dead('bad_timestamp', 'a number for a timestamp', page('"timestamp":1700000000')),
  dead('bad_timestamp', 'a word for a timestamp', page('"timestamp":"today"')),
  dead('bad_timestamp', 'the 30th of February', page('"timestamp":"2024-02-30T00:00:00Z"')),
  dead('bad_timestamp', 'the year 10000', page('"timestamp":"+010000-01-01T00:00:00Z"')),
]

const rightFields: HostileRecord[] = [
  whole(
    'a context of null',
    page(known('"context":null')),
    `{"version":1,${page(known('"context":{},"properties":{}')).slice(1)}`,
  ),
  whole(
    'properties of null',
    page(known('"properties":null,"n":1')),
    `{"version":1,${page(known('"properties":{},"n":1,"context":{}')).slice(1)}`,
  ),
  whole(
    'no traits',
    `{"type":"identify","userId":"u",${known('"n":1')}}`,
    `{"version":1,"type":"identify","userId":"u",${known('"n":1')},"context":{},"traits":{}}`,
  ),
  whole(
    'a version that is no number',
    `{"version":"1.1",${page(known('"n":1')).slice(1)}`,
    `{"version":1,${page(known('"n":1,"context":{},"properties":{}')).slice(1)}`,
  ),
  whole(
    'an anonymousId beside a userId of null',
    `{"type":"page","userId":null,"anonymousId":"a",${known('"n":1')}}`,
    `{"version":1,"type":"page","userId":null,"anonymousId":"a",${known('"n":1')},"context":{},"properties":{}}`,
  ),
  whole(
    'a timestamp of a hundred thousand digits',
    page(`"messageId":"ID","timestamp":"2024-01-02T03:04:05.006${'9'.repeat(100_000)}Z"`),
    `{"version":1,${page(`"messageId":"ID","timestamp":"${time}","context":{},"properties":{}`).slice(1)}`,
  ),
  whole(
    'second 60 in another zone',
    page('"messageId":"ID","timestamp":"2016-12-31 18:59:60-05"'),
    `{"version":1,${page('"messageId":"ID","timestamp":"2017-01-01T00:00:00.000Z","context":{},"properties":{}').slice(1)}`,
  ),
  whole(
    'the year 0',
    page('"messageId":"ID","timestamp":"0000-01-01"'),
    `{"version":1,${page('"messageId":"ID","timestamp":"0000-01-01T00:00:00.000Z","context":{},"properties":{}').slice(1)}`,
  ),
  whole(
    'an alias in the spelling of receivers',
    `{"type":"alias","User ID":"u","Previous ID":"p",${known('"n":1')}}`,
    `{"version":1,"type":"alias","User ID":"u","Previous ID":"p",${known('"n":1')},"context":{},"userId":"u","previousId":"p"}`,
  ),
  whole(
    'a delete',
    `{"type":"delete","userId":"u",${known('"n":1')}}`,
    `{"type":"delete","userId":"u",${known('"n":1')},"context":{}}`,
  ),
  {
    name: 'no messageId',
    record: { value: page(`"timestamp":"${time}"`), headers: source },
    becomes: {
      messageId: 'MADE_ID',
      body: `{"version":1,"type":"page","userId":"u","timestamp":"${time}","messageId":"MADE_ID","context":{},"properties":{}}`,
    },
  },
  ...['😀'.repeat(100), 'a"\\\r\n\u0000\u2028', '../../etc/passwd', '__proto__'].map(
    (messageId): HostileRecord => {
      const fields = `"type":"page","userId":"u","messageId":${JSON.stringify(messageId)},"timestamp":"${time}"`
      return {
        name: `a messageId of ${JSON.stringify(messageId.slice(0, 20))}`,
        record: { value: `{${fields}}`, headers: source },
        becomes: { messageId, body: `{"version":1,${fields},"context":{},"properties":{}}` },
      }
    },
  ),
]

const badUtf8 = Buffer.from([0xff, 0xfe, 0xc0])
const recordHeaders: HostileRecord[] = [
  dead('no_source', 'no headers', page(), { headers: [] }),
  dead('no_source', 'a source-id without a value', page(), { headers: [['source-id', null]] }),
  dead('no_source', 'an empty source-id', page(), { headers: [['source-id', '']] }),
  dead('no_source', 'a Source-Id in capitals', page(), { headers: [['Source-Id', sourceId]] }),
  dead('no_source', 'a source-id behind 2,000 other headers', page(), {
    headers: [...Array.from({ length: 2_000 }, (_, index) => [`h${index}`, ''] as const), ...source],
  }),
  dead('unknown_source', 'an unknown source-id', page(), { headers: [['source-id', 'nobody']] }),
  dead('unknown_source', 'a source-id with a space', page(), { headers: [['source-id', `${sourceId} `]] }),
  dead('unknown_source', 'a source-id that is no UTF-8', page(), { headers: [['source-id', badUtf8]] }),
  dead('unknown_source', 'a source-id of half a megabyte', page(), {
    headers: [['source-id', 's'.repeat(500_000)]],
  }),
  dead(
    'unknown_source',
    'a source-id of 600 KB, and a value as large',
    page(`"s":"${'s'.repeat(600_000)}"`),
    {
      headers: [['source-id', 's'.repeat(600_000)]],
    },
  ),
  dead('unknown_source', 'the source-id __proto__', page(), { headers: [['source-id', '__proto__']] }),
  around('a source-id that is repeated', { headers: [...source, ['source-id', 'nobody']] }),
  around('50,000 headers', {
    headers: [...source, ...Array.from({ length: 50_000 }, (_, index) => [`h${index}`, null] as const)],
  }),
  around('a header that is there 50,000 times', {
    headers: [...source, ...Array.from({ length: 50_000 }, () => ['h', 'v'] as const)],
  }),
  around('a header of half a megabyte', { headers: [...source, ['h', 'v'.repeat(500_000)]] }),
  around('a name of half a megabyte', { headers: [['h'.repeat(500_000), 'v'], ...source] }),
  around('headers that are no UTF-8', { headers: [[badUtf8, badUtf8], ...source] }),
  around('a header without a name', { headers: [['', 'v'], ...source] }),
  around('headers without values', { headers: [['a', null], ['b', ''], ...source, ['a', null]] }),
  around('headers with the names of what objects have', {
    headers: [['__proto__', 'v'], ['constructor', 'v'], ['toString', 'v'], ['__proto__', null], ...source],
  }),
  around('the headers of a retry', {
    headers: [['destination-id', 'nobody'], ['rung', '99'], ['expires-at', '1'], ['reason', 'x'], ...source],
  }),
]

export const hostileRecords: readonly HostileRecord[] = [
  ...keysOfObjects,
  ...numbers,
  ...strings,
  ...shapes,
  ...sizes,
  ...noMessages,
  ...wrongFields,
  ...rightFields,
  ...recordHeaders,
]
