import type { Config } from '../../config/schema.ts'
import type { Growth } from '../../growth/journal.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { readMembers } from '../../kafka/other-groups/group-state.ts'
import type { Refusal } from '../../topics/topic-apply.ts'
import { checkTopics } from '../../topics/topic-check.ts'
import { addPartitions, existingOf, makeCopies } from '../../topics/topic-grow.ts'
import { optionalTopics } from '../../topics/topics.ts'
import { withAdmin } from '../../kafka/cluster/with-admin.ts'
import { askKafka } from '../../roles/start/ask-kafka.ts'
import { ownDefinitions, sharedTopics } from './growth-topics.ts'
import { grouped } from '../../roles/start/progress.ts'
import { topicLayout } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { describeTopicFaults } from '../../roles/start/topic-layout.ts'

type Kafka = ReturnType<typeof createKafka>

const mostPartitions = 1_000
/**
 * How long to wait for the end of a rebalance before the group's members are read, in milliseconds. After
 * this time, the members are read even if the group is still rebalancing.
 */
const groupPatienceMs = 10_000

/**
 * Parses the number of partitions that was given to `sluice topics grow`. Throws if the number is invalid, or
 * if an unfinished run has begun with another number.
 */
export function partitionsOf(given: string | undefined, underWay: Growth | undefined): number {
  if (given === undefined) {
    if (underWay !== undefined) return underWay.to.partitions
    throw new WrongUseError('Say to how many partitions: `sluice topics grow N`.')
  }
  const partitions = Number(given)
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > mostPartitions)
    throw new WrongUseError(
      `The number of partitions has to be a whole number up to ${grouped(mostPartitions)}.`,
    )
  if (underWay !== undefined && partitions !== underWay.to.partitions)
    throw new StartError(
      `A growth to ${underWay.to.partitions} partitions is under way: run \`sluice topics grow ${underWay.to.partitions}\` until it ends.`,
    )
  return partitions
}

/** Throws when the topics don't match the configuration. */
export async function refuseOtherTopics(kafka: Kafka, config: Config): Promise<void> {
  const layout = topicLayout(config)
  const optional = optionalTopics(layout)
  const isWanted = (topic: string): boolean => !optional.has(topic)
  const { faults } = await askKafka(config, checkTopics(kafka, layout, { withSettings: false, isWanted }))
  if (faults.length === 0) return
  if (faults.every(({ problem }) => problem === 'does not exist'))
    throw new StartError(
      'There is nothing to grow: none of the topics exists. Set SLUICE_TOPICS_PARTITIONS, and run `sluice topics apply`.',
    )
  throw new StartError(describeTopicFaults(faults))
}

/** Throws if the group has members. Each member is a worker that still runs. */
export async function refuseMembers(
  kafka: Kafka,
  config: Config,
  groupId = config.kafka.groupId,
): Promise<void> {
  const members = await membersOf(kafka, config, groupId)
  if (members.length === 0) return
  throw new StartError(
    [
      `Workers are in the group ${groupId}: ${members.join(', ')}.`,
      `Stop them all first. One with an instance id, or that was killed, leaves when its session is over: ${config.kafka.sessionTimeoutMs / 1_000} s.`,
    ].join('\n'),
  )
}

export function membersOf(kafka: Kafka, config: Config, groupId: string): Promise<readonly string[]> {
  return askKafka(
    config,
    withAdmin(kafka, (admin) => readMembers(admin, groupId, { patienceMs: groupPatienceMs })),
  )
}

/**
 * Throws if topics with the names of the copies exist already, and no recorded growth has created them. Also
 * throws if the brokers refuse to create the topics and partitions that the growth needs.
 */
export async function refuseImpossible(kafka: Kafka, config: Config, growth: Growth): Promise<void> {
  const definitions = ownDefinitions(config, growth.to, growth.waiting)
  const copies = definitions.map(({ topic }) => topic)
  const foreign = await askKafka(config, existingOf(kafka, copies))
  if (foreign.length > 0)
    throw new StartError(
      `These topics are there already, and no growth that is known has made them: ${foreign.join(', ')}. Find out what made them, and delete them.`,
    )
  const { partitions } = growth.to
  const refusals: readonly Refusal[] = [
    ...(await askKafka(config, makeCopies(kafka, definitions, { validateOnly: true }))),
    ...(await askKafka(
      config,
      addPartitions(kafka, { topics: sharedTopics(config), partitions, validateOnly: true }),
    )),
  ]
  if (refusals.length > 0) throw new StartError(describeRefusals(refusals))
}

export function describeRefusals(refusals: readonly Refusal[]): string {
  const lines = refusals.map(({ topic, problem }) => `  ${topic} ${problem}`)
  return ['The cluster lacks what a growth needs:', ...lines].join('\n')
}
