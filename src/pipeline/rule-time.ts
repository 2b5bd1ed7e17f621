export type RuleTimeOptions = {
  /**
   * The time that the conditions and mappings of one destination may take of each second, in milliseconds.
   */
  readonly mostMs: number
  /** Called when a destination begins to wait because its conditions and mappings took longer. */
  readonly onOver: (destinationId: string) => void
  /** Returns milliseconds of a monotonic clock. */
  readonly monotonicMs: () => number
}

/** What is counted of a destination. `atMs`: the time of `debtMs`, by the monotonic clock. */
type Account = { debtMs: number; atMs: number; isOver: boolean }

/** A destination with a debt below this needs no account. Accounts are looked through when there are many. */
const noDebtMs = 0.001
const manyAccounts = 10_000
/** The longest pause at once, in milliseconds. */
const longestPauseMs = 1_000

/**
 * Measures the time that the conditions and mappings of each destination take in this process. Each second
 * pays `mostMs` of a destination's debt. A destination whose debt is more than `mostMs` waits.
 */
export class RuleTime {
  readonly #options: RuleTimeOptions
  readonly #accounts = new Map<string, Account>()
  #totalMs = 0

  constructor(options: RuleTimeOptions) {
    this.#options = options
  }

  /** The time that the conditions and mappings of all destinations have taken so far, in milliseconds. */
  get totalMs(): number {
    return this.#totalMs
  }

  /** Returns the result of `work`, whose time the destination is charged with. */
  measure<T>(destinationId: string, work: () => T): T {
    const { monotonicMs } = this.#options
    const startedMs = monotonicMs()
    const result = work()
    const endedMs = monotonicMs()
    this.#charge(destinationId, endedMs - startedMs, endedMs)
    return result
  }

  /** Returns how long a destination has to wait before its next message is looked at. 0: not at all. */
  waitMs(destinationId: string): number {
    const account = this.#accounts.get(destinationId)
    if (account === undefined) return 0
    const { mostMs, monotonicMs } = this.#options
    this.#pay(account, monotonicMs())
    if (account.debtMs <= mostMs) {
      account.isOver = false
      if (account.debtMs < noDebtMs) this.#accounts.delete(destinationId)
      return 0
    }
    return Math.min(longestPauseMs, Math.max(1, ((account.debtMs - mostMs) / mostMs) * 1_000))
  }

  #charge(destinationId: string, ms: number, nowMs: number): void {
    const { mostMs, onOver } = this.#options
    this.#totalMs += ms
    let account = this.#accounts.get(destinationId)
    if (account === undefined) {
      if (this.#accounts.size >= manyAccounts) this.#forget(nowMs)
      this.#accounts.set(destinationId, (account = { debtMs: 0, atMs: nowMs, isOver: false }))
    }
    this.#pay(account, nowMs)
    account.debtMs += ms
    if (account.debtMs <= mostMs || account.isOver) return
    account.isOver = true
    onOver(destinationId)
  }

  #pay(account: Account, nowMs: number): void {
    const paidMs = ((nowMs - account.atMs) / 1_000) * this.#options.mostMs
    account.debtMs = Math.max(0, account.debtMs - paidMs)
    account.atMs = nowMs
  }

  #forget(nowMs: number): void {
    for (const [id, account] of this.#accounts) {
      this.#pay(account, nowMs)
      if (account.debtMs < noDebtMs) this.#accounts.delete(id)
    }
  }
}
