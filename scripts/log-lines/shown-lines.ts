import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** Which test shows each line of the log. */
export type Shown = {
  /** Lines that no test names, by the test file whose processes write them. The test file checks this itself. */
  readonly shown: Readonly<Record<string, readonly string[]>>
  /** Lines that no test shows, by the reason. */
  readonly unshown: readonly { readonly reason: string; readonly lines: readonly string[] }[]
}

const shownFile = 'scripts/log-lines/shown.yaml'

export function readShown(root: string): Shown {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a file of our own, which a test checks
  return parse(readFileSync(join(root, shownFile), 'utf8')) as Shown
}

/** Returns a pattern of the messages that a line of the table stands for. `…` stands for any text. */
export function patternOf(line: string): RegExp {
  const parts = line.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('[^]*')}$`)
}

/**
 * Returns the texts in the tests that could be of a line: what is between quotes or slashes, between what differs, and
 * has three words.
 */
export function textsOfTests(root: string): ReadonlySet<string> {
  const texts = new Set<string>()
  for (const file of globSync('test/**/*.test.ts', { cwd: root })) {
    const code = readFileSync(join(root, file), 'utf8')
    for (const [, ...quoted] of code.matchAll(literal)) {
      const whole = quoted.find((one) => one !== undefined) ?? ''
      for (const part of whole.replaceAll(/\\(.)/g, '$1').split(differing)) {
        const text = part.trim()
        if (text.length >= leastCharacters && text.split(' ').length >= leastWords) texts.add(text)
        else if (text === whole && text !== '') texts.add(wholeMark + text)
      }
    }
  }
  return texts
}

const leastCharacters = 16
const leastWords = 3
/** Precedes a short text, which has to be all of a line. */
const wholeMark = '\0'
const literal =
  /'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`|\/((?:[^/\\\n]|\\.)+)\/[a-z]*/g
/** Parts of templates and of patterns that stand for other texts. */
const differing = /\$\{[^}]*\}|\.[*+]\??|\[\^\]\*|[dSw]\+|…|^\^|\$$/

/** Tells whether a test names a line, and so fails if it isn't written. */
export function isNamed(line: string, texts: ReadonlySet<string>): boolean {
  if (texts.has(wholeMark + line)) return true
  for (const text of texts) if (line.includes(text)) return true
  return false
}

/** Returns the faults: each line has to be named by a test, or to be in the file of shown lines, once. */
export function shownFaults(
  lines: readonly string[],
  { shown, unshown }: Shown,
  { isNamedLine, exists }: { isNamedLine: (line: string) => boolean; exists: (file: string) => boolean },
): string[] {
  const listed = [...Object.values(shown).flat(), ...unshown.flatMap(({ lines: some }) => some)]
  const known = new Set(lines)
  return [
    ...lines
      .filter((line) => !listed.includes(line) && !isNamedLine(line))
      .map(
        (line) =>
          `no test shows this line: name it in a test, or add it to ${shownFile}: ${JSON.stringify(line)}`,
      ),
    ...listed
      .filter((line) => !known.has(line))
      .map((line) => `no code writes this line: ${JSON.stringify(line)}`),
    ...listed
      .filter((line, at) => listed.indexOf(line) !== at)
      .map((line) => `this line is listed twice: ${JSON.stringify(line)}`),
    ...unshown
      .flatMap(({ lines: some }) => some.filter(isNamedLine))
      .map((line) => `a test names this line: take it out of ${shownFile}: ${JSON.stringify(line)}`),
    ...Object.keys(shown)
      .filter((file) => !exists(file))
      .map((file) => `there is no test ${file}`),
    ...unshown
      .filter(({ reason }) => !reason)
      .map(({ lines: some }) => `say why no test shows: ${some.join(', ')}`),
  ]
}
