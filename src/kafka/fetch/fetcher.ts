import { BrokerLoop } from './broker-loop.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { type FetchHandle, type FetchOrder, type HandleOwner, PartitionHandle } from './fetch-handle.ts'
import { partitionName } from '../wire/partition-name.ts'
import { listEnds, locate, type Location } from './positions.ts'

export type TroubledPartition = {
  readonly topic: string
  readonly partition: number
  readonly trouble: string
}

export type Fetcher = {
  /** Begins to read a partition. The next fetch already reads it. Throws if the partition is open already. */
  open(order: FetchOrder): FetchHandle
  readonly troubled: readonly TroubledPartition[]
  /** Closes all handles. Resolves when no request is under way any more. Never rejects. */
  stop(): Promise<void>
}

export type FetcherOptions = {
  readonly view: ClusterView
  /**
   * Returns the longest time that a fetch may wait at a broker whose last answer had no records, in
   * milliseconds. Called before each such fetch.
   */
  readonly longestWaitMs: () => number
  /**
   * If given, each fetch waits for so long at a broker, in milliseconds, unless the broker has many records
   * sooner, or a log is known to have more than was read. So a reader that is in no hurry costs few requests.
   * Default: a broker collects records for a moment only.
   */
  readonly gatherMs?: number | undefined
  readonly log: FetcherLog
}

type FetcherLog = Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>

const tendEveryMs = 500
/**
 * The most bytes of answers that are kept for partitions that were paused during a fetch. More bytes are
 * fetched again when their partitions are resumed.
 */
const keptBytes = 2 * 1024 ** 2
/** If a log isn't read now, its end is looked up again after this time, in milliseconds. */
const endKnownForMs = 5_000
const listEveryMs = 2_000

/**
 * Creates a fetcher, which reads partitions from their leaders. A partition that can't be read doesn't hold
 * up the other partitions. Such a partition is logged once, and is tried again after a pause. When another
 * broker becomes the leader of a partition, the fetcher asks that broker. Each broker gets one fetch at a
 * time.
 */
export function createFetcher(options: FetcherOptions): Fetcher {
  return new LogFetcher(options)
}

/**
 * Logs records that were deleted before they were read. Also called when a partition is started, because
 * records may have been deleted before the start.
 */
export function logLostRecords(
  log: Pick<FetcherLog, 'error'>,
  { topic, partition }: { readonly topic: string; readonly partition: number },
  from: number,
  to: number,
): void {
  const message =
    'records were deleted from Kafka before they were read, and are lost: retention is shorter than this worker was away or behind'
  log.error({ topic, partition, from, to, lost: to - from }, message)
}

/**
 * Logs that a partition has another log than before. An offset of the old log means nothing in the new log.
 */
export function logOtherLog(log: Pick<FetcherLog, 'error'>, fields: object): void {
  log.error(
    fields,
    'the log of a partition is not the one that was read before: its topic was recreated or restored, or a broker lost records; kafka.onTruncation decides what follows',
  )
}

class LogFetcher implements Fetcher, HandleOwner {
  readonly log: FetcherLog
  readonly #view: ClusterView
  readonly #longestWaitMs: () => number
  readonly #gatherMs: number | undefined
  readonly #handles = new Map<string, PartitionHandle>()
  readonly #loops = new Map<number, BrokerLoop>()
  readonly #ending: Promise<void>[] = []
  readonly #timer: NodeJS.Timeout
  readonly #unwatch: () => void
  #roomBytes = keptBytes
  #isStopped = false
  #isChecking = false
  #isListing = false
  #listedAtMs = -Infinity

  constructor({ view, longestWaitMs, gatherMs, log }: FetcherOptions) {
    this.log = log
    this.#view = view
    this.#longestWaitMs = longestWaitMs
    this.#gatherMs = gatherMs
    this.#unwatch = view.onChange(() => this.#lookAround())
    this.#timer = setInterval(() => this.#tend(), tendEveryMs)
  }

  open(order: FetchOrder): FetchHandle {
    const name = partitionName(order)
    if (this.#isStopped) throw new Error('the fetcher is stopped')
    if (this.#handles.has(name)) throw new Error(`${name} is being read already`)
    const handle = new PartitionHandle(order, this)
    this.#handles.set(name, handle)
    this.#place(handle)
    return handle
  }

  get troubled(): readonly TroubledPartition[] {
    return [...this.#handles.values()].flatMap(({ topic, partition, trouble }) =>
      trouble === undefined ? [] : [{ topic, partition, trouble }],
    )
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    this.#unwatch()
    for (const handle of this.#handles.values()) handle.close()
    for (const loop of this.#loops.values()) this.#endLoop(loop)
    this.#loops.clear()
    await Promise.all(this.#ending)
  }

  wake({ nodeId }: PartitionHandle): void {
    if (nodeId !== undefined) this.#loops.get(nodeId)?.wake()
  }

  topicIdOf(topic: string): string | undefined {
    return this.#view.topicIdOf(topic)
  }

  takeRoom(bytes: number): boolean {
    if (bytes > this.#roomBytes) return false
    this.#roomBytes -= bytes
    return true
  }

  giveRoom(bytes: number): void {
    this.#roomBytes += bytes
  }

  closed(handle: PartitionHandle): void {
    this.#handles.delete(partitionName(handle))
    if (handle.nodeId !== undefined) this.#loops.get(handle.nodeId)?.remove(handle)
  }

  #lookAround(): void {
    for (const handle of this.#handles.values()) this.#place(handle)
    this.#endIdleLoops()
    void this.#checkDue()
  }

  /**
   * Gives a handle to the loop of the broker that leads the handle's partition. If the leader epoch or the
   * topic id has changed, the log may have changed too, so the log of the handle has to be checked.
   */
  #place(handle: PartitionHandle): void {
    const { topic, partition } = handle
    const leader = this.#view.leaderOf(topic, partition)
    const topicId = this.#view.topicIdOf(topic)
    handle.topicId ??= topicId
    if (topicId !== undefined && topicId !== handle.topicId) handle.suspect()
    const isNewEpoch = leader !== undefined && leader.leaderEpoch !== handle.leaderEpoch
    if (isNewEpoch) {
      if (handle.leaderEpoch >= 0) handle.suspect()
      handle.leaderEpoch = leader.leaderEpoch
    }
    if (isNewEpoch || leader?.nodeId !== handle.nodeId) handle.hurry()
    this.#move(handle, leader?.nodeId)
  }

  #move(handle: PartitionHandle, nodeId: number | undefined): void {
    const before = handle.nodeId
    handle.nodeId = nodeId
    if (before === nodeId) {
      this.wake(handle)
      return
    }
    if (before !== undefined) this.#loops.get(before)?.remove(handle)
    if (nodeId !== undefined) this.#loopOf(nodeId).add(handle)
  }

  #loopOf(nodeId: number): BrokerLoop {
    let loop = this.#loops.get(nodeId)
    if (loop === undefined) {
      loop = new BrokerLoop({
        nodeId,
        view: this.#view,
        longestWaitMs: this.#longestWaitMs,
        gatherMs: this.#gatherMs,
        check: (handle) => this.#check(handle),
      })
      this.#loops.set(nodeId, loop)
    }
    return loop
  }

  /**
   * Ends the loops of brokers that no longer lead an open partition. Such a broker may have been removed from
   * the cluster.
   */
  #endIdleLoops(): void {
    const led = new Set([...this.#handles.values()].map(({ nodeId }) => nodeId))
    for (const [nodeId, loop] of this.#loops) {
      if (led.has(nodeId)) continue
      this.#loops.delete(nodeId)
      this.#endLoop(loop)
    }
  }

  #endLoop(loop: BrokerLoop): void {
    loop.end()
    this.#ending.push(loop.ended)
    void loop.ended.then(() => this.#ending.splice(this.#ending.indexOf(loop.ended), 1))
  }

  #tend(): void {
    const nowMs = performance.now()
    let mustLook = false
    for (const handle of this.#handles.values()) {
      const { topic, partition, nodeId, waitUntilMs } = handle
      if (nodeId !== undefined || !handle.isWatched) continue
      if (waitUntilMs > nowMs) continue
      mustLook = true
      handle.failed(this.#view.troubleOf(topic, partition) ?? `${topic}/${partition} has no leader`)
    }
    if (mustLook) void this.#view.refresh()
    void this.#checkDue()
    void this.#listEnds()
  }

  #check(handle: PartitionHandle): void {
    handle.suspect()
    // The topic may have been created again since the brokers were last asked.
    void this.#view.refresh().then(() => this.#checkDue())
  }

  /** Checks whether the logs of the handles with `mustCheck` are still the same. */
  async #checkDue(): Promise<void> {
    if (this.#isChecking) return
    const nowMs = performance.now()
    const due = [...this.#handles.values()].filter(
      ({ mustCheck, isWatched, nodeId, waitUntilMs }) =>
        mustCheck && isWatched && nodeId !== undefined && waitUntilMs <= nowMs,
    )
    if (due.length === 0) return
    this.#isChecking = true
    const asked = due.map((handle) => ({ handle, turn: handle.turn, leaderEpoch: handle.leaderEpoch }))
    const locations = await locate(
      this.#view,
      due.map((handle) => ({
        topic: handle.topic,
        partition: handle.partition,
        offset: handle.position,
        leaderEpoch: handle.leaderEpochBefore(handle.position),
        topicId: handle.topicId,
      })),
    )
    this.#isChecking = false
    for (const [index, { handle, turn, leaderEpoch }] of asked.entries()) {
      const location = locations[index]
      const isCurrent = handle.isWatched && handle.turn === turn && handle.leaderEpoch === leaderEpoch
      if (location !== undefined && isCurrent) this.#located(handle, location)
    }
  }

  #located(handle: PartitionHandle, location: Location): void {
    switch (location.kind) {
      case 'later':
        handle.failed(location.reason)
        return
      case 'goOn':
        handle.trust()
        break
      case 'retentionWon': {
        const { from, to } = location
        handle.trust()
        handle.seek(to)
        logLostRecords(this.log, handle, from, to)
        handle.on.lost(from, to)
        break
      }
      case 'truncated':
        handle.rest(location)
        return
    }
    // It can take an hour until a paused partition is fetched again. Without this call, the partition would
    // be reported as failing for all this time.
    if (handle.isPaused) handle.succeeded()
    this.wake(handle)
  }

  /**
   * Looks up the ends of logs that aren't read now because their partitions are paused. The lags are computed
   * from these ends.
   */
  async #listEnds(): Promise<void> {
    if (this.#isListing || performance.now() - this.#listedAtMs < listEveryMs) return
    const nowMs = Date.now()
    const unknown = [...this.#handles.values()].filter(
      // If the clock was set back, `endAtMs` lies in the future.
      ({ endAtMs, isPaused, nodeId, isWatched }) =>
        isPaused && isWatched && nodeId !== undefined && Math.abs(nowMs - endAtMs) > endKnownForMs,
    )
    if (unknown.length === 0) return
    this.#isListing = true
    this.#listedAtMs = performance.now()
    for (const { topic, partition, offset } of await listEnds(this.#view, unknown))
      this.#handles.get(partitionName({ topic, partition }))?.endsAt(offset, nowMs)
    this.#isListing = false
  }
}
