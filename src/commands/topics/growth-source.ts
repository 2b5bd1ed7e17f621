import { hash } from 'node:crypto'
import type { createKafka } from '../../kafka/cluster/client.ts'
import {
  type GroupCommit,
  movedCommit,
  readCommits,
  type GroupPlace,
  placeOf,
} from '../../kafka/other-groups/group-state.ts'
import type { PartitionReader } from '../../kafka/read/partition-reader.ts'
import { topicIdsOf } from '../../topics/topic-grow.ts'
import { withAdmin } from '../../kafka/cluster/with-admin.ts'
import { topics as topicList } from '../../topics/topic-list.ts'
import { loadMarks, otherFrom } from '../../waiting/load-marks.ts'
import { Owners } from '../../waiting/owners.ts'
import { StartError } from '../../roles/start/start-error.ts'

/** A partition from which records are copied or counted. */
export type SourcePartition = {
  readonly topic: string
  readonly partition: number
  /** The offset of the first record. */
  readonly start: number
  /** The offset after the last record. */
  readonly end: number
  /** The offset below which all records are settled. */
  readonly position: number
  readonly place: GroupPlace
}

/** Returns an upper bound of the number of a partition's unsettled records. */
export function openOf({ position, end, place }: SourcePartition): number {
  return Math.max(0, end - position - place.settledAbove.size)
}

export function isSettled({ position, place }: SourcePartition, offset: number): boolean {
  return offset < position || place.settledAbove.has(offset)
}

/**
 * Reads the offset ranges of the topics, and the positions of the group in the topics. Returns a list of the
 * partitions for each topic, in their order.
 */
export async function readSource(
  kafka: ReturnType<typeof createKafka>,
  reader: PartitionReader,
  { groupId, topics }: { groupId: string; topics: readonly string[] },
): Promise<ReadonlyMap<string, readonly SourcePartition[]>> {
  const commits = await withAdmin(kafka, (admin) => readCommits(admin, groupId, topics))
  for (const commit of commits) refuseMoved(commit, groupId)
  const ids = await topicIdsOf(kafka, topics)
  const byTopic = Map.groupBy(commits, ({ topic }) => topic)
  const source = new Map<string, readonly SourcePartition[]>()
  for (const topic of topics) {
    const places = (byTopic.get(topic) ?? []).map(placeOf).sort((a, b) => a.partition - b.partition)
    source.set(topic, await Promise.all(places.map((place) => partitionOf(reader, place, ids.get(topic)))))
  }
  return source
}

/**
 * Throws if somebody has moved a commit, and has kept its metadata. The settled offsets in it, which wouldn't
 * be copied, are then those of other records.
 */
function refuseMoved(commit: GroupCommit, groupId: string): void {
  const moved = movedCommit(commit, groupId)
  if (moved === undefined) return
  throw new StartError(
    `${commit.topic}/${commit.partition}: ${moved}. Start the workers, which go on from there, and stop them again first.`,
  )
}

async function partitionOf(
  reader: PartitionReader,
  place: GroupPlace,
  topicId: string | undefined,
): Promise<SourcePartition> {
  const { topic, partition, offset } = place
  const { start, end } = await reader.range({ topic, partition })
  const isOther = place.topicId !== undefined && topicId !== undefined && place.topicId !== topicId
  if (offset > end || isOther)
    throw isOtherLog(place, `The group stands at offset ${offset} of`, `(it ends at ${end})`)
  const position = Math.max(offset, start)
  if (!topic.endsWith(queues)) return { topic, partition, start, end, position, place }
  const settledAbove = await doneAbove(reader, { place, topicId: topicId ?? '', position })
  return { topic, partition, start, end, position, place: { ...place, settledAbove } }
}

/** The end of the name of the topic in which deliveries wait for their turn. */
const queues = topicList.waiting.name

/** Returns the offsets of waiting deliveries that are done, as far as the commit doesn't cover them. */
async function doneAbove(
  reader: PartitionReader,
  { place, topicId, position }: { place: GroupPlace; topicId: string; position: number },
): Promise<ReadonlySet<number>> {
  const { topic, partition } = place
  const marks = await loadMarks({
    reader,
    topic: `${topic.slice(0, -queues.length)}${topicList.waitingMarks.name}`,
    unit: partition,
    topicId,
    owners: new Owners(),
    signal: new AbortController().signal,
  })
  const differsFrom = await otherFrom(reader, { topic, partition }, marks.lastPlace)
  if (differsFrom < Infinity)
    throw isOtherLog(place, 'The marks describe', `(other records from offset ${differsFrom} on)`)
  return new Set(marks.doneFrom(position))
}

function isOtherLog({ topic, partition }: GroupPlace, what: string, how: string): StartError {
  return new StartError(
    `${what} ${topic}/${partition}, which is another log ${how}: start the workers, which go on as kafka.onTruncation says, and stop them again first.`,
  )
}

/**
 * Returns a digest of all partitions. It covers the end of each log, and the offsets that the group has
 * settled. Retention and compaction don't change the digest.
 */
export function digestOf(partitions: Iterable<SourcePartition>): string {
  const lines = [...partitions].map(({ topic, partition, end, place: { offset, settledAbove } }) =>
    [topic, partition, end, offset, [...settledAbove].sort((a, b) => a - b).join(' ')].join('/'),
  )
  return hash('sha256', lines.sort().join('\n'), 'base64url')
}
