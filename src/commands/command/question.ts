import process from 'node:process'
import { createInterface } from 'node:readline/promises'
import type { Screen } from '../../roles/start/progress.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'

/**
 * Asks a question on the terminal, and returns true if the answer is yes. Throws a WrongUseError if nobody
 * can answer, because the input or the screen is no terminal.
 */
export async function confirms(screen: Screen, question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !screen.isTerminal)
    throw new WrongUseError(
      `${question} Nobody can answer, because this is no terminal: give --yes, or look first with --dry-run.`,
    )
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await asking.question(`${question} [y/N] `)
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    asking.close()
  }
}
