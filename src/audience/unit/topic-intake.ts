/**
 * Counts the records of one topic that wait in a unit, and their bytes. Stops the fetching of the topic when
 * too many records or bytes wait. Starts the fetching again when both are at most half of their limits.
 */
export class TopicIntake {
  readonly #setFull: (topic: string, isFull: boolean) => void
  #topic = ''
  #records = 0
  #bytes = 0
  #isFull = false

  constructor(setFull: (topic: string, isFull: boolean) => void) {
    this.#setFull = setFull
  }

  add(topic: string, bytes: number): void {
    this.#topic = topic
    this.#records++
    this.#bytes += bytes
    if (this.#isFull || this.#fill < 1) return
    this.#isFull = true
    this.#setFull(topic, true)
  }

  remove(bytes: number): void {
    this.#records--
    this.#bytes -= bytes
    if (!this.#isFull || this.#fill > 0.5) return
    this.#isFull = false
    this.#setFull(this.#topic, false)
  }

  get #fill(): number {
    return Math.max(this.#records / maxRecords, this.#bytes / maxBytes)
  }
}

/** Limit on the records of one topic that wait in one unit. */
const maxRecords = 4_000
const maxBytes = 4 * 1024 ** 2
