import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { linesWithMeaning, logLinesMarkdown } from '../../../scripts/log-lines/log-lines-markdown.ts'
import {
  isNamed,
  patternOf,
  readShown,
  shownFaults,
  textsOfTests,
} from '../../../scripts/log-lines/shown-lines.ts'

const project = resolve(import.meta.dirname, '../../..')

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-lines-'))
  mkdirSync(join(root, 'src/kafka'), { recursive: true })
  mkdirSync(join(root, 'scripts/log-lines'), { recursive: true })
})

afterEach(() => rmSync(root, { recursive: true }))

function write(code: string, meanings: string): void {
  writeFileSync(join(root, 'src/kafka/one.ts'), code)
  writeFileSync(join(root, 'scripts/log-lines/meanings.yaml'), meanings)
}

const code = `
const away = 'Kafka is away: ' + 'trying again'
export function f(log: Log, options: { log: Log }, isDown: boolean, why: string) {
  log.info({ port: 1 }, 'started')
  options.log.warn({}, isDown ? away : \`back after \${why}\`)
  this.#options.log?.error(why)
  console.error('no line of the log')
}
`
const meanings = `
spoken:
  - { file: src/kafka/one.ts, expression: why, lines: [it is broken] }
entries:
  - { line: started, attention: no, means: It runs. }
  - { line: 'Kafka is away: trying again', attention: if it repeats, means: No answer., do: Look at Kafka. }
  - { line: back after …, attention: no, means: It answers. }
  - { line: it is broken, attention: yes, means: A fault., do: Report it. }
`

test('each line of the code is on the page, with its level and where it is written', () => {
  write(code, meanings)
  const page = logLinesMarkdown(root)
  const rows = page.split('\n').filter((line) => line.includes('`kafka`'))
  const cells = rows.map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
  expect(cells).toEqual([
    ['error', '`it is broken`', 'A fault.', 'Report it.', '`kafka`'],
    ['warn', '`Kafka is away: trying again`', 'No answer.', 'Look at Kafka.', '`kafka`'],
    ['warn', '`back after …`', 'It answers.', '`kafka`'],
    ['info', '`started`', 'It runs.', '`kafka`'],
  ])
})

test('a new line without an entry fails, and says what is missing', () => {
  write(code.replace("'started'", "'started anew'"), meanings)
  expect(() => logLinesMarkdown(root)).toThrow(/say what this line means, and what to do: "started anew"/)
  expect(() => logLinesMarkdown(root)).toThrow(/no code writes this: "started"/)
})

test('a line whose text is not in its file has to be named', () => {
  write(code.replace('error(why)', 'error(describe(why))'), meanings)
  expect(() => logLinesMarkdown(root)).toThrow('in `spoken`: src/kafka/one.ts: describe(why)')
})

test('a line to act on says what to do', () => {
  write(code, meanings.replace(', do: Report it.', ''))
  expect(() => logLinesMarkdown(root)).toThrow('"it is broken"')
})

test('each line of the log is shown by a test, or it is said why', () => {
  const texts = textsOfTests(project)
  const isNamedLine = (line: string) => isNamed(line, texts)
  const exists = (file: string) => existsSync(join(project, file))
  expect(shownFaults(linesWithMeaning(project), readShown(project), { isNamedLine, exists })).toEqual([])
})

test('a line that no test shows, and what is said of no line, are faults', () => {
  const shown = { 'test/gone.test.ts': ['it goes on', 'it was'], 'test/one.test.ts': ['it goes on'] }
  const unshown = [{ reason: '', lines: ['it is odd'] }]
  const facts = { isNamedLine: () => false, exists: (file: string) => file !== 'test/gone.test.ts' }
  expect(shownFaults(['it begins', 'it goes on', 'it is odd'], { shown, unshown }, facts)).toEqual([
    'no test shows this line: name it in a test, or add it to scripts/log-lines/shown.yaml: "it begins"',
    'no code writes this line: "it was"',
    'this line is listed twice: "it goes on"',
    'there is no test test/gone.test.ts',
    'say why no test shows: it is odd',
  ])
})

test('a line that a test names is not among those that no test shows', () => {
  const unshown = [{ reason: 'It is odd.', lines: ['it begins'] }]
  const facts = { isNamedLine: () => true, exists: () => true }
  expect(shownFaults(['it begins'], { shown: {}, unshown }, facts)).toEqual([
    'a test names this line: take it out of scripts/log-lines/shown.yaml: "it begins"',
  ])
})

test('a test names a line by a part of it that has three words, or by all of it', () => {
  mkdirSync(join(root, 'test'))
  writeFileSync(
    join(root, 'test/a.test.ts'),
    String.raw`expect(a).toMatch(/^Kafka is away \(\d+ s\): trying it again$/); expect(b).toBe('started')`,
  )
  const texts = textsOfTests(root)
  expect(isNamed('broker 1: trying it again, for ever', texts)).toBe(false)
  expect(isNamed('Kafka is away (… s): trying it again', texts)).toBe(true)
  expect(isNamed('started', texts)).toBe(true)
  expect(isNamed('it has started again', texts)).toBe(false)
})

test('a line with parts that differ stands for all messages of its form', () => {
  expect(patternOf('after … s (…)').test('after 5 s (a timeout)')).toBe(true)
  expect(patternOf('after … s').test('after 5 s, again')).toBe(false)
})
