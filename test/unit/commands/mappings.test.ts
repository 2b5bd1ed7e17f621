import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')
const folder = mkdtempSync(join(tmpdir(), 'sluice-mappings-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function mappings(args: readonly string[], input = '') {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'mappings', 'test', ...args], {
    encoding: 'utf8',
    input,
    env: { PATH: process.env['PATH'], SLUICE_CATALOG_FILE: catalog },
  })
  return { status, lines: stdout.trimEnd().split('\n'), stderr }
}

const catalog = file(
  'catalog.yaml',
  `sources: [{ id: shop }]
destinations:
  - id: crm
    sources: [shop]
    filter: { types: [track] }
    batch: {}
    mappings:
      - { condition: 'event == "Paid"', body: { total: { '@path': $.properties.total } } }
      - { condition: 'event == "Form"', format: form, body: { a: b c } }
      - { condition: 'int(event) == 1', body: 1 }
    hooks: [{ url: https://crm.example/ }, { url: https://other.example/secret?key=1 }]
  - { id: plain, sources: [shop], hooks: [{ url: https://plain.example/hook }] }
`,
)

function track(messageId: string, event: string, more: object = {}): string {
  return JSON.stringify({ type: 'track', userId: 'u1', messageId, event, properties: { total: 5 }, ...more })
}

test('the mappings of a destination are tried, and each message is said which one is for it', () => {
  const page = JSON.stringify({ type: 'page', userId: 'u1', messageId: 'm3' })
  const messages = file(
    'messages.ndjson',
    [track('m1', 'Paid'), track('m2', 'Form'), page, '{"type":"x"}'].join('\n'),
  )
  const { status, lines, stderr } = mappings([messages, '--destination', 'crm'])
  // The last one has a fault.
  expect([status, stderr]).toEqual([1, ''])
  expect(lines).toEqual([
    'm1: mapping 1, as a part of a batch',
    '  POST https://crm.example/',
    '  POST https://other.example/…',
    '  Content-Type: application/json',
    '  {"total":5}',
    'm2: mapping 2, alone and not in a batch',
    '  POST https://crm.example/',
    '  POST https://other.example/…',
    '  Content-Type: application/x-www-form-urlencoded',
    '  a=b+c',
    'm3: no request',
    expect.stringMatching(/^message 4: goes to no destination, because it has a fault: unknown_type: /),
    '2 of 4 messages get a request.',
  ])
})

test('a condition that can not be evaluated makes the exit code 1, and says whose it is', () => {
  const { status, lines } = mappings(['-', '--destination', 'crm'], track('m1', 'Seen'))
  expect([status, lines[0]]).toEqual([
    1,
    'm1: becomes a dead letter (filter_failed), because the condition of mapping 3 can not be evaluated: int conversion error at character 1',
  ])
})

test('a destination without mappings gets a message as it is', () => {
  const { status, lines } = mappings(['-', '--destination', 'plain', '--json'], track('m1', 'Seen'))
  const [result] = lines.map((line): unknown => JSON.parse(line))
  expect(status).toBe(0)
  expect(result).toMatchObject({
    messageId: 'm1',
    mapping: null,
    request: { method: 'POST', path: '', isAlone: false, body: expect.stringContaining('"event":"Seen"') },
    urls: ['https://plain.example/…'],
  })
})

test.each([
  ['a list', '- { path: "/users/{{userId}}", body: { id: { "@path": $.messageId } } }'],
  ['one mapping', '{"path":"/users/{{userId}}","body":{"id":{"@path":"$.messageId"}}}'],
  ['a destination', 'mappings:\n  - path: /users/{{userId}}\n    body: { id: { "@path": $.messageId } }\n'],
])('mappings come from a file with %s', (_, text) => {
  const { status, lines } = mappings(['-', '--mappings', file('mappings', text)], track('m1', 'E'))
  expect([status, lines]).toEqual([
    0,
    [
      'm1: mapping 1',
      '  POST {URL}/users/u1',
      '  Content-Type: application/json',
      '  {"id":"m1"}',
      '1 of 1 message gets a request.',
    ],
  ])
})

const unused = file('unused', track('m1', 'E'))

test.each([
  [[unused], 'Say which mappings'],
  [[unused, '--destination', 'crm', '--mappings', 'x'], 'Say which mappings'],
  [['--destination', 'crm'], 'Say which messages'],
  [['-', '--mappings', '-'], 'Standard input has either'],
  [[unused, '--destination', 'crm', '--limit', '5'], 'goes with --source'],
  [[unused, '--destination', 'nobody'], 'has no destination "nobody"'],
  [[unused, '--mappings', file('bad', '[{ body: { "@liquid": x } }]')], 'is not a directive that Sluice has'],
  [[unused, '--mappings', file('odd', '[{ a')], 'odd:1:'],
])('%j is refused with what to do', (args, words) => {
  const { status, stderr } = mappings(args)
  expect([status, stderr]).toEqual([2, expect.stringContaining(words)])
})
