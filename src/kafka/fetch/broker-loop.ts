import { Breath } from '../../async/breath.ts'
import { describeErrorCode, errorCodes } from '../wire/error-codes.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { type FetchedBatch, maxBytesPerPartition, type PartitionHandle } from './fetch-handle.ts'
import { fetchBackoff, readFetched } from './fetched-records.ts'
import { type FetchAnswer, type FetchedPartition, fetchRequest } from '../wire/fetch-message.ts'
import { FetchSession, isOfSession } from './fetch-session.ts'
import { minFetchBytes } from './fetch-size.ts'
import { ask } from '../wire/wire-request.ts'

/**
 * The longest time that a broker collects records before it answers a fetch, in milliseconds. A partition
 * that is resumed during a fetch waits until the fetch ends. After a fetch without records, the next fetch
 * may wait longer (`longestWaitMs`).
 */
export const fetchWaitMs = 25
const maxFetchBytes = 10 * 1024 ** 2
/** With `gatherMs`, a broker answers sooner if it has this many bytes of records. */
const gatheredBytes = 512 * 1024

export type BrokerLoopOptions = {
  readonly nodeId: number
  readonly view: ClusterView
  readonly longestWaitMs: () => number
  /** See `FetcherOptions`. */
  readonly gatherMs?: number | undefined
  /** Asks the fetcher to check whether the log of this handle is still the same log as before. */
  readonly check: (handle: PartitionHandle) => void
}

type Asked = {
  readonly handle: PartitionHandle
  readonly offset: number
  readonly turn: number
  /**
   * True once the answer to the fetch has named this partition. An answer leaves out unchanged partitions.
   */
  isNamed: boolean
}

/** Reads the partitions that one broker leads. Sends the broker one request at a time. */
export class BrokerLoop {
  readonly #options: BrokerLoopOptions
  readonly #handles = new Set<PartitionHandle>()
  readonly #session = new FetchSession()
  #broughtNothing = false
  #failures = 0
  #isEnded = false
  #woken = Promise.withResolvers<void>()
  /** Resolves when the loop has ended, and no request is under way any more. */
  readonly ended: Promise<void>

  constructor(options: BrokerLoopOptions) {
    this.#options = options
    this.ended = this.#run()
  }

  add(handle: PartitionHandle): void {
    this.#handles.add(handle)
    this.wake()
  }

  remove(handle: PartitionHandle): void {
    this.#handles.delete(handle)
  }

  wake(): void {
    this.#woken.resolve()
  }

  end(): void {
    this.#isEnded = true
    this.wake()
  }

  async #run(): Promise<void> {
    while (!this.#isEnded) {
      const wanted = this.#wanted()
      if (wanted.length === 0) await this.#rest(this.#restMs())
      else if (wanted.some(({ hasKept }) => hasKept)) await this.#takeKept(wanted)
      else {
        try {
          await this.#fetch(wanted)
          this.#failures = 0
        } catch (error) {
          this.#failed(wanted, error)
          await this.#rest(this.#backoffMs(), { isLight: false })
        }
      }
    }
  }

  /** Takes the answers that were kept for partitions that were paused. */
  async #takeKept(wanted: readonly PartitionHandle[]): Promise<void> {
    const breath = new Breath()
    for (const handle of wanted) {
      await breath.take()
      const asked = asking(handle)
      const kept = handle.isPaused ? undefined : handle.takeKept()
      if (kept !== undefined && this.#isCurrent(asked)) await this.#takeRecords(asked, kept)
    }
  }

  #wanted(): PartitionHandle[] {
    const nowMs = performance.now()
    const wanted: PartitionHandle[] = []
    for (const handle of this.#handles) if (handle.isReady(nowMs)) wanted.push(handle)
    return wanted
  }

  /**
   * Returns how long the loop pauses before it may ask for a partition again, in milliseconds. Returns
   * `undefined` if the loop pauses until it is woken.
   */
  #restMs(): number | undefined {
    let soonestMs = Infinity
    for (const { isPaused, isWatched, mustCheck, waitUntilMs } of this.#handles)
      if (!isPaused && isWatched && !mustCheck) soonestMs = Math.min(soonestMs, waitUntilMs)
    return soonestMs === Infinity ? undefined : Math.max(1, soonestMs - performance.now())
  }

  /** Pauses for `forMs` milliseconds. If `isLight` is true, a call of `wake` ends the pause early. */
  async #rest(forMs: number | undefined, { isLight = true } = {}): Promise<void> {
    const rested = Promise.withResolvers<void>()
    const timer = forMs === undefined ? undefined : setTimeout(rested.resolve, forMs)
    this.#woken = Promise.withResolvers<void>()
    await (isLight || this.#isEnded ? Promise.race([this.#woken.promise, rested.promise]) : rested.promise)
    clearTimeout(timer)
  }

  #backoffMs(): number {
    const backoffMs = Math.min(fetchBackoff.maxMs, fetchBackoff.minMs * 2 ** Math.min(this.#failures, 16))
    return backoffMs * (0.5 + Math.random() / 2)
  }

  /**
   * Marks the requested partitions as failed, because the broker as a whole could not be asked. Then looks up
   * the leaders again, because another broker may have become the leader of these partitions.
   */
  #failed(wanted: readonly PartitionHandle[], error: unknown): void {
    this.#failures++
    const { view, nodeId } = this.#options
    const message = error instanceof Error ? error.message : String(error)
    for (const handle of wanted)
      handle.failed(`its leader, the broker ${nodeId}, can not be asked: ${message}`)
    void view.refresh()
  }

  async #fetch(wanted: readonly PartitionHandle[]): Promise<void> {
    const { view, nodeId } = this.#options
    const broker = await view.broker(nodeId)
    const asked = wanted.map(asking)
    const askedAtMs = Date.now()
    let answer: FetchAnswer
    try {
      answer = await ask(broker, fetchRequest(this.#request(wanted)))
    } catch (error) {
      this.#session.lost()
      throw error
    }
    this.#session.answered(answer)
    if (isOfSession(answer.errorCode)) return
    if (answer.errorCode !== errorCodes.NONE) throw new Error(describeErrorCode(answer.errorCode))
    await this.#take(asked, answer, askedAtMs)
  }

  #request(wanted: readonly PartitionHandle[]): Parameters<typeof fetchRequest>[0] {
    return {
      ...this.#session.next(wanted),
      ...this.#waiting(wanted),
      maxBytes: maxFetchBytes,
      maxBytesPerPartition,
    }
  }

  #waiting(wanted: readonly PartitionHandle[]): { readonly maxWaitMs: number; readonly minBytes: number } {
    const { gatherMs, longestWaitMs } = this.#options
    if (gatherMs !== undefined) {
      // A fetch that asks for fewer bytes than are to be gathered would wait, although a log has more.
      const hasMore = wanted.some((handle) => handle.hasMore)
      return { maxWaitMs: gatherMs, minBytes: hasMore ? 1 : gatheredBytes }
    }
    // If the last fetch brought no records, the broker answers this fetch as soon as it has one record.
    // Otherwise the broker collects records before it answers.
    return this.#broughtNothing
      ? { maxWaitMs: longestWaitMs(), minBytes: 1 }
      : { maxWaitMs: fetchWaitMs, minBytes: minFetchBytes }
  }

  async #take(asked: readonly Asked[], answer: FetchAnswer, askedAtMs: number): Promise<void> {
    const { responses, clientSideThrottleTime } = answer
    const askedOf = indexed(asked)
    this.#broughtNothing = responses.every(({ partitions }) =>
      partitions.every(({ recordSet }) => recordSet.length === 0),
    )
    // The records of a partition are handed over at once. After a delay, those of all partitions take a tenth
    // of a second.
    const breath = new Breath()
    for (const { topicName, partitions } of responses) {
      for (const fetched of partitions) {
        const one = askedOf.get(topicName)?.get(fetched.partition)
        if (one === undefined) continue
        one.isNamed = true
        await breath.take()
        await this.#takePartition(one, fetched, askedAtMs)
      }
    }
    // If this client has used up its quota, the answer is empty, and says nothing about the partitions.
    if (clientSideThrottleTime > 0) {
      for (const one of asked) if (!one.isNamed && this.#isCurrent(one)) one.handle.throttled()
      return
    }
    // In a fetch session, the answer doesn't name partitions that are unchanged.
    for (const one of asked) {
      if (one.isNamed || !this.#isCurrent(one)) continue
      one.handle.stillEnds(askedAtMs)
      one.handle.succeeded()
      one.handle.broughtNothing()
    }
  }

  async #takePartition(asked: Asked, answer: FetchedPartition, askedAtMs: number): Promise<void> {
    const { handle } = asked
    if (!this.#isCurrent(asked)) return
    if (answer.errorCode !== errorCodes.NONE) {
      this.#refused(handle, answer.errorCode)
      return
    }
    handle.endsAt(answer.highWatermark, askedAtMs)
    if (answer.logStart >= 0) handle.logStart = answer.logStart
    if (answer.recordSet.length > 0) await this.#takeRecords(asked, answer)
    else if (!handle.isPaused) {
      handle.succeeded()
      handle.broughtNothing()
    }
  }

  /**
   * Returns true if the handle is still at the position that the request named. This broker must also still
   * lead the handle's partition, as far as this member knows.
   */
  #isCurrent({ handle, offset, turn }: Asked): boolean {
    return (
      handle.isWatched &&
      handle.turn === turn &&
      handle.position === offset &&
      !handle.mustCheck &&
      handle.nodeId === this.#options.nodeId
    )
  }

  async #takeRecords(asked: Asked, answer: FetchedPartition): Promise<void> {
    const { handle, offset: from } = asked
    if (handle.isPaused) {
      handle.keep(answer)
      return
    }
    const { records, nextOffset, ...read } = await readFetched(answer, from, handle.damaged)
    if (!this.#isCurrent(asked)) return
    if (handle.isPaused) {
      handle.keep(answer)
      return
    }
    if (read.isDamaged) {
      handle.damaged++
      handle.failed(`its batch at offset ${from} came damaged: ${read.damage ?? 'it ends before that'}`, {
        isCertain: read.passesDamaged,
      })
      return
    }
    handle.succeeded()
    if (read.passesDamaged) handle.sayDamaged(nextOffset)
    handle.advance({ nextOffset, ...read })
    handOver(handle, { from, records, nextOffset })
  }

  #refused(handle: PartitionHandle, errorCode: number): void {
    const { view, check } = this.#options
    const { topic, partition } = handle
    const reason =
      view.troubleOf(topic, partition) ?? `${topic}/${partition}: ${describeErrorCode(errorCode)}`
    switch (errorCode) {
      case errorCodes.OFFSET_OUT_OF_RANGE:
        handle.failed(`${topic}/${partition} has no offset ${handle.position}`)
        check(handle)
        return
      case errorCodes.TOPIC_AUTHORIZATION_FAILED:
        handle.failed(`${topic} may not be read: grant this client READ on it`, { isCertain: true })
        return
      case errorCodes.CORRUPT_MESSAGE:
        handle.failed(
          `its leader finds the log damaged at offset ${handle.position}: repair it, or have another replica lead`,
          {
            isCertain: true,
          },
        )
        return
      default:
        // Another broker leads the partition now, or this broker leads it in another leader epoch, or no
        // broker leads it.
        handle.failed(reason)
        void view.refresh()
    }
  }
}

function asking(handle: PartitionHandle): Asked {
  return { handle, offset: handle.offset, turn: handle.turn, isNamed: false }
}

/** Indexes the requested partitions by topic and number. */
function indexed(asked: readonly Asked[]): Map<string, Map<number, Asked>> {
  const byTopic = new Map<string, Map<number, Asked>>()
  for (const one of asked) {
    const { topic, partition } = one.handle
    const ofTopic = byTopic.get(topic)
    if (ofTopic === undefined) byTopic.set(topic, new Map([[partition, one]]))
    else ofTopic.set(partition, one)
  }
  return byTopic
}

/**
 * Passes a batch to the listener. If the listener throws, closes the handle, because further reading would
 * skip the records of the batch. Then throws the error again in a microtask, so that it doesn't end the loop.
 */
function handOver(handle: PartitionHandle, batch: FetchedBatch): void {
  try {
    handle.on.batch(batch)
  } catch (error) {
    handle.close()
    queueMicrotask(() => {
      throw error
    })
  }
}
