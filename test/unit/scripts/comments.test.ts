import { expect, test } from 'vitest'
import { lastColumn, wrapComments } from '../../../scripts/comments.ts'

const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ')
const short = '/** Short. */\nconst a = 1 // and what stands behind code\n'

function linesOf(text: string): string[] {
  return wrapComments(text).split('\n')
}

test.each([
  ['one line', `  /** ${words} */`],
  ['a block', `  /**\n   * ${words}\n   */`],
  ['lines', `  // ${words}`],
])('a comment of %s is wrapped at the last column, and keeps its words', (_, text) => {
  const lines = linesOf(text)
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(lastColumn)
  expect(
    lines
      .join(' ')
      .match(/word\d+/g)
      ?.join(' '),
  ).toBe(words)
  expect(wrapComments(lines.join('\n'))).toBe(lines.join('\n'))
})

test('paragraphs and items of lists stay apart, and items hang', () => {
  const text = `/**\n * ${words}\n *\n * - ${words}\n * - short\n */`
  const lines = linesOf(text)
  expect(lines.filter((line) => line === ' *')).toHaveLength(1)
  expect(lines.filter((line) => line.startsWith(' * - '))).toHaveLength(2)
  expect(lines.filter((line) => line.startsWith(' *   word'))).not.toHaveLength(0)
})

test('what is short, code, and directives to the linter are left as they are', () => {
  const text = `${short}  // oxlint-disable-next-line some/rule -- ${words}\nconst b = '${words}'\n`
  expect(wrapComments(text)).toBe(text)
})
