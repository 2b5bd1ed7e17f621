/** The place where a command shows its progress. The results of the command go elsewhere. */
export type Screen = {
  /** True if a line that was written can be overwritten. */
  readonly isTerminal: boolean
  columns(): number
  write(text: string): void
}

const redrawMs = 100
const lineEveryMs = 5_000
const barCells = 24
const clearToEndOfLine = '\u001b[K'

/** Shows progress: a bar on a terminal, elsewhere a line now and then. */
export class Progress {
  readonly #screen: Screen
  readonly #label: string
  readonly #total: number | undefined
  #shownMs = performance.now()
  #isDrawn = false

  /** `total`: the value that `at` counts up to; `undefined` when it is unknown. */
  constructor(screen: Screen, label: string, total: number | undefined) {
    this.#screen = screen
    this.#label = label
    this.#total = total
  }

  /**
   * Notes progress. May be called for every change: it is shown at intervals, and not at all when the work
   * ends at once.
   */
  at(done: number, detail: () => string): void {
    const nowMs = performance.now()
    if (nowMs - this.#shownMs < (this.#screen.isTerminal ? redrawMs : lineEveryMs)) return
    this.#shownMs = nowMs
    this.#show(done, detail())
  }

  /** Writes a line below the bar. */
  note(line: string): void {
    this.#leaveBar()
    this.#screen.write(`${line}\n`)
  }

  /** Draws the final bar. Whatever is written later goes below it. */
  end(done: number, detail: string): void {
    if (this.#isDrawn) this.#show(done, detail)
    this.#leaveBar()
  }

  /** Leaves the bar as it is after an error. */
  abandon(): void {
    this.#leaveBar()
  }

  #leaveBar(): void {
    if (this.#isDrawn) this.#screen.write('\n')
    this.#isDrawn = false
  }

  #show(done: number, detail: string): void {
    const share = this.#total === undefined ? undefined : done / Math.max(1, this.#total)
    const percent = share === undefined ? '' : `${String(Math.floor(share * 100)).padStart(3)} %  `
    if (!this.#screen.isTerminal) {
      this.#screen.write(`${this.#label}  ${percent.trimStart()}${detail}\n`)
      return
    }
    const bar = share === undefined ? '' : `${barOf(share)} `
    const text = `${this.#label}  ${bar}${percent}${detail}`
    // Cuts the line, since a line that wraps can't be overwritten.
    this.#screen.write(`\r${text.slice(0, Math.max(0, this.#screen.columns() - 1))}${clearToEndOfLine}`)
    this.#isDrawn = true
  }
}

function barOf(share: number): string {
  const full = Math.round(Math.min(1, share) * barCells)
  return '█'.repeat(full) + '░'.repeat(barCells - full)
}

/** Formats a count, such as `1,234,567`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

/** Formats a count with its unit, such as `1 user` or `2,000 users`. */
export function counted(count: number, one: string): string {
  return `${grouped(count)} ${one}${count === 1 ? '' : 's'}`
}
