import { errorCodes } from '../wire/error-codes.ts'
import type { FetchAnswer, FetchPosition, FetchRequest } from '../wire/fetch-message.ts'

/**
 * The part of a fetch request that depends on the session. `positions` has only positions that the broker
 * doesn't know yet.
 */
export type SessionRequest = Pick<FetchRequest, 'sessionId' | 'sessionEpoch' | 'positions' | 'forgotten'>

type KnownPosition = Pick<FetchPosition, 'offset' | 'leaderEpoch' | 'maxBytes'>

const noSession = 0
const firstEpoch = 0
const lastEpoch = 0x7fff_ffff
const nothing: SessionRequest['forgotten'] = []

/** The session fields of a fetch that belongs to no session. The broker keeps nothing of such a fetch. */
export const withoutSession = { sessionId: noSession, sessionEpoch: -1, forgotten: nothing }

/**
 * The fetch session of one consumer at one broker (KIP-227). The broker keeps the position of each partition.
 * A request names only the positions that have changed since the last request. An answer names only
 * partitions in which something has changed, so idle partitions cost nothing.
 *
 * A broker without room for a further session opens no session. Each request then names all positions.
 */
export class FetchSession {
  #id = noSession
  #epoch = firstEpoch
  /**
   * The positions that the broker knows, or will know after the request under way, by topic and partition.
   */
  readonly #known = new Map<string, Map<number, KnownPosition>>()

  /**
   * Returns the next request for the wanted positions. Call `answered` or `lost` before the next call of
   * `next`.
   */
  next(wanted: readonly FetchPosition[]): SessionRequest {
    const isWhole = this.#epoch === firstEpoch
    if (isWhole) this.#known.clear()
    const positions = shuffled(
      wanted.filter(({ topic, partition, offset, leaderEpoch, maxBytes }) => {
        const ofTopic = this.#ofTopic(topic)
        const known = ofTopic.get(partition)
        if (known?.offset === offset && known.leaderEpoch === leaderEpoch && known.maxBytes === maxBytes)
          return false
        ofTopic.set(partition, { offset, leaderEpoch, maxBytes })
        return true
      }),
    )
    const forgotten = isWhole ? [] : this.#forget(wanted)
    return { sessionId: this.#id, sessionEpoch: this.#epoch, positions, forgotten }
  }

  /**
   * Notes the broker's answer. If the broker has lost the session, or expects another session epoch, the
   * answer holds only an error code. The next request then names all positions.
   */
  answered({ errorCode, sessionId }: Pick<FetchAnswer, 'errorCode' | 'sessionId'>): void {
    if (errorCode === 0 && sessionId !== noSession) {
      this.#id = sessionId
      this.#epoch = this.#epoch === lastEpoch ? 1 : this.#epoch + 1
      return
    }
    this.#epoch = firstEpoch
    if (errorCode === 0 || errorCode === errorCodes.FETCH_SESSION_ID_NOT_FOUND) this.#id = noSession
  }

  /**
   * Notes that no answer came, so it isn't known whether the broker has got the last request. The next
   * request names all positions, and ends the present session.
   */
  lost(): void {
    this.#epoch = firstEpoch
  }

  #forget(wanted: readonly FetchPosition[]): SessionRequest['forgotten'] {
    let count = 0
    for (const offsets of this.#known.values()) count += offsets.size
    if (count === wanted.length) return nothing
    const kept = new Map<string, Set<number>>()
    for (const { topic, partition } of wanted) {
      const those = kept.get(topic)
      if (those === undefined) kept.set(topic, new Set([partition]))
      else those.add(partition)
    }
    const forgotten: { topic: string; partition: number }[] = []
    for (const [topic, offsets] of this.#known) {
      for (const partition of offsets.keys()) {
        if (kept.get(topic)?.has(partition) === true) continue
        offsets.delete(partition)
        forgotten.push({ topic, partition })
      }
    }
    return forgotten
  }

  #ofTopic(topic: string): Map<number, KnownPosition> {
    let known = this.#known.get(topic)
    if (known === undefined) {
      known = new Map()
      this.#known.set(topic, known)
    }
    return known
  }
}

/**
 * Returns true if an error code means that the broker has lost the session, or expects another session epoch.
 * The next request then starts a new session.
 */
export function isOfSession(errorCode: number): boolean {
  return (
    errorCode === errorCodes.FETCH_SESSION_ID_NOT_FOUND ||
    errorCode === errorCodes.INVALID_FETCH_SESSION_EPOCH
  )
}

/**
 * Shuffles the partitions of a request. A broker fills an answer in the order of the partitions in the
 * request. If batches are large, the answer has room only for the first partition. In a fixed order, the last
 * partitions would get no data while the first partitions fill every answer.
 */
function shuffled<T>(all: T[]): T[] {
  for (let left = all.length - 1; left > 0; left--) {
    const pick = Math.floor(Math.random() * (left + 1))
    const [one, other] = [all[left], all[pick]]
    if (one === undefined || other === undefined) continue
    all[left] = other
    all[pick] = one
  }
  return all
}
