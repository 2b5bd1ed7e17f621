import { readFile } from 'node:fs/promises'
import type { Logger } from 'pino'
import { createToken, readTokens, type AdminRight, rights, type Token } from '../admin/tokens.ts'
import type { Config } from '../config/schema.ts'
import type { Part } from './start/parts.ts'
import { StartError, WrongUseError } from './start/start-error.ts'

const lookEveryMs = 2_000

/**
 * Reads the tokens of the configured file, and reads them again whenever the file changes. While the file is
 * faulty or missing, the tokens that were read last stay valid. If the file is emptied, no token is valid.
 * Throws if the file has no token at the first reading.
 */
export async function openTokens(
  { admin: { tokensFile } }: Config,
  log: Pick<Logger, 'info' | 'error'>,
): Promise<Part & { current(): readonly Token[] }> {
  if (tokensFile === undefined) {
    throw new StartError(
      'No tokens are configured, and nobody is let in without one: `sluice admin token create --name NAME --right operate` makes one; put its line into a file, and set SLUICE_ADMIN_TOKENS_FILE to that.',
    )
  }
  const path = tokensFile
  const first = await read(path)
  if (typeof first === 'string') throw new StartError(`${path} can not be used: ${first}.`)
  if (first.tokens.length === 0)
    throw new StartError(`${path} can not be used: it has no token: \`sluice admin token create\` makes one.`)
  let { tokens, text } = first
  let said = ''
  let emptied: string | undefined

  async function look(): Promise<void> {
    const next = await read(path)
    if (typeof next === 'string') {
      if (next !== said)
        log.error(
          { file: path, problem: next },
          'the token file can not be used: the tokens read before stay in force',
        )
      said = next
      return
    }
    said = ''
    const isEmptied = next.tokens.length === 0
    // A file without tokens may be about to be written, so it counts only if it is the same at the next look.
    if (next.text === text || (isEmptied && next.text !== emptied)) {
      emptied = next.text
      return
    }
    const changes = differenceOf(tokens, next.tokens)
    tokens = next.tokens
    text = next.text
    if (!isEmptied) log.info({ file: path, tokens: tokens.length, changes }, 'the token file has changed')
    else log.error({ file: path, changes }, 'the token file has no tokens: every request is refused')
  }

  const timer = setInterval(() => void look(), lookEveryMs)
  return {
    current: () => tokens,
    stop: () => clearInterval(timer),
  }
}

/** The most changes of the file that a log line names. */
const maxChanges = 50

/** Names the tokens that were removed (`-ann read`) and those that were added (`+ann operate`). */
function differenceOf(before: readonly Token[], now: readonly Token[]): readonly string[] {
  const removed = missingIn(now, before).map(({ name, right }) => `-${name} ${right}`)
  const added = missingIn(before, now).map(({ name, right }) => `+${name} ${right}`)
  return [...removed, ...added].slice(0, maxChanges)
}

function missingIn(all: readonly Token[], wanted: readonly Token[]): readonly Token[] {
  return wanted.filter(
    ({ name, right, seesContent, digest }) =>
      !all.some(
        (one) =>
          one.name === name &&
          one.right === right &&
          one.seesContent === seesContent &&
          one.digest.equals(digest),
      ),
  )
}

type ReadFile = { readonly tokens: readonly Token[]; readonly text: string }

/**
 * Reads the file with the tokens of the admin API. If the file can't be used, returns a text that says why.
 */
async function read(path: string): Promise<ReadFile | string> {
  try {
    // Only the text shows whether the tokens have changed. The size of the file doesn't, because a new token
    // is as long as the old one. The time of the file may be the same too.
    const text = await readFile(path, 'utf8')
    const result = readTokens(text)
    return result.ok ? { tokens: result.tokens, text } : result.problem
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/**
 * Creates a token for `sluice admin token create`. `line` is for the token file, and `said` is for the person
 * who asked.
 */
export function newToken(
  name: string,
  given: string,
  seesContent: boolean | undefined,
): { line: string; said: readonly string[] } {
  const right = rights.find((known): known is AdminRight => known === given)
  if (right === undefined) throw new WrongUseError(`--right is one of ${rights.join(', ')}.`)
  if (!/^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$/.test(name))
    throw new WrongUseError('--name has up to 100 letters, digits, and . _ @ - after the first.')
  const { token, line } = createToken(name, right, seesContent)
  const said = [
    `The token of ${name}, which is shown this once: ${token}`,
    'Give it to who is to have it. The line on standard output belongs into the file of admin.tokensFile (append it with >>), which running processes read within seconds.',
  ]
  return { line, said }
}
