import { Gauge, type GaugeConfiguration } from 'prom-client'

/** A gauge without labels. Each time that the metrics are read, it asks for its value. */
export class AskedGauge extends Gauge {
  #ask = (): number => 0

  /** From now on, `ask` returns the value. Until this method is called, the value is 0. */
  follow(ask: () => number): void {
    this.#ask = ask
  }

  override async get(): ReturnType<Gauge['get']> {
    this.set(this.#ask())
    return super.get()
  }
}

/**
 * A gauge with the label `kind`. Each time that the metrics are read, it asks which kinds are true. It has no
 * series until `follow` is called.
 */
export class AskedKinds extends Gauge<'kind'> {
  readonly #kinds: readonly string[]
  #ask: (() => readonly string[]) | undefined

  constructor({ kinds, ...options }: GaugeConfiguration<'kind'> & { readonly kinds: readonly string[] }) {
    super(options)
    this.#kinds = kinds
  }

  follow(ask: () => readonly string[]): void {
    this.#ask = ask
  }

  override async get(): ReturnType<Gauge<'kind'>['get']> {
    const present = this.#ask?.()
    if (present !== undefined)
      for (const kind of this.#kinds) this.set({ kind }, present.includes(kind) ? 1 : 0)
    return super.get()
  }
}
