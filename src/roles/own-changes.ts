import { setTimeout as delay } from 'node:timers/promises'
import type { Catalog } from '../catalog/catalog.ts'
import type { OpenedDesk } from './operations/catalog-desk.ts'

/** How long a request waits for earlier changes, in milliseconds. */
const mostWaitMs = 2_000
const lookEveryMs = 10

/**
 * The changes of the catalog that this process has made and doesn't use yet, because it reads them from the
 * topic as all processes do.
 */
export class OwnChanges {
  readonly #catalog: () => Catalog
  #last = 0

  constructor(catalog: () => Catalog) {
    this.#catalog = catalog
  }

  /** Returns a desk of which each change is noted here. */
  noted(desk: OpenedDesk): OpenedDesk {
    const change: OpenedDesk['change'] = async (order) => {
      const answer = await desk.change(order)
      if (answer.ok && order.isDryRun !== true) this.#last = Math.max(this.#last, answer.revision)
      return answer
    }
    return { ...desk, change }
  }

  /**
   * Resolves once this process uses all changes that it has made. After two seconds, it doesn't wait for them
   * any more.
   */
  async inForce(): Promise<void> {
    const last = this.#last
    const endMs = performance.now() + mostWaitMs
    while (this.#revision() < last) {
      if (performance.now() > endMs) {
        if (this.#last === last) this.#last = 0
        return
      }
      await delay(lookEveryMs)
    }
  }

  #revision(): number {
    return Number(this.#catalog().version.replace(/^r/, ''))
  }
}
