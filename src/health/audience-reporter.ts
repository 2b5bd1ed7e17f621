import type { AudienceWord, HealthRecord } from './health-record.ts'
import { wordLastsMs } from './reporter.ts'

/** A word about audiences isn't written more often than this, in milliseconds. */
const leastMs = 15_000
/** The most first syncs, destinations that lack values, and values of spaces of which a process tells. */
export const mostOfAudiences = { firstSyncs: 200, behind: 200, values: 500 } as const

/** Decides what a process writes about audiences: all of it, when something has changed. */
export class AudienceReporter {
  readonly #writer: string
  #told: { readonly text: string; readonly writtenMs: number } | undefined

  constructor(writer: string) {
    this.#writer = writer
  }

  /** Returns the record to write now, if there is one. `word`: `undefined` if there is nothing to tell. */
  report(word: AudienceWord | undefined, nowMs: number): readonly HealthRecord[] {
    if (word === undefined) return this.end()
    const text = JSON.stringify(word)
    const sinceMs = nowMs - (this.#told?.writtenMs ?? -Infinity)
    if (sinceMs < leastMs || (text === this.#told?.text && sinceMs < wordLastsMs)) return []
    this.#told = { text, writtenMs: nowMs }
    return [{ kind: 'audiences', writer: this.#writer, word }]
  }

  /** Returns the record that takes back what was told. */
  end(): readonly HealthRecord[] {
    if (this.#told === undefined) return []
    this.#told = undefined
    return [{ kind: 'audiences', writer: this.#writer, word: undefined }]
  }

  /** Forgets what was told, because it may not have been written. */
  forget(): void {
    if (this.#told !== undefined) this.#told = { text: '', writtenMs: -Infinity }
  }
}
