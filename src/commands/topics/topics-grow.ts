import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { faultOf, type Growth, nextGeneration, settingsOf } from '../../growth/journal.ts'
import { linesOf, type Layout } from '../../growth/plan.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import type { CopyProducer } from '../../kafka/produce/copy-writer.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { type Right, rightsOf } from '../../topics/rights.ts'
import { topicsBeginning } from '../../topics/topic-grow.ts'
import { askKafka, openKafka } from '../../roles/start/ask-kafka.ts'
import { refuseUnfitBroker } from '../../roles/start/broker-check.ts'
import { abandon, clean } from './growth-clean.ts'
import { countStates, countWaiting, findSyncParts } from './growth-count.ts'
import { readGrowth, writeGrowth } from '../../roles/start/growth-journal.ts'
import {
  membersOf,
  partitionsOf,
  refuseImpossible,
  refuseMembers,
  refuseOtherTopics,
} from './growth-refusals.ts'
import { GrowthRun } from './growth-run.ts'
import { digestOf, openOf, readSource, type SourcePartition } from './growth-source.ts'
import { beginningOf, isOfLadder, sharedTopics, waitingNames, withProducer } from './growth-topics.ts'
import { continueFromFormerDefault } from '../../roles/member/former-default-group.ts'
import { grouped, Progress, type Screen } from '../../roles/start/progress.ts'
import { kafkaSettings, topicLayout } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'

type Kafka = ReturnType<typeof createKafka>

export type GrowOptions = {
  /**
   * The requested number of partitions. If `undefined`, the number of the growth that is under way is used.
   */
  readonly partitions: string | undefined
  readonly isDryRun: boolean
  /** True to remove what an unfinished growth has created. */
  readonly isAbandoned: boolean
  /** True to remove the topics of earlier layouts. */
  readonly isClean: boolean
}

/** The longest time until Java's client sees new partitions, in minutes. */
const minutesOfRefresh = 5
/**
 * Limit on the bytes of one fetch per partition, for all partitions together. All partitions of a topic are
 * read at the same time. The memory may hold the answers to two fetches per partition, which is up to twice
 * this limit.
 */
const fetchBytesOfAll = 64 * 1024 ** 2
const leastFetchBytes = 64 * 1024
const mostFetchBytes = 1024 ** 2

/**
 * Grows an installation to more partitions. A layout's own topics are copied to new topics. At the end, the
 * topics that other programs write or read get more partitions in place. If a run is interrupted, the next
 * run continues. Returns a summary in lines.
 */
export async function growTopics(
  config: Config,
  log: Logger,
  options: GrowOptions,
  screen: Screen,
): Promise<string[]> {
  refuseContradictions(options)
  const kafka = await openKafka(config, log, roleOf(options))
  const growth = await readGrowth(kafka, config)
  if (options.isAbandoned) return abandon(kafka, config, growth)
  if (options.isClean) return clean(kafka, config, growth)
  const isUnderWay = growth?.state === 'copying' || growth?.state === 'switching'
  const partitions = partitionsOf(options.partitions, isUnderWay ? growth : undefined)
  const { from } = isUnderWay ? growth : { from: config.topics }
  const reader = createPartitionReader(kafka, {
    atATime: from.partitions + 1,
    fetchBytes: Math.min(mostFetchBytes, Math.max(leastFetchBytes, fetchBytesOfAll / from.partitions)),
  })
  const given: Given = { config, kafka, log, reader, screen }
  try {
    return await askAgain(async () => {
      if (isUnderWay) return goOn(given, growth, options)
      if (growth?.state === 'grown' && growth.to.partitions === partitions) return done(growth)
      return begin(given, growth, partitions, options)
    })
  } finally {
    await reader.stop()
  }
}

/**
 * Throws if flags contradict each other. For example, `--clean --dry-run` must not delete topics, because
 * `--dry-run` means that nothing is written.
 */
function refuseContradictions({ partitions, isDryRun, isAbandoned, isClean }: GrowOptions): void {
  if (isAbandoned && isClean) throw new WrongUseError('Give --abandon or --clean, not both.')
  if (!isAbandoned && !isClean) return
  const flag = isAbandoned ? '--abandon' : '--clean'
  if (isDryRun) throw new WrongUseError(`${flag} has no dry run: leave out --dry-run, or ${flag}.`)
  if (partitions !== undefined)
    throw new WrongUseError(`${flag} takes no number of partitions: leave out ${partitions}, or ${flag}.`)
}

function roleOf({ isAbandoned, isClean }: GrowOptions): KafkaRole {
  if (isAbandoned) return 'topics grow --abandon'
  return isClean ? 'topics grow --clean' : 'topics grow'
}

type Given = {
  readonly config: Config
  readonly kafka: Kafka
  readonly log: Logger
  readonly reader: PartitionReader
  readonly screen: Screen
}

/**
 * Runs `work`. Turns an error of Kafka into an error of one line, with the advice to run the command again.
 * The next run then continues where this run has stopped.
 */
async function askAgain(work: () => Promise<string[]>): Promise<string[]> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof Error) || cause instanceof StartError) throw cause
    throw new StartError(`${cause.message}. Run the command again: it continues where it stopped.`, { cause })
  }
}

/** Begins a growth. Checks everything before it writes anything. */
async function begin(
  given: Given,
  before: Growth | undefined,
  partitions: number,
  { isDryRun }: GrowOptions,
): Promise<string[]> {
  const { config, kafka, screen } = given
  const fault = faultOf(before, config.topics)
  if (fault !== undefined) throw new StartError(fault)
  const { partitions: present, generation } = config.topics
  if (partitions <= present)
    throw new WrongUseError(
      `There are ${present} partitions: they can only become more, and ${partitions} is not more. Fewer need a new SLUICE_KAFKA_TOPIC_PREFIX.`,
    )
  await refuseOtherTopics(kafka, config)
  // A dry run says for how long the workers will have to be stopped. So it must be possible while they still
  // run.
  if (!isDryRun) await refuseMembers(kafka, config)
  const change = {
    from: { partitions: present, generation },
    to: { partitions, generation: nextGeneration(before, generation) },
  }
  const existing = await topicsBeginning(kafka, beginningOf(config, change.from))
  const all = waitingNames(config, change.from, existing)
  const source = await readCopied(given, change.from, all)
  const waiting = all.filter((name) => isOfLadder(config, name) || openIn(source.get(name)) > 0)
  const growth: Growth = {
    ...change,
    state: 'copying',
    groupId: config.kafka.groupId,
    digest: digestOf([...source.values()].flat()),
    waiting,
    done: [],
    bounds: [],
  }
  await refuseImpossible(kafka, config, growth)
  const plan = await planOf(given, growth, source)
  if (isDryRun) return [...plan, ...(await linesOfMembers(kafka, config)), 'nothing written']
  for (const line of plan) screen.write(`${line}\n`)
  return withProducer(given, async (producer) => {
    await writeGrowth(producer, config, growth)
    return run(given, growth, producer)
  })
}

async function linesOfMembers(kafka: Kafka, config: Config): Promise<string[]> {
  const { groupId } = config.kafka
  const members = await membersOf(kafka, config, groupId)
  if (members.length === 0) return []
  return [`workers    are in the group ${groupId}: ${members.join(', ')}. Stop them all before the growth`]
}

async function goOn(given: Given, growth: Growth, { isDryRun }: GrowOptions): Promise<string[]> {
  const { state, from, to, done: steps } = growth
  if (isDryRun)
    return [
      `under way  from ${from.partitions} to ${to.partitions} partitions, ${state}; done: ${steps.join(', ')}`,
    ]
  given.screen.write(`going on   from ${from.partitions} to ${to.partitions} partitions, ${state}\n`)
  return withProducer(given, (producer) => run(given, growth, producer))
}

async function run(given: Given, growth: Growth, producer: CopyProducer): Promise<string[]> {
  const { config, kafka, log } = given
  await refuseMembers(kafka, config, growth.groupId)
  const grown = await new GrowthRun({
    ...given,
    producer,
    growth,
    readCopied: () => readCopied(given, growth.from, growth.waiting, growth.groupId),
    refuseMembers: () => refuseMembers(kafka, config, growth.groupId),
    refuseLackingRights: () =>
      askKafka(
        config,
        refuseUnfitBroker(kafka, config, { role: 'topics grow', settings: kafkaSettings(config) }, log),
      ),
  }).go()
  return done(grown)
}

function done({ from, to }: Growth): string[] {
  return [
    `grown      from ${from.partitions} to ${to.partitions} partitions`,
    `next       ${settingsOf(to)} for workers, gateways and commands, and start the workers`,
    'then       `sluice topics grow --clean` removes the topics of the previous layout; until then they take disk space',
  ]
}

/**
 * Reads the offset ranges and the group's positions of each topic that is copied. The keys are the topics'
 * names without the prefix.
 */
async function readCopied(
  { config, kafka, reader, log }: Given,
  from: Layout,
  waiting: readonly string[],
  groupId = config.kafka.groupId,
): Promise<ReadonlyMap<string, readonly SourcePartition[]>> {
  const begins = beginningOf(config, from)
  const names = ['memberships', ...waiting]
  const topics = names.map((name) => begins + name)
  if (groupId === config.kafka.groupId) await continueFromFormerDefault(kafka, { config, topics, log })
  const source = await readSource(kafka, reader, { groupId, topics })
  return new Map(names.map((name) => [name, source.get(begins + name) ?? []]))
}

function openIn(source: readonly SourcePartition[] | undefined): number {
  return (source ?? []).reduce((sum, log) => sum + openOf(log), 0)
}

async function planOf(
  given: Given,
  growth: Growth,
  source: ReadonlyMap<string, readonly SourcePartition[]>,
): Promise<string[]> {
  const { config, kafka, reader, screen } = given
  const begins = beginningOf(config, growth.to)
  const logs = [...source.values()].flat()
  const total = logs.reduce((sum, { topic, start, position, end }) => {
    return sum + end - (topic.endsWith('memberships') ? start : position)
  }, 0)
  const progress = new Progress(screen, 'counting', total)
  let passed = 0
  const onPassed = (offsets: number): void => {
    passed += offsets
    progress.at(passed, () => `${grouped(passed)} of ${grouped(total)} records`)
  }
  const counting = { reader, change: growth, onPassed }
  const states = await countStates(source.get('memberships') ?? [], `${begins}memberships`, counting)
  const counts = [states.count]
  for (const name of growth.waiting)
    counts.push(await countWaiting(source.get(name) ?? [], begins + name, counting))
  progress.end(passed, `${grouped(passed)} records`)
  const topic = `${config.kafka.topicPrefix}audience-changes`
  const { groupId } = config.kafka
  const changes = await readSource(kafka, reader, { groupId, topics: [topic] })
  const faults = [...states.faults, ...(await findSyncParts(changes.get(topic) ?? [], reader))]
  if (faults.length > 0)
    throw new StartError(
      ['The installation can not be grown now:', ...faults.map((fault) => `  ${fault}`)].join('\n'),
    )
  return linesOf({
    change: growth,
    counts,
    users: states.users,
    extended: sharedTopics(config),
    replication: topicLayout(config).replication,
    rights: rightsInLines(config),
    minutesOfRefresh,
  })
}

function nameOf({ resource, name }: Right): string {
  return `${resource} ${name}`
}

function rightsInLines(config: Config): string[] {
  const layout = topicLayout(config)
  const rights = rightsOf('topics grow', { layout, groupId: config.kafka.groupId, withSettings: true })
  return [...Map.groupBy(rights, nameOf)].map(
    ([name, ofIt]) => `${ofIt.map(({ operation }) => operation).join(', ')} on ${name}`,
  )
}
