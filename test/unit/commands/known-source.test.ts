import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')
const folder = mkdtempSync(join(tmpdir(), 'sluice-known-source-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

writeFileSync(join(folder, 'users.csv'), 'userId\nu1\n')
writeFileSync(join(folder, 'shop.yaml'), 'sources: [{ id: shop }]\ndestinations: []\n')
writeFileSync(
  join(folder, 'personas.yaml'),
  'sources: [{ id: shop }, { id: personas, kind: audiences }]\ndestinations: []\n',
)

/** Runs a command where no Kafka is. */
function run(args: readonly string[], catalog = 'personas.yaml'): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [main, ...args, '--catalog-file', catalog], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SLUICE_KAFKA_BROKERS: '127.0.0.1:1' },
  })
}

const audience = ['--audience', 'aud_1', '--name', 'Big spenders']
const commands: [name: string, of: (source: string) => string[], isForSpaces: boolean][] = [
  ['send', (source) => ['send', '--source', source, '{"type":"track","userId":"u1","event":"Sent"}'], false],
  ['trigger track', (source) => ['trigger', 'track', '--source', source], false],
  ['trigger audience-enter', (source) => ['trigger', 'audience-enter', '--source', source], true],
  [
    'audience change',
    (space) => ['audience', 'change', '--space', space, ...audience, '--user', 'u1', '--member', 'true'],
    true,
  ],
  ['audience sync', (space) => ['audience', 'sync', 'users.csv', '--space', space, ...audience], true],
]

describe.each(commands)('%s', (_name, argsOf, isForSpaces) => {
  test('refuses a source that the catalog lacks, and has the flag that it names', () => {
    const { status, stderr } = run(argsOf(isForSpaces ? 'persnas' : 'shp'))
    expect(stderr).toContain(isForSpaces ? 'did you mean personas?' : 'did you mean shop?')
    expect(stderr).toMatch(/nothing was sent[^\n]+--any-source\.\n$/)
    expect(status).toBe(1)
    const all = run([...argsOf('shp'), '--any-source'])
    expect(all.stderr).not.toContain('The catalog has no')
    expect(all.stderr).toContain('Kafka')
  })

  test('looks for Kafka if the catalog has the source', () => {
    const { stderr } = run(argsOf(isForSpaces ? 'personas' : 'shop'))
    expect(stderr).not.toContain('nothing was sent')
    expect(stderr).toContain('Kafka')
  })
})

describe.each(commands.filter(([, , isForSpaces]) => isForSpaces))('%s', (_name, argsOf) => {
  test('refuses a source that is no space, and says how to make one', () => {
    const { status, stderr } = run(argsOf('shop'), 'shop.yaml')
    expect(stderr).toContain('"shop" is no space')
    expect(stderr).toContain('kind: audiences')
    expect(stderr).toContain('sluice sources set personas -')
    expect(status).toBe(1)
  })
})
