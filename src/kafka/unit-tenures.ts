import { setTimeout as delay } from 'node:timers/promises'

export type UnitTenuresOptions = {
  prepare: (unit: number) => Promise<void>
  released: (unit: number) => void | Promise<void>
  /** So long after its loss at the latest a unit is released. */
  handoverMs: number
  onPrepared: (unit: number) => void
  onTrouble: (error: unknown, unit: number) => void
}

/** The time in which a unit is ours. */
type Tenure = {
  readonly unit: number
  isPrepared: boolean
  /** `prepare` was called, so that `released` will be. */
  isCalled: boolean
  isOver: boolean
  /** Nothing of the unit is out, or the time for that is over. */
  readonly atRest: PromiseWithResolvers<void>
  timer: NodeJS.Timeout | undefined
}

const againAfterMs = 1_000

/**
 * Which units have their state. In each tenure of a unit `prepare` is called once, again only when it
 * rejects, and after it `released` once. A tenure begins when the one before has come to its end.
 */
export class UnitTenures {
  readonly #options: UnitTenuresOptions
  /** Of the units that are ours. */
  readonly #tenures = new Map<number, Tenure>()
  /** Lost, and not yet at rest. */
  readonly #leaving = new Set<Tenure>()
  /** Resolves when the last tenure of a unit is at its end. */
  readonly #ends = new Map<number, Promise<void>>()

  constructor(options: UnitTenuresOptions) {
    this.#options = options
  }

  isPrepared(unit: number): boolean {
    return this.#tenures.get(unit)?.isPrepared ?? false
  }

  /** Ascending. */
  get preparing(): readonly number[] {
    return [...this.#tenures.values()]
      .flatMap(({ unit, isPrepared }) => (isPrepared ? [] : [unit]))
      .sort((a, b) => a - b)
  }

  /** Makes the state of a unit ready, unless that has begun in this tenure. */
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

  /** The unit belongs to another member now. */
  lose(unit: number): void {
    const tenure = this.#tenures.get(unit)
    if (tenure === undefined) return
    this.#tenures.delete(unit)
    tenure.isOver = true
    this.#leaving.add(tenure)
    tenure.timer = setTimeout(() => this.#rest(tenure), this.#options.handoverMs)
  }

  /** Releases those lost units that are at rest. */
  release(isAtRest: (unit: number) => boolean): void {
    for (const tenure of this.#leaving) if (isAtRest(tenure.unit)) this.#rest(tenure)
  }

  /** Releases all units; resolves when each is at its end. */
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

  /** Resolves at the end of the tenure. */
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
    while (!tenure.isOver) {
      try {
        tenure.isCalled = true
        await this.#options.prepare(tenure.unit)
        tenure.isPrepared = true
      } catch (error) {
        if (tenure.isOver) return
        this.#options.onTrouble(error, tenure.unit)
        await delay(againAfterMs)
        continue
      }
      if (!tenure.isOver) this.#options.onPrepared(tenure.unit)
      return
    }
  }
}
