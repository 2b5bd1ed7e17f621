import { Gauge } from 'prom-client'

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
