import process from 'node:process'

/**
 * The output for the live table. On a terminal, each table replaces the previous one. In a file or a pipe,
 * the tables follow each other as blocks, without control characters.
 */
export type Screen = {
  readonly width: number
  /** True if the next lines replace the lines that were drawn before. */
  readonly isInPlace: boolean
  /** The time between two drawings, in milliseconds. */
  readonly everyMs: number
  /** Draws the lines. If `isInPlace`, they replace the lines that were drawn before. */
  draw(lines: readonly string[]): void
  /** Ends the drawing. The last lines stay, and later output comes below them. */
  leave(): void
}

const blockWidth = 100

/**
 * Opens the screen for standard output. `blockEveryMs`: the time between two blocks, if the output is no
 * terminal.
 */
export function openScreen(blockEveryMs: number): Screen {
  const isTerminal = process.stdout.isTTY && process.env['TERM'] !== 'dumb'
  return isTerminal ? new TerminalScreen() : new BlockScreen(blockEveryMs)
}

const hideCursor = '\x1b[?25l'
const showCursor = '\x1b[?25h'
const clearToEndOfLine = '\x1b[K'
const clearBelow = '\x1b[J'
const upToStart = (lines: number): string => (lines === 0 ? '\r' : `\x1b[${lines}F`)

class TerminalScreen implements Screen {
  readonly isInPlace = true
  readonly everyMs = 500
  #drawn = 0
  readonly #restore = (): void => {
    process.stdout.write(showCursor)
  }

  constructor() {
    process.on('exit', this.#restore)
  }

  get width(): number {
    // One column stays free. If a line filled all columns, clearing behind it would erase its last character.
    return Math.min(process.stdout.columns - 1, blockWidth)
  }

  draw(lines: readonly string[]): void {
    // The cursor can't return to lines that have scrolled out of the window.
    const visible = lines.slice(0, Math.max(1, process.stdout.rows - 1))
    const text = visible.map((line) => `${line}${clearToEndOfLine}\n`).join('')
    process.stdout.write(`${hideCursor}${upToStart(this.#drawn)}${text}${clearBelow}`)
    this.#drawn = visible.length
  }

  leave(): void {
    this.#drawn = 0
    process.stdout.write(`${showCursor}\n`)
    process.off('exit', this.#restore)
  }
}

class BlockScreen implements Screen {
  readonly isInPlace = false
  readonly width = blockWidth
  readonly everyMs: number

  constructor(everyMs: number) {
    this.everyMs = everyMs
  }

  draw(lines: readonly string[]): void {
    process.stdout.write(`${lines.join('\n')}\n\n`)
  }

  leave(): void {}
}
