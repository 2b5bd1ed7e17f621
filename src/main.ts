import { runCommand } from './commands/program.ts'

// The entry of the program: argv → command → role → run → exit code.

/** The screen for progress: standard error. Results go to standard output. */
const screen = {
  isTerminal: process.stderr.isTTY && process.env['TERM'] !== 'dumb',
  columns: () => process.stderr.columns,
  write: (text: string) => {
    process.stderr.write(text)
  },
}

/**
 * Handles an output whose reader has closed it, as `head` does. Results are written at the end of the work.
 * So if nobody reads them, nothing is left to do, and the process exits. If nobody reads the progress, the
 * process goes on and shows no progress.
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
