import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { commandsOf, examplesOf, namelessBlocks } from '../../../scripts/page-commands.ts'
import { allCommands, pages, readPage, unrun } from '../../support/page-commands.ts'
import { linesOf, readRunbook, runbooks } from '../../support/runbooks.ts'

const root = resolve(import.meta.dirname, '../../..')

function textsOf(text: string): string[] {
  return commandsOf({ file: 'docs/page.md', text }).map((command) => command.text)
}

test('a command is a line of a block, joined with those that it goes on in', () => {
  expect(
    textsOf(
      '```sh\n# why\nsluice status   # the ten\nsluice log search \\\n  --failed\n```\n\n```js\nstatus()\n```\n',
    ),
  ).toEqual(['sluice status   # the ten', 'sluice log search  --failed'])
})

test('in a block without a language, commands come first, or after a prompt', () => {
  expect(textsOf('```\nSLUICE_X=1 sluice up\n```\n\n```\n{"success":true}\n```\n')).toEqual([
    'SLUICE_X=1 sluice up',
  ])
  expect(textsOf('```\n$ sluice status\nall is well\n$ sluice config\n```\n')).toEqual([
    'sluice status',
    'sluice config',
  ])
})

test('a command knows what its block has set before', () => {
  const block = '```sh\nexport A=1\nf() { sluice config "$1"; }\nsluice status\nf kafka\n```\n'
  const commands = commandsOf({ file: 'docs/page.md', text: block })
  expect(commands.at(-1)?.before).toEqual(['export A=1', 'f() { sluice config "$1"; }'])
})

test('the lines of a loop, and those that a pipe continues, are one command', () => {
  const block = '```sh\nwhile read -r id; do\n  get "$id"\ndone < ids > found\npsql vips |\n  sort\n```\n'
  expect(textsOf(block)).toEqual(['while read -r id; do\nget "$id"\ndone < ids > found', 'psql vips |\nsort'])
})

test('an example of a help text ends where its explanation begins', () => {
  const text = [
    'const help = `',
    'Examples:',
    "  sluice send '{\\`a\\`}'",
    '  echo x |',
    '  sluice up      all in one`,',
    '  .action(nothing)',
    '',
  ].join('\n')
  expect(
    examplesOf({ file: 'src/commands/x.ts', text }).map(({ text: command, line }) => [line, command]),
  ).toEqual([
    [3, "sluice send '{`a`}'"],
    [4, 'echo x |\nsluice up'],
  ])
})

test('each block of the pages has a language, or is of commands', () => {
  expect(pages.flatMap((file) => namelessBlocks({ file, text: readPage(file) }))).toEqual([])
  expect(namelessBlocks({ file: 'docs/page.md', text: 'a\n\n```\nsomething\n```\n' })).toEqual([
    expect.stringContaining('docs/page.md:4 has a block without a language'),
  ])
})

test('the pages have commands, and each reason not to run some of them is needed and true', () => {
  expect(allCommands.length).toBeGreaterThan(100)
  for (const { file, command, needs, by } of unrun) {
    const meant = allCommands.filter((one) => (file?.test(one.file) ?? true) && command.test(one.text))
    expect([command.source, meant.length > 0]).toEqual([command.source, true])
    if (needs === 'elsewhere') expect([by, existsSync(join(root, by))]).toEqual([by, true])
  }
})

test('the test of the runbooks runs each of their commands', () => {
  for (const file of runbooks) {
    const commands = commandsOf({ file, text: readRunbook(file) }).map(({ text }) => text)
    expect([file, commands]).toEqual([file, linesOf(readRunbook(file), 'sh').map((line) => line.trim())])
  }
})
