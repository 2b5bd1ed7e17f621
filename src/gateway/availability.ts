export type AvailabilityOptions = {
  /** Gives what keeps Kafka from taking records, `undefined` when nothing does. Never rejects. */
  readonly check: () => Promise<string | undefined>
  /** Called when records are no longer taken, with the reason, and with '' when they are again. */
  readonly onChange: (reason: string) => void
  readonly now: () => number
}

const everyMs = 500
/** Without traffic nothing shows that Kafka has gone: it is asked this long after the last sign of life. */
const silentMs = 5_000

/**
 * Whether Kafka takes records. Requests find out, and while they can't, since nobody sends any to a gateway that
 * isn't ready, it is looked for: else a gateway that has become unready would stay so for ever.
 */
export class Availability {
  readonly #options: AvailabilityOptions
  #reason = ''
  #lastSignMs: number
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: AvailabilityOptions) {
    this.#options = options
    this.#lastSignMs = options.now()
    this.#lookLater()
  }

  get isAvailable(): boolean {
    return this.#reason === ''
  }

  /** Why records aren't taken; '' when they are. */
  get reason(): string {
    return this.#reason
  }

  /** Records were taken. */
  worked(): void {
    this.#lastSignMs = this.#options.now()
    this.#set('')
  }

  /** Records were not taken. */
  failed(reason: string): void {
    this.#set(reason)
  }

  /** Nothing changes after it. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #lookLater(): void {
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#look(), everyMs)
  }

  async #look(): Promise<void> {
    const { check, now } = this.#options
    if (!this.isAvailable || now() - this.#lastSignMs >= silentMs) {
      const obstacle = await check()
      if (this.#isStopped) return
      if (obstacle === undefined) this.worked()
      else this.failed(obstacle)
    }
    this.#lookLater()
  }

  #set(reason: string): void {
    if (this.#isStopped) return
    const isNews = (this.#reason === '') !== (reason === '')
    this.#reason = reason
    if (isNews) this.#options.onChange(reason)
  }
}
