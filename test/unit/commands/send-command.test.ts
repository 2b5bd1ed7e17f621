import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')

test('messages on standard input are waited for, however late they come', async () => {
  const command = spawn(process.execPath, [main, 'send', '--source', 'shop'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let stderr = ''
  command.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const closed = once(command, 'close')
  await Promise.race([delay(2_000), closed])
  command.stdin.on('error', () => undefined)
  command.stdin.end('{"type":\n')
  const [code] = await closed
  // The message is read before Kafka is looked for.
  expect(stderr).toContain('sluice: the message is not JSON')
  expect(code).toBe(1)
})

const track = '{"type":"track","userId":"u1","event":"Sent"}'

test.each([
  ['nothing', '', 'There is no message'],
  ['a byte order mark alone', '\ufeff\r\n', 'There is no message'],
  ['blank lines before the fault', `${track}\r\n\r\n\r\n{oops}\r\n`, 'line 4: the message is not JSON'],
  [
    'bytes that are not UTF-8',
    Buffer.concat([Buffer.from(`${track}\n{"type":"track","userId":"Zo`), Buffer.from([0xeb, 0x22, 0x7d])]),
    'line 2: is not UTF-8',
  ],
  [
    'a fault after good lines',
    `${track}\n{"type":"track","event":"Sent"}\n`,
    'a track message needs it. Nothing was sent.',
  ],
  [
    'a number that JSON.parse reads as infinite',
    track.replace('}', ',"properties":{"total":1e400}}'),
    'the message has a number over 1.7e308',
  ],
  [
    'a message that is nested deeper than a worker takes',
    track.replace('}', `,"properties":{"a":${'['.repeat(99)}${']'.repeat(99)}}}`),
    'nested_too_deep',
  ],
  [
    'a message that is too large for a worker with its key',
    track.replace('u1', 'u'.repeat(600_000)),
    'body_too_large: with its key',
  ],
])('%s on standard input is refused in one line, and nothing is sent', (_what, input, expected) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'send', '--source', 'shop'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SLUICE_KAFKA_BROKERS: '127.0.0.1:1' },
    input,
  })
  expect(stderr).toMatch(/^sluice: [^\n]+\n$/)
  expect(stderr).toContain(expected)
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
})

test('a source that is empty, as of a variable that is not set, is wrong use', () => {
  const { status, stderr } = spawnSync(process.execPath, [main, 'send', '--source', '', track], {
    encoding: 'utf8',
  })
  expect(stderr).toContain('--source has to be the id of a source')
  expect(status).toBe(2)
})

/** Runs the command where no Kafka is, in a folder with a catalog or without one. */
function sendTo(
  source: string,
  { catalog, flags = [] }: { catalog: string | undefined; flags?: string[] },
): {
  status: number | null
  stdout: string
  stderr: string
} {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-send-'))
  if (catalog !== undefined) writeFileSync(join(folder, 'catalog.yaml'), catalog)
  return spawnSync(process.execPath, [main, 'send', '--source', source, ...flags, track], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SLUICE_KAFKA_BROKERS: '127.0.0.1:1' },
  })
}

const shop = 'sources: [{ id: shop }]\ndestinations: []\n'

test('a source that the catalog lacks is refused with the one that may be meant, before Kafka is looked for', () => {
  const { status, stdout, stderr } = sendTo('shp', { catalog: shop })
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(
    /^sluice: The catalog has no source "shp": did you mean shop\? [^\n]+nothing was sent[^\n]+--any-source\.\n$/,
  )
})

test.each([
  ['a source of the catalog', 'shop', { catalog: shop }],
  ['any source, if this is asked for', 'shp', { catalog: shop, flags: ['--any-source'] }],
])('%s is sent', (_what, source, options) => {
  const { stderr } = sendTo(source, options)
  expect(stderr).not.toContain('The catalog has no source')
  expect(stderr).not.toContain('is not checked')
  expect(stderr).toContain('Kafka')
})

test('without a catalog, the source is not checked, and this is said', () => {
  const { stderr } = sendTo('shp', { catalog: undefined })
  expect(stderr).toContain('The source is not checked, because')
  expect(stderr).toContain('Kafka')
})
