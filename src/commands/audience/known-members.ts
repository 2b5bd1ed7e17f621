import { CurrentStates } from '../../backfill/current-states.ts'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import { Comparison } from '../../audience-files/comparison.ts'
import type { OddIds } from '../../audience-files/odd-ids.ts'
import type { Sync } from '../../audience-files/sync.ts'
import { askKafka } from '../../roles/start/ask-kafka.ts'
import { counted, grouped, Progress, type Screen } from '../../roles/start/progress.ts'
import { StartError } from '../../roles/start/start-error.ts'
import { readingInput, type UpstreamInput } from '../command/upstream-input.ts'

/** Where the known members of an audience are read. */
export type KnownMembers = {
  /** The topic `memberships`, which has as many partitions as the sync. */
  readonly topic: string
  readonly partitions: number
  readonly scope: { readonly spaceId: string; readonly audienceId: string; readonly property: string }
  /** The number of records after which no further partition is read. At least one partition is read. */
  readonly mostRecords: number
  readonly screen: Screen
}

const readStallMs = 60_000

/**
 * Compares a sync with the members of its audience that `memberships` has now. Changes that no worker has
 * taken yet aren't in there.
 */
export async function compareWithKnown(
  config: Config,
  kafka: ReturnType<typeof createKafka>,
  sync: Sync,
  known: KnownMembers,
): Promise<Comparison> {
  const { partitions, mostRecords, screen } = known
  const progress = new Progress(screen, 'comparing', partitions)
  const reader = createPartitionReader(kafka)
  const comparison = new Comparison(partitions)
  let records = 0
  try {
    for (let partition = 0; partition < partitions; partition++) {
      if (partition > 0 && records >= mostRecords) break
      const compared = comparePartition(reader, sync, { ...known, partition, comparison, progress })
      records += await askKafka(config, compared, () => advice)
    }
    progress.end(comparison.compared, counted(comparison.known, 'known member'))
    return comparison
  } catch (error) {
    progress.abandon()
    throw error
  } finally {
    await reader.stop()
  }
}

const advice =
  'Nothing was sent. With --allow-leaving, the sync is not compared with the members that are known.'

type ComparedPartition = KnownMembers & {
  readonly partition: number
  readonly comparison: Comparison
  readonly progress: Progress
}

/** Compares one partition. Returns the number of records that were read. */
async function comparePartition(
  reader: PartitionReader,
  sync: Sync,
  { topic, partition, scope, comparison, progress }: ComparedPartition,
): Promise<number> {
  const states = await readingInput('the spool', async () => new CurrentStates({ ...scope, withLeft: false }))
  let records = 0
  function* members(): Generator<string> {
    for (let bucket = 0; bucket < CurrentStates.buckets; bucket++) {
      for (const { stateKey } of states.of(bucket)) {
        comparison.note(stateKey.userId)
        yield stateKey.userId
      }
    }
  }
  try {
    const where = { topic, partition, from: 0, stallTimeoutMs: readStallMs }
    for await (const batch of reader.read(where)) {
      await readingInput('the spool', async () => {
        for (const record of batch) states.add(record)
      })
      records += batch.length
      progress.at(partition, () => `${counted(records, 'record')} of partition ${partition} of ${topic}`)
    }
    comparison.add(await readingInput('the spool', async () => sync.compare(partition, members())))
    return records
  } finally {
    states.close()
  }
}

export function membersLine(
  comparison: Comparison,
  { topic, isDryRun }: { topic: string; isDryRun: boolean },
): string {
  const { known, entering, leaving, staying, compared, isEstimate } = comparison
  const would = isDryRun ? 'would ' : ''
  const about = isEstimate ? 'about ' : ''
  const numbers = `${about}${grouped(known)} known: ${about}${grouped(entering)} ${would}enter, ${grouped(leaving)} ${would}leave, ${grouped(staying)} ${would}stay`
  return `members  ${numbers}${isEstimate ? ` (from ${counted(compared, 'partition')} of ${topic})` : ''}`
}

type Judged = {
  readonly input: Pick<UpstreamInput, 'name'>
  readonly audienceId: string
  /** The number of users in the file. */
  readonly users: number
  readonly odd: OddIds
  /** Missing if any number of members may leave. */
  readonly comparison: Comparison | undefined
}

/** Throws if the file is probably not the audience, unless flags allow for it. */
export function refuseImplausible(
  { input, audienceId, users, odd, comparison }: Judged,
  allowed: {
    readonly isLeavingAllowed: boolean
    readonly isEmptyAllowed: boolean
    readonly areOddIdsAllowed: boolean
  },
): void {
  const faults: string[] = []
  const kinds = allowed.areOddIdsAllowed ? [] : odd.describe((oddity) => comparison?.isUsual(oddity) === true)
  if (kinds.length > 0) {
    faults.push(
      `Of the ${counted(users, 'user')} in ${input.name}, some look like no user: ${kinds.join('; ')}. Correct the file, or say --allow-odd-ids where these are users.`,
    )
  }
  const isLeavingAllowed = allowed.isLeavingAllowed || (allowed.isEmptyAllowed && users === 0)
  if (comparison?.isImplausible === true && !isLeavingAllowed) {
    const { known, entering, leaving, staying, isEstimate } = comparison
    const about = isEstimate ? 'about ' : ''
    faults.push(
      `${input.name} names ${grouped(users)}, and only ${about}${grouped(staying)} of the ${about}${grouped(known)} known members of ${audienceId}: ${about}${grouped(leaving)} would leave, and ${grouped(entering)} would enter. Check whether it is the right file and column, and complete. Say --allow-leaving where so many have left.`,
    )
  }
  if (faults.length > 0) throw new StartError(`${faults.join(' ')} Nothing was sent.`)
}
