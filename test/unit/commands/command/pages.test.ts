import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { withPages } from '../../../../src/commands/command/pages.ts'

const url = (page: string): string => `https://git.example/acme/sluice/blob/v1.2.3/${page}`
const home = { folder: '/opt/sluice/', url: undefined }

test('below a text is where to read each page that it names, once', () => {
  const text = 'Set it (docs/kafka.md, docs/acls.md), see docs/kafka.md.\n'
  expect(withPages(text, home).split('\n').slice(1)).toEqual([
    '',
    'To read on:',
    '  /opt/sluice/docs/kafka.md',
    '  /opt/sluice/docs/acls.md',
  ])
  expect(withPages(text, { ...home, url })).toContain(
    'https://git.example/acme/sluice/blob/v1.2.3/docs/acls.md',
  )
})

test('a text that names no page stays as it is', () => {
  expect(withPages('no such topic\n', home)).toBe('no such topic\n')
})

test('the folder of this program has the pages', () => {
  const [path = ''] = withPages('see docs/kafka.md').split('\n').slice(-1)
  expect(existsSync(path.trim())).toBe(true)
})

test.each([['up'], ['destinations', 'set']])('the help of %s names each page once, at its end', (...args) => {
  const main = resolve(import.meta.dirname, '../../../../src/main.ts')
  const { stdout } = spawnSync(process.execPath, [main, ...args, '--help'], { encoding: 'utf8' })
  const [, after = '', ...more] = stdout.split('To read on:\n')
  expect(more).toEqual([])
  const pages = after.trim().split('\n')
  expect(pages.map((page) => page.trim().replace(/.*\//, '')).toSorted()).toEqual([
    'catalog.md',
    'configuration.md',
  ])
})
