import process from 'node:process'
import { printable } from '../../message/printable.ts'
import type { Screen } from '../../roles/start/progress.ts'

const clearToEndOfLine = '\u001b[K'

/**
 * Returns the screen for progress: standard error. Results go to standard output. `isDumb`: the terminal
 * can't move its cursor.
 */
export function terminalScreen(isDumb: boolean): Screen {
  return {
    isTerminal: process.stderr.isTTY && !isDumb,
    columns: () => process.stderr.columns,
    write: (text) => {
      process.stderr.write(printable(text))
    },
    redraw: (text) => {
      process.stderr.write(`\r${printable(text)}${clearToEndOfLine}`)
    },
  }
}
