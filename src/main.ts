import { runCommand } from './commands/program.ts'

/** The entry of the program: argv → command → role → run → exit code. */

/** The screen for progress: standard error. Results go to standard output. */
const screen = {
  isTerminal: process.stderr.isTTY && process.env['TERM'] !== 'dumb',
  columns: () => process.stderr.columns,
  write: (text: string) => {
    process.stderr.write(text)
  },
}

/**
 * Handles outputs whose reader has closed them, as `head` does. Results are written at the end of the work,
 * so the process exits when nobody reads them. Without a reader of the progress, it goes on and shows none.
 */
function outliveReaders(): void {
  process.stdout.on('error', (error) => {
    if (!isBrokenPipe(error)) throw error
    process.exit()
  })
  process.stderr.on('error', (error) => {
    if (!isBrokenPipe(error)) throw error
  })
}

function isBrokenPipe(error: Error): boolean {
  return 'code' in error && error.code === 'EPIPE'
}

outliveReaders()
await runCommand({ env: process.env, screen })
