import { randomUUID } from 'node:crypto'
import { extname } from 'node:path'
import type { Logger } from 'pino'
import { propertyName } from '../../audience/records/property-name.ts'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { countPartitions } from '../../topics/topic-partitions.ts'
import { syncPartCheck } from '../../message/audience-change.ts'
import { formatTimestamp, parseTimestamp } from '../../message/timestamp.ts'
import { timeProblem } from '../../audience-files/checked-change.ts'
import { OddIds } from '../../audience-files/odd-ids.ts'
import { type PartitionPlan, type PlacedPart, Sync, type SyncHead } from '../../audience-files/sync.ts'
import { readUsers, type UserFormat } from '../../audience-files/users.ts'
import { askKafka, openKafka } from '../../roles/start/ask-kafka.ts'
import { counted, grouped, Progress, type Screen } from '../../roles/start/progress.ts'
import { refuseWhileGrowing } from '../../roles/start/growth-journal.ts'
import { compareWithKnown, type KnownMembers, membersLine, refuseImplausible } from './known-members.ts'
import { kafkaSettings, topicNames } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { refuseUnknownSource } from '../command/known-source.ts'
import { writeError } from '../command/tools.ts'
import { openInput, readingInput, readingLines, type UpstreamInput } from '../command/upstream-input.ts'
import { openWriter } from '../../roles/operations/record-writer.ts'

type Kafka = ReturnType<typeof createKafka>

export type AudienceSyncOptions = {
  /** The id of the space, which is a source of kind `audiences` in the catalog. */
  spaceId: string
  audience: { id: string; name: string; key: string | undefined }
  /** The file to read. `-` is standard input. */
  file: string
  /** The file's format. If `undefined`, the file's extension shows the format. */
  format: UserFormat | undefined
  column: string | undefined
  hasHeader: boolean
  /** The time at which the audience was queried, in ISO 8601. By default, this is the present time. */
  snapshotAt: string | undefined
  isEmptyAllowed: boolean
  /** True if any number of the known members may leave. */
  isLeavingAllowed: boolean
  /** True if user ids may look like something else (`odd-ids.ts`). */
  areOddIdsAllowed: boolean
  /** True if the catalog may lack the space. */
  isAnySource: boolean
  isDryRun: boolean
}

/**
 * The largest part of a sync, in bytes. A worker reads a whole part without a pause. This takes some
 * milliseconds, in which the worker's deliveries wait. Every topic accepts a record of this size.
 */
const mostPartBytes = 256 * 1024
/** How many parts of a sync are written at the same time. */
const partsAtOnce = 4
/**
 * The number of records of `memberships` after which a sync reads no further partition. To read them takes
 * about half a minute. A dry run reads all.
 */
const mostRecordsRead = 5_000_000

/**
 * Writes a whole audience to `audience-changes`, as parts for each partition. Reads, checks and spools the
 * whole file before it writes the first part. Every part contains the number of parts that its partition
 * gets. If a run is interrupted, workers can see from this number that parts are missing. Returns a summary
 * in lines.
 */
export async function syncAudience(
  config: Config,
  log: Logger,
  options: AudienceSyncOptions,
  screen: Screen,
): Promise<string[]> {
  const { spaceId, isDryRun } = options
  const head = headOf(options, Date.now())
  const property = propertyName({ key: options.audience.key, name: options.audience.name })
  if (property === undefined) {
    throw new WrongUseError(
      'No property can be made of this name: give a --name with a letter or a digit, or a --key.',
    )
  }
  const format = options.format ?? formatByEnding(options.file)
  const topic = topicNames(config).audienceChanges
  kafkaSettings(config)
  const input = await openInput(options.file)
  warnOfAge(input, options, head, screen)
  const role = roleOf(options)
  const unchecked = await refuseUnknownSource(config, log, { sourceId: spaceId, role, ...options })
  const kafka = await openKafka(config, log, role)
  const memberships = topicNames(config, await refuseWhileGrowing(kafka, config)).memberships
  const partitions = await partitionsOf(kafka, config, topic)
  if (role === 'audience sync' && (await partitionsOf(kafka, config, memberships)) !== partitions)
    throw new StartError(`${topic} and ${memberships} differ in partitions: see \`sluice topics check\`.`)
  const maxPartBytes = Math.min(mostPartBytes, config.message.maxBytes)
  const sync = await readingInput(input.name, async () => new Sync({ head, partitions, maxPartBytes }))
  try {
    const odd = await collect(sync, input, { ...options, format }, screen)
    const plans = Array.from({ length: partitions }, (_, partition) => sync.plan(partition))
    const total = totalOf(plans)
    const members = await checkMembers(
      { config, kafka, sync, total, odd, input, options, screen },
      {
        topic: memberships,
        partitions,
        scope: { spaceId, audienceId: head.audienceId, property },
      },
    )
    if (unchecked !== undefined) writeError(unchecked)
    const repeated = total.repeated === 0 ? '' : ` (${grouped(total.repeated)} of them named again)`
    const read = [
      `audience ${head.audienceId} of space ${spaceId}, property ${property}, as of ${head.snapshotAt}`,
      `read     ${counted(total.users + total.repeated, 'user')}${repeated} from ${input.name}`,
      ...members,
    ]
    const what = `${counted(total.parts, 'part')} to ${counted(partitions, 'partition')} of ${topic}`
    if (isDryRun) return [...read, `nothing sent: it would be ${what}`]
    await refuseGrown(kafka, config, { topic, partitions })
    await send(config, log, { sync, plans, total, topic, spaceId, role, screen })
    return [...read, `sent     ${what}`, `sync     ${head.syncId}`]
  } finally {
    sync.close()
  }
}

/**
 * Checks the number of partitions again, because reading the file may have taken long. The worker would
 * refuse parts that were made for another number of partitions.
 */
async function refuseGrown(
  kafka: Kafka,
  config: Config,
  { topic, partitions }: { readonly topic: string; readonly partitions: number },
): Promise<void> {
  await refuseWhileGrowing(kafka, config)
  if ((await partitionsOf(kafka, config, topic)) === partitions) return
  throw new StartError(`${topic} has got more partitions meanwhile: run the command again. Nothing was sent.`)
}

/** Returns the role of a sync. Only `audience sync` may read the known members. */
function roleOf({ isDryRun, isLeavingAllowed }: AudienceSyncOptions): SyncRole {
  return isDryRun || !isLeavingAllowed ? 'audience sync' : 'audience sync --allow-leaving'
}

type SyncRole = Extract<KafkaRole, `audience sync${string}`>

type Checked = {
  readonly config: Config
  readonly kafka: Kafka
  readonly sync: Sync
  readonly total: Totals
  readonly odd: OddIds
  readonly input: UpstreamInput
  readonly options: AudienceSyncOptions
  readonly screen: Screen
}

/**
 * Throws if the file is probably not the audience. Returns a line about the known members, or none if they
 * don't matter.
 */
async function checkMembers(
  { config, kafka, sync, total, odd, input, options, screen }: Checked,
  known: Pick<KnownMembers, 'topic' | 'partitions' | 'scope'>,
): Promise<string[]> {
  const { isDryRun, isEmptyAllowed } = options
  const { audienceId } = known.scope
  if (total.users === 0 && !isEmptyAllowed) {
    throw new StartError(
      `${input.name} names no user: everybody would leave ${audienceId}. Say --allow-empty where the audience has ended.`,
    )
  }
  // If an empty file is allowed, all members may leave.
  const isCompared = isDryRun || (roleOf(options) === 'audience sync' && total.users > 0)
  const mostRecords = isDryRun ? Infinity : mostRecordsRead
  const comparison = isCompared
    ? await compareWithKnown(config, kafka, sync, { ...known, mostRecords, screen })
    : undefined
  refuseImplausible({ input, audienceId, users: total.users, odd, comparison }, options)
  return comparison === undefined ? [] : [membersLine(comparison, { isDryRun, topic: known.topic })]
}

async function partitionsOf(kafka: Kafka, config: Config, topic: string): Promise<number> {
  const partitions = await askKafka(config, countPartitions(kafka, topic))
  if (partitions !== undefined) return partitions
  throw new StartError(`${topic} does not exist: \`sluice topics apply\` creates it.`)
}

function headOf(
  { audience, snapshotAt, spaceId }: Pick<AudienceSyncOptions, 'audience' | 'snapshotAt' | 'spaceId'>,
  nowMs: number,
): SyncHead {
  const problem = snapshotAt === undefined ? undefined : timeProblem('--snapshot-at', snapshotAt, nowMs)
  if (problem !== undefined) throw new WrongUseError(`The command ${problem}.`)
  const atMs = snapshotAt === undefined ? nowMs : (parseTimestamp(snapshotAt) ?? nowMs)
  const head: SyncHead = {
    audienceId: audience.id,
    audienceName: audience.name,
    ...(audience.key !== undefined && { audienceKey: audience.key }),
    syncId: randomUUID(),
    snapshotAt: formatTimestamp(atMs) ?? '',
  }
  const [error] = syncPartCheck.Errors({ type: 'sync', ...head, part: 1, parts: 1, userIds: [] })
  if (error !== undefined) {
    const flag = flags.get(error.instancePath) ?? error.instancePath
    throw new WrongUseError(`${flag} has to be a text of 1 to 1,000 characters.`)
  }
  if (spaceId === '') throw new WrongUseError('--space has to be the id of a source of the catalog.')
  return head
}

const flags: ReadonlyMap<string, string> = new Map([
  ['/audienceId', '--audience'],
  ['/audienceName', '--name'],
  ['/audienceKey', '--key'],
])

const endings: ReadonlyMap<string, UserFormat> = new Map([
  ['.csv', 'csv'],
  ['.ndjson', 'ndjson'],
  ['.jsonl', 'ndjson'],
])

function formatByEnding(file: string): UserFormat {
  const format = endings.get(extname(file).toLowerCase())
  if (format !== undefined) return format
  throw new WrongUseError(
    `What ${file === '-' ? 'standard input' : file} holds can't be told from its name: give --format csv or --format ndjson.`,
  )
}

const hourMs = 3_600_000

/**
 * Warns about an old file that is sent without `--snapshot-at`. Without the flag, the values of the file
 * would replace all changes that were made after the file was written.
 */
function warnOfAge(
  { name, modifiedMs }: UpstreamInput,
  { snapshotAt }: AudienceSyncOptions,
  head: SyncHead,
  screen: Screen,
): void {
  if (snapshotAt !== undefined || modifiedMs === undefined || Date.now() - modifiedMs < hourMs) return
  const modifiedAt = formatTimestamp(Math.trunc(modifiedMs)) ?? ''
  screen.write(
    `note: ${name} is of ${modifiedAt}, and is sent as of now, ${head.snapshotAt}: it overrules changes since. ` +
      `Say --snapshot-at with the time when the audience was looked at.\n`,
  )
}

async function collect(
  sync: Sync,
  input: UpstreamInput,
  { format, column, hasHeader }: { format: UserFormat; column: string | undefined; hasHeader: boolean },
  screen: Screen,
): Promise<OddIds> {
  const progress = new Progress(screen, 'reading', input.bytes)
  const odd = new OddIds()
  let bytes = 0
  let users = 0
  const detail = () => counted(users, 'user')
  async function* watched(): AsyncGenerator<Buffer> {
    for await (const chunk of input.chunks) {
      yield chunk
      bytes += chunk.length
      progress.at(bytes, detail)
    }
  }
  await readingLines(input, progress, () =>
    readUsers(watched(), { format, column, hasHeader }, (userId, line) => {
      users++
      odd.take(userId, line)
      return sync.add(userId)
    }),
  )
  progress.end(bytes, detail())
  return odd
}

type Totals = { users: number; repeated: number; parts: number }

function totalOf(plans: readonly PartitionPlan[]): Totals {
  const total: Totals = { users: 0, repeated: 0, parts: 0 }
  for (const { users, repeated, parts } of plans) {
    total.users += users
    total.repeated += repeated
    total.parts += parts
  }
  return total
}

type Sending = {
  sync: Sync
  plans: readonly PartitionPlan[]
  total: Totals
  topic: string
  spaceId: string
  role: SyncRole
  screen: Screen
}

/**
 * Sends the parts, one partition after the other. A worker waits for all parts of a partition, so the parts
 * of a partition should arrive within a short time.
 */
async function send(
  config: Config,
  log: Logger,
  { sync, plans, total, topic, spaceId, role, screen }: Sending,
): Promise<void> {
  const progress = new Progress(screen, 'sending', total.parts)
  const writer = await openWriter(config, log, role, (line) => progress.note(line))
  let sent = 0
  let users = 0
  const detail = () => counted(users, 'user')
  const advice = () =>
    `${counted(sent, 'part')} of ${grouped(total.parts)} were written: partitions that have all of theirs are in force, ` +
    'the others stay as they were. Run the command again: that does no harm.'
  const write = async (parts: readonly PlacedPart[]): Promise<void> => {
    const records = parts.map(({ partition, value }) => ({
      topic,
      partition,
      key: null,
      value: Buffer.from(value),
      headers: { 'source-id': spaceId },
    }))
    await writer.write(records, advice)
    sent += parts.length
    for (const part of parts) users += part.users
    progress.at(sent, detail)
  }
  try {
    for (const plan of plans) {
      let batch: PlacedPart[] = []
      for (const part of sync.parts(plan)) {
        batch.push(part)
        if (batch.length < partsAtOnce) continue
        await write(batch)
        batch = []
      }
      if (batch.length > 0) await write(batch)
    }
    progress.end(sent, detail())
  } catch (error) {
    progress.abandon()
    throw error
  } finally {
    await writer.stop()
  }
}
