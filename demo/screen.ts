import process from 'node:process'

/**
 * Where the live table is drawn: over itself on a terminal; as one block after the other, without any control
 * character, where the output is a file or a pipe.
 */
export type Screen = {
  readonly width: number
  /** True where what is drawn replaces what was drawn before. */
  readonly isInPlace: boolean
  /** How often there is something new to be shown, in milliseconds. */
  readonly everyMs: number
  /** Shows the lines in place of those that were shown before. */
  draw(lines: readonly string[]): void
  /** Leaves the last lines where they are; what is printed now comes below. */
  leave(): void
}

const blockWidth = 100

/** `blockEveryMs`: how often a block is printed where nothing can be drawn over. */
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
    // One less than there is: clearing after the last column would take the character there.
    return Math.min(process.stdout.columns - 1, blockWidth)
  }

  draw(lines: readonly string[]): void {
    // Nothing can be drawn over what has left the window.
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
