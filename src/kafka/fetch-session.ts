import { errorCodes } from './error-codes.ts'
import type { FetchAnswer, FetchPosition, FetchRequest } from './fetch-message.ts'

/** What a session asks for: what the broker doesn't know yet. */
export type SessionRequest = Pick<FetchRequest, 'sessionId' | 'sessionEpoch' | 'positions' | 'forgotten'>

type KnownPosition = Pick<FetchPosition, 'offset' | 'leaderEpoch'>

const noSession = 0
const firstEpoch = 0
const lastEpoch = 0x7fff_ffff
const nothing: SessionRequest['forgotten'] = []

/** A fetch that is for once: the broker is to keep nothing of it. */
export const withoutSession = { sessionId: noSession, sessionEpoch: -1, forgotten: nothing }

/**
 * What a broker keeps of the fetches of one consumer (KIP-227): from where each partition is read. A request
 * says only what has changed since the last one, and an answer only what there is, so that partitions in
 * which nothing happens cost nothing.
 *
 * A broker that has no room for sessions answers with none: each request is whole then.
 */
export class FetchSession {
  #id = noSession
  #epoch = firstEpoch
  /** What the broker knows, or will with the request under way, by topic and partition. */
  readonly #known = new Map<string, Map<number, KnownPosition>>()

  /**
   * The next request, for what is to be read now. Tell `answered` or `lost` of it before there is another
   * one.
   */
  next(wanted: readonly FetchPosition[]): SessionRequest {
    const isWhole = this.#epoch === firstEpoch
    if (isWhole) this.#known.clear()
    const positions = shuffled(
      wanted.filter(({ topic, partition, offset, leaderEpoch }) => {
        const ofTopic = this.#ofTopic(topic)
        const known = ofTopic.get(partition)
        if (known?.offset === offset && known.leaderEpoch === leaderEpoch) return false
        ofTopic.set(partition, { offset, leaderEpoch })
        return true
      }),
    )
    const forgotten = isWhole ? [] : this.#forget(wanted)
    return { sessionId: this.#id, sessionEpoch: this.#epoch, positions, forgotten }
  }

  /**
   * The broker has answered; where it has lost the session, or takes it for another one, with nothing but
   * that.
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

  /** Nobody knows what the broker has heard: the next request is whole, and ends what there was. */
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

/** Whether an answer says only that there is no such session (any more): the next request makes a new one. */
export function isOfSession(errorCode: number): boolean {
  return (
    errorCode === errorCodes.FETCH_SESSION_ID_NOT_FOUND ||
    errorCode === errorCodes.INVALID_FETCH_SESSION_EPOCH
  )
}

/**
 * A broker fills an answer in the order in which it was told of the partitions, and where batches are large
 * only the first has room. In an order of our own those behind would wait for as long as there is enough
 * before them.
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
