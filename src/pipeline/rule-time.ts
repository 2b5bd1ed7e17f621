/**
 * Why a destination waits. `own`: its conditions and mappings took more than one destination may take.
 * `shared`: those of all destinations want more than all together may take, and it takes more than its share.
 */
export type RuleLimit = (typeof ruleLimits)[number]

export const ruleLimits = ['own', 'shared'] as const

export type RuleTimeOptions = {
  /**
   * The time that the conditions and mappings of one destination may take of each second, in milliseconds.
   */
  readonly mostMs: number
  /**
   * The time that the conditions and mappings of all destinations together may take of each second, in
   * milliseconds.
   */
  readonly mostOfAllMs: number
  /** Called when a destination begins to wait because its conditions and mappings took longer. */
  readonly onOver: (destinationId: string, limit: RuleLimit) => void
  /** Returns milliseconds of a monotonic clock. */
  readonly monotonicMs: () => number
}

/**
 * What is counted of a destination. `atMs`: the time of `debtMs`, by the monotonic clock. `tookMs`: the time
 * that was taken since the last look at all accounts. `hadToWait`: true if it had to wait since then.
 */
type Account = { debtMs: number; atMs: number; tookMs: number; isOver: boolean; hadToWait: boolean }

/** A destination with a debt below this needs no account. */
const noDebtMs = 0.001
/** The longest pause at once, in milliseconds. */
const longestPauseMs = 1_000
/** How often the time of all destinations together is looked at, in milliseconds. */
const lookEveryMs = 1_000
/** How many steps find the share of a destination. Each halves the range in which it lies. */
const halvings = 20

/**
 * Measures the time that the conditions and mappings of each destination take in this process. Each second
 * pays a share of a destination's debt. A destination whose debt is more than this share waits. The share is
 * `mostMs`, unless all destinations together would take more than `mostOfAllMs`. Then it is as small as it
 * has to be, so that those wait that take most, and not those that take little.
 */
export class RuleTime {
  readonly #options: RuleTimeOptions
  readonly #accounts = new Map<string, Account>()
  #totalMs = 0
  #shareMs: number
  #lookAtMs: number

  constructor(options: RuleTimeOptions) {
    this.#options = options
    this.#shareMs = options.mostMs
    this.#lookAtMs = options.monotonicMs() + lookEveryMs
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
    const nowMs = this.#options.monotonicMs()
    this.#lookAtAll(nowMs)
    this.#pay(account, nowMs)
    const shareMs = this.#shareMs
    if (account.debtMs <= shareMs) {
      account.isOver = false
      return 0
    }
    this.#beginToWait(destinationId, account)
    return Math.min(longestPauseMs, Math.max(1, ((account.debtMs - shareMs) / shareMs) * 1_000))
  }

  #charge(destinationId: string, ms: number, nowMs: number): void {
    this.#totalMs += ms
    this.#lookAtAll(nowMs)
    let account = this.#accounts.get(destinationId)
    if (account === undefined) {
      account = { debtMs: 0, atMs: nowMs, tookMs: 0, isOver: false, hadToWait: false }
      this.#accounts.set(destinationId, account)
    }
    this.#pay(account, nowMs)
    account.debtMs += ms
    account.tookMs += ms
    if (account.debtMs > this.#shareMs) this.#beginToWait(destinationId, account)
  }

  #beginToWait(destinationId: string, account: Account): void {
    account.hadToWait = true
    if (account.isOver) return
    account.isOver = true
    const { mostMs, onOver } = this.#options
    onOver(destinationId, account.debtMs > mostMs ? 'own' : 'shared')
  }

  #pay(account: Account, nowMs: number): void {
    const paidMs = ((nowMs - account.atMs) / 1_000) * this.#shareMs
    account.debtMs = Math.max(0, account.debtMs - paidMs)
    account.atMs = nowMs
  }

  /** Once a second, decides the share anew, and forgets who has no debt. */
  #lookAtAll(nowMs: number): void {
    const { mostMs } = this.#options
    if (nowMs < this.#lookAtMs) return
    const seconds = 1 + (nowMs - this.#lookAtMs) / lookEveryMs
    this.#lookAtMs = nowMs + lookEveryMs
    const wantedMs: number[] = []
    for (const [id, account] of this.#accounts) {
      this.#pay(account, nowMs)
      // Who had to wait would have taken more.
      wantedMs.push(account.hadToWait ? mostMs : Math.min(mostMs, account.tookMs / seconds))
      account.tookMs = 0
      account.hadToWait = false
      if (account.debtMs < noDebtMs) this.#accounts.delete(id)
    }
    this.#shareMs = this.#shareFor(wantedMs)
  }

  /** Returns the largest share with which nobody takes more than is allowed to all together. */
  #shareFor(wantedMs: readonly number[]): number {
    const { mostMs, mostOfAllMs } = this.#options
    const takenWith = (shareMs: number): number =>
      wantedMs.reduce((sum, ms) => sum + Math.min(ms, shareMs), 0)
    if (takenWith(mostMs) <= mostOfAllMs) return mostMs
    let [least, most] = [0, mostMs]
    for (let step = 0; step < halvings; step++) {
      const middle = (least + most) / 2
      if (takenWith(middle) > mostOfAllMs) most = middle
      else least = middle
    }
    return Math.max(least, noDebtMs)
  }
}
