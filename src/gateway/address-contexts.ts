import type { MessageLimits } from '../message/limits.ts'
import { SharedObject } from './shared.ts'

/** The most addresses whose context is kept. When one more comes, all kept contexts are dropped. */
const mostKept = 1_000

/**
 * The contexts that have only the address of a request. They are kept, because making a context costs as much
 * as a small message.
 */
export class AddressContexts {
  readonly #limits: MessageLimits
  readonly #kept = new Map<string, SharedObject>()

  constructor(limits: MessageLimits) {
    this.#limits = limits
  }

  of(ip: string): SharedObject {
    const kept = this.#kept.get(ip)
    if (kept !== undefined) return kept
    if (this.#kept.size === mostKept) this.#kept.clear()
    const made = new SharedObject({ ip }, this.#limits)
    this.#kept.set(ip, made)
    return made
  }
}
