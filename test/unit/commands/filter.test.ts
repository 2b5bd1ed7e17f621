import { mkdtempSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')

function filter(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'filter', ...args], {
    encoding: 'utf8',
    input: '{"type":"track","event":"E","userId":"u1","messageId":"m9","properties":{"total":200}}\n',
  })
  return { status, lines: stdout.trimEnd().split('\n'), stderr }
}

function message(messageId: string, properties: object): string {
  return JSON.stringify({ type: 'track', event: 'E', userId: 'u1', messageId, properties })
}

test('a condition is tried on a file, and each message is said whether it passes and why not', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'filter-')), 'messages.ndjson')
  writeFileSync(file, [message('m1', { total: 200 }), message('m2', {}), '{"type":"x"}'].join('\n'))
  const tried = filter('test', 'properties.total > 100', file)
  expect(tried).toMatchObject({ status: 0, stderr: '' })
  expect(tried.lines).toEqual([
    'm1: passes',
    'm2: does not pass: it lacks a field of the condition, or one has another type (the message has no such field at character 12: properties.total)',
    expect.stringMatching(/^message 3: goes to no destination: it has a fault \(unknown_type: /),
    '1 of 3 messages pass.',
  ])
})

test('one message comes from standard input, and the result may be JSON', () => {
  const { lines } = filter('test', 'properties.total > 100', '-', '--json')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ messageId: 'm9', result: 'passes' }])
})

test.each([
  [['test', 'event = 1', '-'], "can't be read"],
  [['test', 'event.matches("a")', '-'], 'use glob()'],
  [['from-fql', 'typeof(event) = "a"'], 'nothing for typeof() at character 1'],
])('%j is refused with what to do', (args, words) => {
  const { status, stderr } = filter(...args)
  expect([status, stderr]).toEqual([2, expect.stringContaining(words)])
})

test("a trigger of Segment's is translated", () => {
  expect(filter('from-fql', 'type = "track" and properties.total >= 100').lines).toEqual([
    'type == "track" && properties.total >= 100',
  ])
})
