import { signal } from '@preact/signals'
import * as api from './api.ts'
import type { Problem } from './answer.ts'
import type { FoundEvent } from './types.ts'

export type EventQuery = {
  readonly conditions: string[]
  readonly source?: string
  readonly from: string
}

/** After so many events that were found or read, a search waits until somebody lets it go on. */
const mostAtOnce = { found: 100, read: 1_000_000 } as const

/**
 * A search through the events. Each answer is a part of it, so the search shows how far it is, and stops as
 * soon as nobody asks for the next part.
 */
export class EventSearch {
  readonly state = signal<'none' | 'reading' | 'done' | 'paused' | 'stopped'>('none')
  readonly events = signal<readonly FoundEvent[]>([])
  readonly progress = signal({ read: 0, of: 0 })
  readonly problem = signal<Problem | undefined>(undefined)
  #query: EventQuery | undefined
  #cursor: string | undefined
  #stopping = new AbortController()

  begin(query: EventQuery): void {
    this.#query = query
    this.#cursor = undefined
    this.events.value = []
    this.progress.value = { read: 0, of: 0 }
    this.goOn()
  }

  goOn(): void {
    this.#stopping.abort()
    this.#stopping = new AbortController()
    this.problem.value = undefined
    this.state.value = 'reading'
    void this.#run(this.#stopping.signal)
  }

  stop(): void {
    this.#stopping.abort()
    if (this.state.value === 'reading') this.state.value = 'stopped'
  }

  async #run(signalled: AbortSignal): Promise<void> {
    const found = this.events.value.length + mostAtOnce.found
    const read = this.progress.value.read + mostAtOnce.read
    while (this.#query !== undefined) {
      const asked = { ...this.#query, cursor: this.#cursor }
      const answer = await api.searchEvents(asked, { signal: signalled })
      if (signalled.aborted) return
      if (!answer.ok) {
        this.problem.value = answer.problem
        this.state.value = 'stopped'
        return
      }
      const { events, cursor } = answer.value
      this.events.value = [...this.events.value, ...events]
      this.progress.value = { read: answer.value.read, of: answer.value.of }
      this.#cursor = cursor ?? undefined
      if (cursor === null) this.state.value = 'done'
      else if (this.events.value.length >= found || answer.value.read >= read) this.state.value = 'paused'
      if (this.state.value !== 'reading') return
    }
  }
}
