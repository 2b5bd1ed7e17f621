import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { build, isOlderThan } from '../../../../src/roles/console/open-bundle.ts'

test('a bundle is old once a file of its sources is newer, also in a folder inside, and not if it is not there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundle-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [made, sources] = [join(folder, 'manifest.json'), join(folder, 'sources')]
  mkdirSync(join(sources, 'pages'), { recursive: true })
  utimesSync(join(sources, 'pages'), 1_000, 1_000)
  write(join(sources, 'pages', 'now.tsx'), 2_000)
  utimesSync(join(sources, 'pages'), 1_000, 1_000)
  expect(isOlderThan(made, [sources])).toBe(false)
  write(made, 3_000)
  expect(isOlderThan(made, [sources, join(folder, 'nowhere')])).toBe(false)
  write(join(sources, 'pages', 'now.tsx'), 4_000)
  expect(isOlderThan(made, [sources])).toBe(true)
})

test('a build that has succeeded, and one that has failed, are told, with what the script said', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundle-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [good, bad] = [join(folder, 'good.js'), join(folder, 'bad.js')]
  writeFileSync(good, '')
  writeFileSync(bad, 'process.stderr.write("a page has no title\\n"); process.exitCode = 1')
  const told: [string, object][] = []
  const tell = (fields: object, message: string): void => void told.push([message, fields])
  const log = { info: tell, warn: tell }
  expect([await build(log, good), await build(log, bad)]).toEqual([true, false])
  expect(told).toEqual([
    ['the console was built', expect.objectContaining({})],
    ['the console can not be built: run npm run build:console', { problem: 'a page has no title' }],
  ])
})

function write(file: string, seconds: number): void {
  writeFileSync(file, '')
  utimesSync(file, seconds, seconds)
}
