/**
 * The output on which a command shows its progress. The results of the command are written to another output.
 */
export type Screen = {
  /** True if the output is a terminal, on which a line can be overwritten. */
  readonly isTerminal: boolean
  columns(): number
  write(text: string): void
  /** Writes a line over the line where the cursor is, and leaves the cursor there. Only for a terminal. */
  redraw(text: string): void
}

const redrawMs = 100
const lineEveryMs = 5_000
const barCells = 24

/** Shows progress: as a bar on a terminal, and otherwise as a line now and then. */
export class Progress {
  readonly #screen: Screen
  readonly #label: string
  readonly #total: number | undefined
  #shownMs = performance.now()
  #isDrawn = false

  /**
   * `total` is the value of `done` at which the work is complete. It is `undefined` if this value isn't
   * known.
   */
  constructor(screen: Screen, label: string, total: number | undefined) {
    this.#screen = screen
    this.#label = label
    this.#total = total
  }

  /**
   * Shows how far the work has got. May be called for every change, because the progress is shown only at
   * intervals. Work that ends at once shows no progress.
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

  /** Draws the bar for the last time. Later output appears below the bar. */
  end(done: number, detail: string): void {
    if (this.#isDrawn) this.#show(done, detail)
    this.#leaveBar()
  }

  /** Ends the progress after an error. The bar stays as it was drawn last. */
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
    // The line is cut to the width of the terminal, because a line that wraps can't be overwritten.
    this.#screen.redraw(text.slice(0, Math.max(0, this.#screen.columns() - 1)))
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

const mostNamed = 10

/** Returns up to ten ids, and the number of the others. */
export function someOf(ids: readonly string[]): string {
  if (ids.length === 0) return 'none'
  const others = ids.length - mostNamed
  return ids.slice(0, mostNamed).join(', ') + (others > 0 ? ` and ${counted(others, 'other')}` : '')
}
