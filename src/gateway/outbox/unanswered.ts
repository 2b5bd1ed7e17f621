import type { Part } from './parcel.ts'

/**
 * The time for which acknowledged parts are kept, in milliseconds. A client that is asked to send a request
 * again does so within seconds.
 */
const keptMs = 60_000
const maxBytes = 8_000_000

/**
 * Keeps the acknowledged parts of requests that were not answered 200. A part has the records of one request
 * for one partition. Such a request was not answered 200 because another part was not written, or because the
 * acknowledgement came too late. The client then sends all messages of the request again. The gateway finds a
 * kept part in the same way as a part in flight, and doesn't write its messages a second time.
 */
export class Unanswered {
  readonly #now: () => number
  #kept: { readonly part: Part; readonly untilMs: number }[] = []
  #bytes = 0

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now
  }

  keep(part: Part): void {
    let isNew = false
    for (const id of part.ids) {
      if (id === undefined || part.flights.has(id)) continue
      part.flights.set(id, part)
      isNew = true
    }
    if (!isNew) return
    detach(part)
    this.#kept.push({ part, untilMs: this.#now() + keptMs })
    this.#bytes += part.bytes
    this.forget()
  }

  /**
   * Drops the parts that are too old. Also drops the oldest parts until the kept parts together have at most
   * `maxBytes`.
   */
  forget(): void {
    const nowMs = this.#now()
    while (this.#kept[0] !== undefined && (this.#kept[0].untilMs <= nowMs || this.#bytes > maxBytes)) {
      const [{ part }] = this.#kept
      this.#kept.shift()
      this.#bytes -= part.bytes
      for (const id of part.ids) {
        if (id !== undefined && part.flights.get(id) === part) part.flights.delete(id)
      }
    }
  }
}

/**
 * Turns the record values of a part into texts. This is necessary because small buffers share memory, and a
 * single kept buffer would keep all of this memory.
 */
function detach({ records }: Part): void {
  for (const [index, record] of records.entries()) {
    if (typeof record.value !== 'string') records[index] = { ...record, value: record.value.toString() }
  }
}
