import { readFileSync } from 'node:fs'

/** The settings that the test gives to a program (test/clients/programs.ts). */
export const settings = {
  endpoint: variable('CLIENT_ENDPOINT'),
  writeKey: variable('CLIENT_WRITE_KEY'),
  /**
   * `once`: the program makes calls of all kinds, then tracks, then large tracks. `steady`: it makes tracks
   * until the standard input ends.
   */
  mode: variable('CLIENT_MODE'),
  tracks: Number(variable('CLIENT_TRACKS')),
  large: Number(variable('CLIENT_LARGE')),
  everyMs: Number(variable('CLIENT_EVERY_MS')),
}

/** The content as text. `JSON.parse` keeps the text's `__proto__` keys. */
export const contentText = readFileSync(new URL('../content.json', import.meta.url), 'utf8')
export const content = JSON.parse(contentText)

/** A text whose message is nearly as large as a message may be. */
export const largeText = 'x'.repeat(29_500) + '😀'.repeat(200)

/** Values of JavaScript that JSON doesn't have. */
export const ofThisLanguage = {
  date: new Date('2020-02-29T23:59:59.123Z'),
  missing: undefined,
  sparse: Array.from({ length: 2 }),
  notANumber: NaN,
  boxed: Object('text'),
}

export function isToldToStop() {
  return new Promise((resolve) => process.stdin.once('end', () => resolve(true)).resume())
}

/** Calls `send` with a number, at a steady pace, until the standard input ends. */
export async function untilTold(send) {
  let count = 0
  const timer = setInterval(() => send(count++), settings.everyMs)
  await isToldToStop()
  clearInterval(timer)
}

/** Writes the last line of the standard output, which the test reads. */
export function report({ made, succeeded, failures }) {
  process.stdout.write(`${JSON.stringify({ made, succeeded, failures: failures.map(String) })}\n`)
}

function variable(name) {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set: test/clients runs this program`)
  return value
}
