/** Where a command shows how far it is: not where its results go. */
export type Screen = {
  /** What is written can be written over. */
  readonly isTerminal: boolean
  columns(): number
  write(text: string): void
}

const redrawMs = 100
const lineEveryMs = 5_000
const barCells = 24
const clearToEndOfLine = '\u001b[K'

/** A bar on a terminal; elsewhere a line now and then. */
export class Progress {
  readonly #screen: Screen
  readonly #label: string
  readonly #total: number | undefined
  #shownMs = performance.now()
  #isDrawn = false

  /** `total`: what `at` counts up to; `undefined` when nobody knows. */
  constructor(screen: Screen, label: string, total: number | undefined) {
    this.#screen = screen
    this.#label = label
    this.#total = total
  }

  /**
   * To be called as often as there is something new: it is shown at times, and not at all where all is done
   * at once.
   */
  at(done: number, detail: () => string): void {
    const nowMs = performance.now()
    if (nowMs - this.#shownMs < (this.#screen.isTerminal ? redrawMs : lineEveryMs)) return
    this.#shownMs = nowMs
    this.#show(done, detail())
  }

  /** A line for itself. */
  note(line: string): void {
    this.#leaveBar()
    this.#screen.write(`${line}\n`)
  }

  /** What is written from here on is below. */
  end(done: number, detail: string): void {
    if (this.#isDrawn) this.#show(done, detail)
    this.#leaveBar()
  }

  /** Leaves the bar as it is: something went wrong. */
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
    // A line that wraps can't be written over.
    this.#screen.write(`\r${text.slice(0, Math.max(0, this.#screen.columns() - 1))}${clearToEndOfLine}`)
    this.#isDrawn = true
  }
}

function barOf(share: number): string {
  const full = Math.round(Math.min(1, share) * barCells)
  return '█'.repeat(full) + '░'.repeat(barCells - full)
}

/** `1,234,567` */
export function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

/** `1 user`, `2,000 users` */
export function counted(count: number, one: string): string {
  return `${grouped(count)} ${one}${count === 1 ? '' : 's'}`
}
