import type { Kafka } from 'kafkajs'
import { Coordinator } from '../cluster/coordinator.ts'
import { describeErrorCode, errorCodes, protocolError } from '../wire/error-codes.ts'
import { fetchCommits, type FetchedCommit } from '../wire/group-messages.ts'
import { listOffsetsRequest, type OffsetQuestion } from '../wire/offset-requests.ts'
import { partitionName } from '../wire/partition-name.ts'
import { openPartwiseCluster } from '../cluster/partwise-cluster.ts'
import { ask, type WireRequest } from '../wire/wire-request.ts'
import { answerWithin } from '../../async/within.ts'
import { messageOf } from '../wire/errors.ts'

export type GroupLag = {
  /**
   * The number of records that the group has still to commit, by topic. Partitions that can't be read aren't
   * included.
   */
  readonly lag: ReadonlyMap<string, number>
  /** The partitions that can't be read, as `TOPIC/PARTITION`, each with its reason. */
  readonly failures: ReadonlyMap<string, string>
  /** The number of partitions that were asked about. */
  readonly partitions: number
}

type Place = { readonly topic: string; readonly partition: number }
type Led = Place & { readonly leader: number }

/**
 * The most partitions of one OffsetFetch request. The answer may hold 4 KiB of metadata for each partition.
 */
const commitsInRequest = 1_000
/**
 * The longest wait for an answer, in milliseconds. If one broker hangs, the lag of the other brokers'
 * partitions is still reported after this time.
 */
const answerWithinMs = 5_000

/**
 * Reads how many records a group has still to commit. A partition without a commit counts from the start of
 * its log. The figures come from the brokers, so they are known even if the group has no members. An error of
 * one partition doesn't affect the others.
 */
export class GroupLagReader {
  readonly #opened: ReturnType<typeof openPartwiseCluster>
  readonly #coordinator: Coordinator
  readonly #groupId: string
  /**
   * True after a partition could not be read. The leaders are then looked up again, because another broker
   * may lead the partition by now.
   */
  #isStale = false

  /**
   * Prepares the reader. The reader connects when it is first used. `topic` may be any topic of the group.
   */
  constructor(kafka: Kafka, groupId: string, topic: string) {
    this.#groupId = groupId
    this.#opened = openPartwiseCluster(kafka)
    this.#coordinator = new Coordinator(kafka, groupId, topic)
  }

  /**
   * Reads the lag of these topics. Rejects if no broker answers, or if the group's coordinator doesn't
   * answer.
   */
  async read(topics: readonly string[]): Promise<GroupLag> {
    if (topics.length === 0) return { lag: new Map(), failures: new Map(), partitions: 0 }
    const failures = new Map<string, string>()
    const places = await this.#placesOf(topics)
    // Commits are read before the ends of the logs. Otherwise a commit between the two readings could make
    // the lag negative.
    const positions = await this.#positionsOf(places, failures)
    const ends = await this.#offsetsOf(places, 'end', failures)
    const isBehind = (place: Led): boolean =>
      (ends.get(partitionName(place)) ?? 0) > (positions.get(partitionName(place)) ?? 0)
    // The starts are needed because retention may have deleted uncommitted records. Without uncommitted
    // records, the start doesn't matter.
    const starts = await this.#offsetsOf(places.filter(isBehind), 'start', failures)
    const lag = new Map<string, number>()
    for (const place of places) {
      const name = partitionName(place)
      const end = ends.get(name)
      const position = positions.get(name)
      if (end === undefined || position === undefined) continue
      const from = Math.max(position, starts.get(name) ?? 0)
      lag.set(place.topic, (lag.get(place.topic) ?? 0) + Math.max(0, end - from))
    }
    this.#isStale = failures.size > 0
    return { lag, failures, partitions: places.length }
  }

  /** Returns the present end of each partition of a topic. Rejects if one isn't known. */
  async endsOf(topic: string): Promise<ReadonlyMap<number, number>> {
    const places = await this.#placesOf([topic])
    const failures = new Map<string, string>()
    const offsets = await this.#offsetsOf(places, 'end', failures)
    this.#isStale = failures.size > 0
    refuseFailures(failures)
    return new Map(places.map((place) => [place.partition, offsets.get(partitionName(place)) ?? 0]))
  }

  /**
   * Returns how many records of a topic that lie before `ends` the group has still to commit, at most.
   * Rejects if the commit of a partition isn't known.
   */
  async behind(topic: string, ends: ReadonlyMap<number, number>): Promise<number> {
    const places = await this.#placesOf([topic])
    const failures = new Map<string, string>()
    const positions = await this.#positionsOf(places, failures)
    refuseFailures(failures)
    let behind = 0
    for (const [partition, end] of ends)
      behind += Math.max(0, end - (positions.get(partitionName({ topic, partition })) ?? 0))
    return behind
  }

  async close(): Promise<void> {
    this.#coordinator.close()
    await this.#opened.close()
  }

  async #placesOf(topics: readonly string[]): Promise<Led[]> {
    const { cluster } = this.#opened
    const wanted = new Set(topics)
    await cluster.connect()
    await cluster.addMultipleTargetTopics([...topics])
    await (this.#isStale ? cluster.refreshMetadata() : cluster.refreshMetadataIfNecessary())
    const reported = this.#opened.metadata?.topicMetadata ?? []
    return reported.flatMap(({ topic, partitionMetadata }) =>
      wanted.has(topic)
        ? partitionMetadata.map(({ partitionId, leader }) => ({ topic, partition: partitionId, leader }))
        : [],
    )
  }

  /** Reads the committed offset of each partition. The offset is 0 if the partition has no commit. */
  async #positionsOf(places: readonly Led[], failures: Map<string, string>): Promise<Map<string, number>> {
    const positions = new Map<string, number>()
    for (let start = 0; start < places.length; start += commitsInRequest) {
      const some = places.slice(start, start + commitsInRequest)
      const { errorCode, partitions } = await this.#coordinator.ask(fetchCommits(this.#groupId, some))
      if (errorCode !== errorCodes.NONE) throw protocolError(errorCode)
      for (const commit of partitions) {
        if (commit.errorCode === errorCodes.NONE) positions.set(partitionName(commit), positionOf(commit))
        else failures.set(partitionName(commit), describeErrorCode(commit.errorCode))
      }
    }
    return positions
  }

  async #offsetsOf(
    places: readonly Led[],
    end: 'start' | 'end',
    failures: Map<string, string>,
  ): Promise<Map<string, number>> {
    const offsets = new Map<string, number>()
    const byLeader = Map.groupBy(places, ({ leader }) => leader)
    const asked = [...byLeader].map(async ([leader, led]) => {
      try {
        if (leader < 0) throw new Error('it has no leader')
        const answers = await this.#ask(leader, listOffsetsRequest(led.map(questionOf), end))
        for (const answer of answers) {
          if (answer.errorCode === errorCodes.NONE) offsets.set(partitionName(answer), answer.offset)
          else failures.set(partitionName(answer), describeErrorCode(answer.errorCode))
        }
      } catch (error) {
        for (const place of led) failures.set(partitionName(place), messageOf(error))
      }
    })
    await Promise.all(asked)
    return offsets
  }

  async #ask<T>(nodeId: number, request: WireRequest<T>): Promise<T> {
    const answered = this.#opened.findBroker(nodeId).then((broker) => ask(broker, request))
    const late = `the broker ${nodeId} did not answer within ${answerWithinMs} ms`
    return answerWithin(answerWithinMs, answered, late, () => this.#opened.readsFromMs)
  }
}

function refuseFailures(failures: ReadonlyMap<string, string>): void {
  const [first] = failures
  if (first !== undefined) throw new Error(`${first[0]}: ${first[1]}`)
}

function positionOf({ offset }: FetchedCommit): number {
  return Math.max(0, offset)
}

function questionOf({ topic, partition }: Place): OffsetQuestion {
  return { topic, partition, currentLeaderEpoch: -1 }
}
