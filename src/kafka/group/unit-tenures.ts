import { setTimeout as delay } from 'node:timers/promises'

export type UnitTenuresOptions = {
  prepare: (unit: number) => Promise<void>
  released: (unit: number) => void | Promise<void>
  /** The longest time between the loss of a unit and its release, in milliseconds. */
  handoverMs: number
  onPrepared: (unit: number) => void
  onTrouble: (error: unknown, unit: number) => void
}

/**
 * One tenure of a unit at this member. It begins when this member starts to prepare the state of the unit. It
 * ends when the unit is lost and released.
 */
type Tenure = {
  readonly unit: number
  isPrepared: boolean
  /** True if `prepare` was called. In that case, `released` has to be called too. */
  isCalled: boolean
  isOver: boolean
  /**
   * Resolves when the lost unit has nothing in flight any more, when `handoverMs` has passed since its loss,
   * or when the member stops.
   */
  readonly atRest: PromiseWithResolvers<void>
  timer: NodeJS.Timeout | undefined
}

const againAfterMs = 1_000

/**
 * Prepares and releases the states of units. During each tenure of a unit, `prepare` is called once. It is
 * called again only if its promise rejects. Later, `released` is called once. `prepare` may still be running
 * when `released` is called. A tenure begins when the previous tenure of the unit has ended. If the unit is
 * lost before the tenure begins, neither function is called.
 */
export class UnitTenures {
  readonly #options: UnitTenuresOptions
  /** The tenures of the units that this member owns, as far as their preparation has begun. */
  readonly #tenures = new Map<number, Tenure>()
  /** The tenures of lost units that may still have requests in flight. */
  readonly #leaving = new Set<Tenure>()
  /** For each unit, a promise that resolves when the unit's latest tenure ends. */
  readonly #ends = new Map<number, Promise<void>>()
  #isQuiet = false

  constructor(options: UnitTenuresOptions) {
    this.#options = options
  }

  isPrepared(unit: number): boolean {
    return this.#tenures.get(unit)?.isPrepared ?? false
  }

  /** The units whose state is being prepared and isn't ready yet, ascending. */
  get preparing(): readonly number[] {
    return [...this.#tenures.values()]
      .flatMap(({ unit, isPrepared }) => (isPrepared ? [] : [unit]))
      .sort((a, b) => a - b)
  }

  /**
   * Begins to prepare the state of a unit, unless the preparation has already begun in the present tenure.
   */
  prepare(unit: number): void {
    if (this.#tenures.has(unit)) return
    const tenure: Tenure = {
      unit,
      isPrepared: false,
      isCalled: false,
      isOver: false,
      atRest: Promise.withResolvers<void>(),
      timer: undefined,
    }
    this.#tenures.set(unit, tenure)
    const end = this.#hold(tenure, this.#ends.get(unit)).finally(() => {
      if (this.#ends.get(unit) === end) this.#ends.delete(unit)
    })
    this.#ends.set(unit, end)
  }

  /** Notes that this member has lost the unit. */
  lose(unit: number): void {
    const tenure = this.#tenures.get(unit)
    if (tenure === undefined) return
    this.#tenures.delete(unit)
    tenure.isOver = true
    this.#leaving.add(tenure)
    tenure.timer = setTimeout(() => this.#rest(tenure), this.#options.handoverMs)
  }

  /**
   * Releases the lost units for which `isAtRest` returns true. Such units have nothing in flight any more.
   */
  release(isAtRest: (unit: number) => boolean): void {
    for (const tenure of this.#leaving) if (isAtRest(tenure.unit)) this.#rest(tenure)
  }

  /**
   * From now on, no preparation is tried again, and none that fails is a trouble: the member stops, so what
   * reads the states may have stopped already.
   */
  quiesce(): void {
    this.#isQuiet = true
  }

  /** Releases all units. Resolves when all their tenures have ended. */
  async stop(): Promise<void> {
    for (const unit of this.#tenures.keys()) this.lose(unit)
    this.release(() => true)
    await Promise.all(this.#ends.values())
  }

  #rest(tenure: Tenure): void {
    this.#leaving.delete(tenure)
    clearTimeout(tenure.timer)
    tenure.atRest.resolve()
  }

  /** Runs a tenure, after the previous tenure `before` has ended. Resolves at the end of the tenure. */
  async #hold(tenure: Tenure, before: Promise<void> | undefined): Promise<void> {
    await before
    const preparing = this.#prepareUntilOver(tenure)
    await tenure.atRest.promise
    if (tenure.isCalled) {
      try {
        await this.#options.released(tenure.unit)
      } catch (error) {
        this.#options.onTrouble(error, tenure.unit)
      }
    }
    await preparing
  }

  async #prepareUntilOver(tenure: Tenure): Promise<void> {
    while (!tenure.isOver && !this.#isQuiet) {
      try {
        tenure.isCalled = true
        await this.#options.prepare(tenure.unit)
        tenure.isPrepared = true
      } catch (error) {
        if (tenure.isOver || this.#isQuiet) return
        this.#options.onTrouble(error, tenure.unit)
        await delay(againAfterMs)
        continue
      }
      if (!tenure.isOver) this.#options.onPrepared(tenure.unit)
      return
    }
  }
}
