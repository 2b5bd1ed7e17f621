import type { ClusterView } from './cluster-view.ts'
import { describeErrorCode, errorCodes } from './error-codes.ts'
import {
  type EpochAnswer,
  epochEndRequest,
  listOffsetsRequest,
  type OffsetAnswer,
  type OffsetQuestion,
} from './offset-requests.ts'
import { ask, BrokerTooOldError, type WireBroker } from './wire.ts'
import { within } from './within.ts'

/** A place in a partition's log, with what is remembered of the log as it was when it was reached. */
export type LogPlace = {
  readonly topic: string
  readonly partition: number
  /** The next record that is wanted; -1 for one that has never been read: it begins at the log's start. */
  readonly offset: number
  /** Of the last record before `offset`; -1 where it isn't known. */
  readonly leaderEpoch?: number | undefined
  /** In 22 characters; `undefined` where it isn't known. */
  readonly topicId?: string | undefined
  /**
   * The last record from `offset` on that is remembered as settled, and its leader's epoch, -1 where that
   * isn't known.
   */
  readonly settled?: { readonly last: number; readonly leaderEpoch: number } | undefined
}

type EpochEnd = { readonly leaderEpoch: number; readonly endOffset: number }

/** What the leader says of a log. */
export type LogFacts = {
  /** The first offset that it still has. */
  readonly start: number
  /** One past its last record that all in-sync replicas have. */
  readonly end: number
  readonly topicId: string | undefined
  /**
   * Of the epoch that is remembered: the latest epoch of the log that is not after it, and where that ends.
   * `undefined` where nobody remembers an epoch, or the broker can't tell; -1 and -1: the log has nothing of
   * such an epoch.
   */
  readonly epochEnd: EpochEnd | undefined
  /** The same for the epoch of the last record that is remembered as settled. */
  readonly settledEpochEnd?: EpochEnd | undefined
}

export type TruncationReason =
  /** The topic has another id: it was deleted and made again, or restored. */
  | 'recreated'
  /** The log ends before the place. */
  | 'shorter'
  /** The log has other records before the place than those that were read. */
  | 'diverged'

export type Truncation = {
  /**
   * What is there from this offset on was never read: the first offset at which the logs differ, or the log's
   * start where that isn't known.
   */
  readonly at: number
  /** Where it was being read. */
  readonly from: number
  readonly reason: TruncationReason
}

/** Whether it is still the same log, and from where on it is read. */
export type PlaceJudgement =
  | { readonly kind: 'goOn'; readonly offset: number }
  /** Records `from` to before `to` are deleted, and were not read. */
  | { readonly kind: 'retentionWon'; readonly from: number; readonly to: number }
  | ({ readonly kind: 'truncated' } & Truncation)

/** What was found out about a place. `later`: the leader can't be asked now. */
export type Location =
  | (PlaceJudgement & { readonly log: LogFacts })
  | { readonly kind: 'later'; readonly reason: string }

/**
 * Pure. A place below the log's start was overtaken by retention, as long as it is the same log. The rules of
 * the leader's epoch are those of Kafka's own client (KIP-320).
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
  // Of the last record that was read, the log has nothing of its epoch any more: where they part isn't known.
  if (epochEnd.leaderEpoch < leaderEpoch && (epochEnd.endOffset < 0 || epochEnd.endOffset >= offset))
    return truncatedAt(start, reason)
  if (epochEnd.endOffset < offset) return truncatedAt(epochEnd.endOffset, reason)
  return { kind: 'goOn', offset }
}

/** What of that which is remembered as settled is of the log that is there. */
export type KnownSettled = {
  /**
   * From this offset on the log may have other records: nothing is known of them. Infinity: all of it holds.
   */
  readonly below: number
  /** The log has lost records that were read: it is another one from there on. */
  readonly isCutOff: boolean
}

/**
 * Pure. For a place that is gone on from: behind it records may have been lost, with others at their offsets
 * now.
 */
export function judgeSettled({ offset, leaderEpoch, settled }: LogPlace, log: LogFacts): KnownSettled {
  if (settled === undefined) return allKnown
  const { epochEnd, settledEpochEnd } = log
  if (settledEpochEnd !== undefined) {
    // The log that ended with a record of that epoch is not there at all: who knows how far it is the same.
    const isThere = settledEpochEnd.leaderEpoch === settled.leaderEpoch
    const below = isThere ? settledEpochEnd.endOffset : offset
    return below > settled.last ? allKnown : { below, isCutOff: true }
  }
  // Versions before don't say the epoch: what is of a later one than the place may be known or not.
  const ends = epochEnd?.leaderEpoch === leaderEpoch ? [log.end, epochEnd?.endOffset ?? log.end] : [log.end]
  const below = Math.min(...ends)
  return below > settled.last ? allKnown : { below, isCutOff: false }
}

const allKnown: KnownSettled = { below: Infinity, isCutOff: false }

/** Asks the leaders, in four requests each at the most; answers in the order of `places`. Never rejects. */
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

/** A broker that hangs must not hold up the partitions of the others: its own are located later. */
async function locateInTime(
  view: ClusterView,
  nodeId: number,
  places: readonly LogPlace[],
): Promise<readonly Location[]> {
  const located = locateAt(view, nodeId, places)
  if (await within(leaderWithinMs, located)) return located
  void view.refresh()
  const reason = `its leader, the broker ${nodeId}, did not answer within ${leaderWithinMs} ms`
  return places.map(() => later(reason))
}

const leaderWithinMs = 3_000

async function locateAt(
  view: ClusterView,
  nodeId: number,
  places: readonly LogPlace[],
): Promise<readonly Location[]> {
  try {
    const broker = await view.broker(nodeId)
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
    // What an older broker can't tell isn't looked at.
    if (error instanceof BrokerTooOldError) return none
    throw error
  }
}

type Answers<T> = ReadonlyMap<string, T>

function byName<T extends { readonly topic: string; readonly partition: number }>(
  answers: readonly T[],
): Answers<T> {
  return new Map(answers.map((answer) => [nameOf(answer), answer]))
}

function nameOf({ topic, partition }: { readonly topic: string; readonly partition: number }): string {
  return `${topic}/${partition}`
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
  const name = nameOf(place)
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Where the logs of partitions end, of those whose leaders answer now. Never rejects. */
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
      // Whoever reads from this broker says so.
      return []
    }
  })
  return (await Promise.all(answers)).flat().filter(({ errorCode }) => errorCode === errorCodes.NONE)
}
