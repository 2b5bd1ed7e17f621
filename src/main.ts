import { runCommand } from './commands/program.ts'
import { terminalScreen } from './commands/command/terminal.ts'

// The entry of the program: argv → command → role → run → exit code.

/**
 * Handles outputs that can't be written. Results are written at the end of the work. So if nobody reads them,
 * as after `head`, nothing is left to do, and the process exits. If they can't be written, for example
 * because the disk is full, the exit code is 1. If the progress can't be written, the process goes on without
 * it.
 */
function outliveOutputs(): void {
  process.stdout.on('error', (error) => {
    if ('code' in error && error.code === 'EPIPE') process.exit()
    process.stderr.write(`sluice: standard output can not be written: ${error.message}\n`)
    process.exit(1)
  })
  process.stderr.on('error', () => undefined)
}

/**
 * Ends the process of a command once its output is written. A connection to a Kafka that doesn't answer would
 * otherwise keep the process alive for up to a minute.
 */
function end(): void {
  process.stdout.write('', (error) => {
    // After an error, `outliveOutputs` ends the process.
    if (!error) process.exit()
  })
}

outliveOutputs()
await runCommand({ env: process.env, screen: terminalScreen(process.env['TERM'] === 'dumb') })
end()
