import type { ClusterView } from '../cluster/cluster-view.ts'
import { describeErrorCode, errorCodes } from '../wire/error-codes.ts'
import {
  type EpochAnswer,
  epochEndRequest,
  listOffsetsRequest,
  type OffsetAnswer,
  type OffsetQuestion,
} from '../wire/offset-requests.ts'
import { partitionName } from '../wire/partition-name.ts'
import { ask, BrokerTooOldError, readsFromMs, type WireBroker } from '../wire/wire-request.ts'
import { within } from '../../async/within.ts'
import { messageOf } from '../wire/errors.ts'

/** A place in a partition's log, and facts about the log that were noted when the place was reached. */
export type LogPlace = {
  readonly topic: string
  readonly partition: number
  /**
   * The offset of the next record to read. -1 for a partition that has never been read. The reading of such a
   * partition begins at the start of its log.
   */
  readonly offset: number
  /** The leader epoch of the last record before `offset`. -1 or absent if this epoch isn't known. */
  readonly leaderEpoch?: number | undefined
  /** The topic's id in 22 characters. `undefined` if the id isn't known. */
  readonly topicId?: string | undefined
  /**
   * The last record at or above `offset` that is remembered as settled. `last` is the record's offset.
   * `leaderEpoch` is -1 if the record's leader epoch isn't known.
   */
  readonly settled?: { readonly last: number; readonly leaderEpoch: number } | undefined
}

type EpochEnd = { readonly leaderEpoch: number; readonly endOffset: number }

/** The leader's answers about a log. */
export type LogFacts = {
  /** The first offset that the log still has. */
  readonly start: number
  /** The offset after the last record that all in-sync replicas have. */
  readonly end: number
  readonly topicId: string | undefined
  /**
   * The latest epoch of the log that isn't later than `leaderEpoch` of the place, and the offset at which
   * this epoch ends. Both are -1 if the log has no such epoch. `undefined` if the place has no epoch, or if
   * the broker is too old to answer.
   */
  readonly epochEnd: EpochEnd | undefined
  /** Like `epochEnd`, but for the leader epoch of the last record that is remembered as settled. */
  readonly settledEpochEnd?: EpochEnd | undefined
}

export type TruncationReason =
  /** The topic has another id, because it was deleted and created again, or was restored. */
  | 'recreated'
  /** The log ends before the offset that was to be read next. */
  | 'shorter'
  /** Records that were already read have been replaced by other records. */
  | 'diverged'

export type Truncation = {
  /**
   * The first offset at which the present log differs from the former log. If that offset isn't known, `at`
   * is the start of the present log. The present log's records from `at` on were never read.
   */
  readonly at: number
  /** The offset at which the reading was to continue. */
  readonly from: number
  readonly reason: TruncationReason
}

/** Says whether the log of a place is still the same, and at which offset the reading continues. */
export type PlaceJudgement =
  | { readonly kind: 'goOn'; readonly offset: number }
  /** Records were deleted before they were read. Their offsets are at least `from` and lower than `to`. */
  | { readonly kind: 'retentionWon'; readonly from: number; readonly to: number }
  | ({ readonly kind: 'truncated' } & Truncation)

/**
 * The result of looking up a place. `later` means that the leader can't be asked now, so the place has to be
 * looked up again later.
 */
export type Location =
  | (PlaceJudgement & { readonly log: LogFacts })
  | { readonly kind: 'later'; readonly reason: string }

/**
 * Judges whether a place still exists in a log. This function is pure. If the place lies below the start of
 * the same log, retention has deleted its records. For the leader epoch, the rules of Kafka's own client
 * (KIP-320) are used.
 */
export function judgePlace({ offset, topicId, leaderEpoch = -1 }: LogPlace, log: LogFacts): PlaceJudgement {
  const { start, end, epochEnd } = log
  const truncatedAt = (at: number, reason: TruncationReason): PlaceJudgement => ({
    kind: 'truncated',
    at: Math.max(at, start),
    from: offset,
    reason,
  })
  if (offset < 0) return { kind: 'goOn', offset: start }
  if (topicId !== undefined && log.topicId !== undefined && topicId !== log.topicId)
    return truncatedAt(start, 'recreated')
  if (offset < start) return { kind: 'retentionWon', from: offset, to: start }
  const reason = end < offset ? 'shorter' : 'diverged'
  if (epochEnd === undefined) return end < offset ? truncatedAt(start, reason) : { kind: 'goOn', offset }
  // No record of the present log has the leader epoch of the record that was read last. So it isn't known at
  // which offset the two logs begin to differ.
  if (epochEnd.leaderEpoch < leaderEpoch && (epochEnd.endOffset < 0 || epochEnd.endOffset >= offset))
    return truncatedAt(start, reason)
  if (epochEnd.endOffset < offset) return truncatedAt(epochEnd.endOffset, reason)
  return { kind: 'goOn', offset }
}

/** The part of a log that still has the records that are remembered as settled. */
export type KnownSettled = {
  /**
   * The offset below which the log is known to have the same records. Infinity if the log has all of the
   * records that are remembered as settled.
   */
  readonly below: number
  /** True if the log has lost records that were read, and has other records from `below` on. */
  readonly isCutOff: boolean
}

/**
 * Judges up to which offset the log still has the records that are remembered as settled. This function is
 * pure. The log may have lost records after the place, and may have other records at their offsets now. Call
 * this only for a place at which the reading can continue.
 */
export function judgeSettled({ offset, leaderEpoch, settled }: LogPlace, log: LogFacts): KnownSettled {
  if (settled === undefined) return allKnown
  const { epochEnd, settledEpochEnd } = log
  if (settledEpochEnd !== undefined) {
    // If no record of the log has the epoch of the settled record, it isn't known up to which offset the log
    // is still the same.
    const isThere = settledEpochEnd.leaderEpoch === settled.leaderEpoch
    const below = isThere ? settledEpochEnd.endOffset : offset
    return below > settled.last ? allKnown : { below, isCutOff: true }
  }
  // Commits of earlier Sluice versions don't contain the epoch of the settled record. So records of a later
  // epoch than `leaderEpoch` may have been replaced. They aren't treated as known.
  const ends = epochEnd?.leaderEpoch === leaderEpoch ? [log.end, epochEnd?.endOffset ?? log.end] : [log.end]
  const below = Math.min(...ends)
  return below > settled.last ? allKnown : { below, isCutOff: false }
}

const allKnown: KnownSettled = { below: Infinity, isCutOff: false }

/**
 * Looks up these places by asking the leaders of their partitions, with at most four requests to each leader.
 * Returns the results in the order of `places`. Never rejects.
 */
export async function locate(view: ClusterView, places: readonly LogPlace[]): Promise<readonly Location[]> {
  const locations = new Map<LogPlace, Location>()
  const byLeader = Map.groupBy(places, ({ topic, partition }) => view.leaderOf(topic, partition)?.nodeId)
  const asked = [...byLeader].map(async ([nodeId, led]) => {
    const found =
      nodeId === undefined
        ? led.map((place): Location => later(troubleOf(view, place)))
        : await locateInTime(view, nodeId, led)
    for (const [index, place] of led.entries()) {
      const location = found[index]
      if (location !== undefined) locations.set(place, location)
    }
  })
  await Promise.all(asked)
  return places.map((place) => locations.get(place) ?? later('nothing was answered'))
}

function troubleOf(view: ClusterView, { topic, partition }: LogPlace): string {
  return view.troubleOf(topic, partition) ?? `${topic}/${partition} has no leader`
}

function later(reason: string): Location {
  return { kind: 'later', reason }
}

/**
 * Asks one broker about the places in partitions that this broker leads. If the broker hangs, these places
 * have the result `later`, so they don't hold up the places of other brokers.
 */
async function locateInTime(
  view: ClusterView,
  nodeId: number,
  places: readonly LogPlace[],
): Promise<readonly Location[]> {
  let broker: WireBroker | undefined
  const asked = view.broker(nodeId).then((found) => (broker = found))
  const located = locateAt(view, { nodeId, asked }, places)
  const readsFrom = (): number => (broker === undefined ? -Infinity : readsFromMs(broker))
  if (await within(leaderWithinMs, located, readsFrom)) return located
  void view.refresh()
  const reason = `its leader, the broker ${nodeId}, did not answer within ${leaderWithinMs} ms`
  return places.map(() => later(reason))
}

const leaderWithinMs = 3_000

async function locateAt(
  view: ClusterView,
  { nodeId, asked }: { readonly nodeId: number; readonly asked: Promise<WireBroker> },
  places: readonly LogPlace[],
): Promise<readonly Location[]> {
  try {
    const broker = await asked
    const questions = places.map(({ topic, partition }) => questionOf(view, topic, partition))
    const [starts, ends, epochs, settledEpochs] = await Promise.all([
      ask(broker, listOffsetsRequest(questions, 'start')).then(byName),
      ask(broker, listOffsetsRequest(questions, 'end')).then(byName),
      askEpochs(broker, view, places, ({ leaderEpoch = -1 }) => leaderEpoch),
      askEpochs(broker, view, places, ({ settled }) => settled?.leaderEpoch ?? -1),
    ])
    return places.map((place) => locationOf(view, place, { starts, ends, epochs, settledEpochs }))
  } catch (error) {
    void view.refresh()
    const reason = `its leader, the broker ${nodeId}, does not answer: ${messageOf(error)}`
    return places.map(() => later(reason))
  }
}

function questionOf(view: ClusterView, topic: string, partition: number): OffsetQuestion {
  return { topic, partition, currentLeaderEpoch: view.leaderOf(topic, partition)?.leaderEpoch ?? -1 }
}

async function askEpochs(
  broker: WireBroker,
  view: ClusterView,
  places: readonly LogPlace[],
  epochOf: (place: LogPlace) => number,
): Promise<ReadonlyMap<string, EpochAnswer>> {
  const questions = places.flatMap((place) => {
    const leaderEpoch = epochOf(place)
    return leaderEpoch < 0 ? [] : [{ ...questionOf(view, place.topic, place.partition), leaderEpoch }]
  })
  const none = new Map<string, EpochAnswer>()
  if (questions.length === 0) return none
  try {
    return byName(await ask(broker, epochEndRequest(questions)))
  } catch (error) {
    // A broker that is too old to report epochs is not asked about them.
    if (error instanceof BrokerTooOldError) return none
    throw error
  }
}

type Answers<T> = ReadonlyMap<string, T>

function byName<T extends { readonly topic: string; readonly partition: number }>(
  answers: readonly T[],
): Answers<T> {
  return new Map(answers.map((answer) => [partitionName(answer), answer]))
}

type Answered = {
  readonly starts: Answers<OffsetAnswer>
  readonly ends: Answers<OffsetAnswer>
  readonly epochs: Answers<EpochAnswer>
  readonly settledEpochs: Answers<EpochAnswer>
}

function locationOf(
  view: ClusterView,
  place: LogPlace,
  { starts, ends, epochs, settledEpochs }: Answered,
): Location {
  const name = partitionName(place)
  const [start, end, epoch] = [starts.get(name), ends.get(name), epochs.get(name)]
  const settledEpoch = settledEpochs.get(name)
  if (start === undefined || end === undefined) return later(`the leader of ${name} did not answer for it`)
  const errorCode = [start, end, epoch, settledEpoch].find(
    (answer) => answer !== undefined && answer.errorCode !== 0,
  )?.errorCode
  if (errorCode !== undefined) {
    if (!isOfAuthorization(errorCode)) void view.refresh()
    return later(`${name}: ${describeErrorCode(errorCode)}`)
  }
  const log: LogFacts = {
    start: start.offset,
    end: end.offset,
    topicId: view.topicIdOf(place.topic),
    epochEnd: epochEndOf(epoch),
    settledEpochEnd: epochEndOf(settledEpoch),
  }
  return { ...judgePlace(place, log), log }
}

function epochEndOf(answer: EpochAnswer | undefined): EpochEnd | undefined {
  return answer && { leaderEpoch: answer.leaderEpoch, endOffset: answer.endOffset }
}

function isOfAuthorization(errorCode: number): boolean {
  return errorCode === errorCodes.TOPIC_AUTHORIZATION_FAILED
}

/**
 * Returns the ends of partitions' logs. Leaves out partitions whose leaders don't answer now. Never rejects.
 */
export async function listEnds(
  view: ClusterView,
  partitions: readonly { readonly topic: string; readonly partition: number }[],
): Promise<readonly OffsetAnswer[]> {
  const byLeader = Map.groupBy(partitions, ({ topic, partition }) => view.leaderOf(topic, partition)?.nodeId)
  const answers = [...byLeader].map(async ([nodeId, led]) => {
    if (nodeId === undefined) return []
    try {
      const questions = led.map(({ topic, partition }) => questionOf(view, topic, partition))
      return await ask(await view.broker(nodeId), listOffsetsRequest(questions, 'end'))
    } catch {
      // The code that reads from this broker reports the error.
      return []
    }
  })
  return (await Promise.all(answers)).flat().filter(({ errorCode }) => errorCode === errorCodes.NONE)
}
