import { runCommand } from './commands/program.ts'

/** argv → command → role → run → exit code. */

/** Results go to standard output, how far it is to standard error. */
const screen = {
  isTerminal: process.stderr.isTTY && process.env['TERM'] !== 'dumb',
  columns: () => process.stderr.columns,
  write: (text: string) => {
    process.stderr.write(text)
  },
}

/**
 * Who reads an output may have seen enough, as `head` has. Results are written when the work is done: without
 * a reader of them the process ends. How far it is it tells nobody then, and goes on.
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
