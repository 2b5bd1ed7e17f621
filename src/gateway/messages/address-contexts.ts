import type { MessageLimits } from '../../message/limits.ts'
import { RawObject } from '../../message/message-outline.ts'
import { SharedObject } from './shared-object.ts'

/** The limit on the number of kept contexts. When it is exceeded, all kept contexts are dropped. */
const mostKept = 1_000

/**
 * The `context` objects that contain nothing but a client's address. They are kept, because it takes as long
 * to create such an object as to process a small message.
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
    const made = new SharedObject(new RawObject(JSON.stringify({ ip })), this.#limits)
    this.#kept.set(ip, made)
    return made
  }
}
