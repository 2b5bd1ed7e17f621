type OpenHook = { readonly destinationId: string; readonly openForMs: number }

/**
 * Notices which destinations recover: all their breakers are closed again, and one of them was open for at
 * least `leastMs`.
 */
export class Recoveries {
  readonly #leastMs: number
  /** The longest time for which a hook of a destination with an open breaker was seen to be open. */
  #open: ReadonlyMap<string, number> = new Map()

  constructor(leastMs: number) {
    this.#leastMs = leastMs
  }

  /** Takes the hooks whose breakers are open now, and returns the destinations that have recovered. */
  look(hooks: readonly OpenHook[]): readonly string[] {
    const before = this.#open
    const open = new Map<string, number>()
    for (const { destinationId, openForMs } of hooks)
      open.set(destinationId, Math.max(openForMs, open.get(destinationId) ?? before.get(destinationId) ?? 0))
    this.#open = open
    return [...before].flatMap(([id, openForMs]) => (open.has(id) || openForMs < this.#leastMs ? [] : [id]))
  }
}
