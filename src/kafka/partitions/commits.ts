import { believed, bindMetadata } from '../wire/commit-binding.ts'
import { maxRememberedOffsets } from '../wire/commit-metadata.ts'
import type { Coordinator } from '../cluster/coordinator.ts'
import { describeErrorCode, errorCodes, errorName, protocolError } from '../wire/error-codes.ts'
import { type CommitEntry, commitOffsets, fetchCommits, type Identity } from '../wire/group-messages.ts'
import type { Partition, Standing } from './partition.ts'
import { noCommit, type StoredCommit } from '../wire/stored-commit.ts'

export type CommitsOptions = {
  readonly coordinator: Pick<Coordinator, 'ask'>
  readonly groupId: string
  readonly log: Record<'warn' | 'error', (fields: object, message: string) => void>
}

/** A partition to commit, and the data about it that the commit stores. */
export type News = { readonly partition: Partition; readonly standing: Standing }

/**
 * The limit for the estimated size of a request, in bytes. Each time that the broker refuses a request as too
 * large, the limit is halved. A broker stores the commits of a request as one batch, and refuses a batch that
 * is larger than the broker's limit for batches (default 1 MB).
 */
const firstRequestBytes = 400_000
const leastRequestBytes = 20_000
const entryBytes = 80
const mostPartitionsPerFetch = 2_000
/**
 * Each time that the broker refuses metadata as too long, a commit may list only a quarter as many settled
 * offsets as before. If the number is no more than this, the next refusal lowers it to 0.
 */
const leastMemory = 512

/**
 * Reads and writes the commits of the group. Makes requests as large as the broker accepts. A refusal for one
 * partition changes nothing for the other partitions.
 */
export class Commits {
  readonly #options: CommitsOptions
  #requestBytes = firstRequestBytes
  /**
   * The number of offsets above the watermark that a commit can list as settled. Shrinks when the broker
   * refuses long metadata.
   */
  #memory = maxRememberedOffsets
  /** True if commits say which records went nowhere. False once the broker has refused long metadata. */
  #hasLeftOut = true
  /** The partitions whose commits are refused. They are kept so that each refusal is logged only once. */
  readonly #refused = new Set<string>()

  constructor(options: CommitsOptions) {
    this.#options = options
  }

  /**
   * Returns the group's commit for each partition, in the order of `partitions`, as it may be believed
   * (`believed`). Returns `noCommit` for a partition for which the group has no commit. Throws if the
   * coordinator reports an error for any of the partitions.
   */
  async read(partitions: readonly Partition[]): Promise<StoredCommit[]> {
    const { coordinator, groupId } = this.#options
    const stored = new Map<string, StoredCommit>()
    for (let from = 0; from < partitions.length; from += mostPartitionsPerFetch) {
      const part = partitions.slice(from, from + mostPartitionsPerFetch)
      const wanted = part.map(({ topic, id }) => ({ topic, partition: id }))
      const fetched = await coordinator.ask(fetchCommits(groupId, wanted))
      if (fetched.errorCode !== errorCodes.NONE) throw protocolError(fetched.errorCode)
      for (const { topic, partition, errorCode, offset, leaderEpoch, metadata } of fetched.partitions) {
        // A deleted topic has no commit.
        if (errorCode !== errorCodes.NONE && errorCode !== errorCodes.UNKNOWN_TOPIC_OR_PARTITION)
          throw protocolError(errorCode)
        const home = { groupId, topic, partition }
        stored.set(`${topic}/${partition}`, believed({ offset, leaderEpoch, metadata }, home))
      }
    }
    return partitions.map(({ topic, id }) => stored.get(`${topic}/${id}`) ?? noCommit)
  }

  /**
   * Commits as the member `identity`. Tells each partition whose commit was accepted. Returns the partitions
   * whose commits were refused, if the reason of the refusal concerns only the partition. Logs each new
   * refusal. Throws if the coordinator refuses the member. Commits that the coordinator accepted before it
   * refused the member stay valid.
   */
  async write(news: readonly News[], identity: Identity): Promise<ReadonlySet<Partition>> {
    const refused = new Set<Partition>()
    for (let left = news; left.length > 0;) {
      const { now, later } = this.#part(left)
      const codes = await this.#send(now, identity)
      const smaller = this.#makeSmaller(codes)
      const again: News[] = []
      for (const { one, code } of codes) {
        const { partition, standing } = one
        if (code === errorCodes.NONE) this.#taken(partition, standing)
        else if (smaller.has(code)) again.push(one)
        else if (ofPartition.has(code)) {
          refused.add(partition)
          this.#refuse(partition, code)
        } else throw protocolError(code)
      }
      left = [...again, ...later]
    }
    return refused
  }

  #taken(partition: Partition, standing: Standing): void {
    partition.committed(standing)
    this.#refused.delete(`${partition.topic}/${partition.id}`)
  }

  #refuse({ topic, id }: Partition, code: number): void {
    const name = `${topic}/${id}`
    if (this.#refused.has(name)) return
    this.#refused.add(name)
    const { log } = this.#options
    log.error(
      { topic, partition: id, error: errorName(code) },
      `${commitRefused}: ${describeErrorCode(code)}`,
    )
  }

  /** Splits off as many partitions as fit into one request, and at least one partition. */
  #part(news: readonly News[]): { now: readonly Sized[]; later: readonly News[] } {
    const now: Sized[] = []
    let bytes = 0
    for (const one of news) {
      const commit = this.#commitOf(one)
      bytes += sizeOf(one.partition, commit, this.#options.groupId)
      if (now.length > 0 && bytes > this.#requestBytes) break
      now.push({ one, commit })
    }
    return { now, later: news.slice(now.length) }
  }

  #commitOf({ partition, standing }: News): StoredCommit {
    const commit = partition.commitOf(standing, this.#memory, this.#hasLeftOut)
    // A commit that lists nothing as settled needs no binding, and the broker may refuse any longer metadata.
    if (this.#memory === 0 || commit.metadata === null) return commit
    const home = { groupId: this.#options.groupId, topic: partition.topic, partition: partition.id }
    return { ...commit, metadata: bindMetadata(commit.metadata, home, commit.offset) }
  }

  async #send(sized: readonly Sized[], identity: Identity): Promise<readonly { one: News; code: number }[]> {
    const entries = sized.map(({ one: { partition }, commit }): CommitEntry => ({
      topic: partition.topic,
      partition: partition.id,
      leaderEpoch: -1,
      ...commit,
    }))
    const { coordinator, groupId } = this.#options
    const answers = await coordinator.ask(commitOffsets(groupId, identity, entries))
    const codes = new Map(
      answers.map(({ topic, partition, errorCode }) => [`${topic}/${partition}`, errorCode]),
    )
    return sized.map(({ one }) => {
      const code = codes.get(`${one.partition.topic}/${one.partition.id}`)
      return { one, code: code ?? errorCodes.UNKNOWN_SERVER_ERROR }
    })
  }

  /**
   * If the broker found the requests or their metadata too large, makes later requests or metadata smaller.
   * Returns the error codes of commits that may be accepted when they are sent again.
   */
  #makeSmaller(answers: readonly { one: News; code: number }[]): ReadonlySet<number> {
    const { log } = this.#options
    const codes = new Set(answers.map(({ code }) => code))
    const smaller = new Set<number>()
    const wasTooLarge = tooLarge.filter((code) => codes.has(code))
    if (wasTooLarge.length > 0 && answers.length > 1 && this.#requestBytes > leastRequestBytes) {
      for (const code of wasTooLarge) smaller.add(code)
      this.#requestBytes = Math.floor(this.#requestBytes / 2)
      log.warn(
        { bytes: this.#requestBytes },
        'the broker accepts only smaller commits: sending them in smaller parts',
      )
    }
    if (!codes.has(errorCodes.OFFSET_METADATA_TOO_LARGE)) return smaller
    if (this.#hasLeftOut && answers.some(({ one }) => one.partition.notesPassedOn)) {
      smaller.add(errorCodes.OFFSET_METADATA_TOO_LARGE)
      this.#hasLeftOut = false
      log.warn({}, leftOutTooLarge)
    } else if (this.#memory > 0) {
      smaller.add(errorCodes.OFFSET_METADATA_TOO_LARGE)
      if (this.#memory === maxRememberedOffsets) log.warn({}, metadataTooLarge)
      this.#memory = this.#memory > leastMemory ? Math.floor(this.#memory / 4) : 0
    }
    return smaller
  }
}

type Sized = { readonly one: News; readonly commit: StoredCommit }

function sizeOf({ topic }: Partition, { metadata }: StoredCommit, groupId: string): number {
  return entryBytes + topic.length + groupId.length + (metadata?.length ?? 0)
}

/**
 * The errors by which a broker reports that the commits of one request are too large together. Kafka 4
 * reports this as an unknown error.
 */
const tooLarge = [errorCodes.INVALID_COMMIT_OFFSET_SIZE, errorCodes.UNKNOWN_SERVER_ERROR]

/** The errors that concern one partition only. They don't say that the group refuses the member. */
const ofPartition: ReadonlySet<number> = new Set([
  errorCodes.UNKNOWN_TOPIC_OR_PARTITION,
  errorCodes.TOPIC_AUTHORIZATION_FAILED,
  errorCodes.OFFSET_METADATA_TOO_LARGE,
  errorCodes.INVALID_COMMIT_OFFSET_SIZE,
])

const commitRefused =
  'the broker refuses the commits of this partition: its next owner will deliver again what was settled since the last commit'
const leftOutTooLarge =
  'the broker accepts only shorter commits: after a restart or a rebalance, repeats of earlier messages are delivered; raise its offset.metadata.max.bytes to 4096'
const metadataTooLarge =
  'the broker accepts only shorter commits: after a restart, what was settled ahead of an unsettled record is delivered again; raise its offset.metadata.max.bytes to 4096'
