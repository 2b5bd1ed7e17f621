/** What of one topic waits in a unit. Past its limit no more is fetched, until half of it is done with. */
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

/** In one unit, of one topic. */
const maxRecords = 4_000
const maxBytes = 4 * 1024 ** 2
