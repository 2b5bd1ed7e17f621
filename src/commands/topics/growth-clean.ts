import type { Config } from '../../config/schema.ts'
import { faultOf, type Growth } from '../../growth/journal.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { removeTopics, topicsBeginning } from '../../topics/topic-grow.ts'
import { askKafka } from '../../roles/start/ask-kafka.ts'
import { writeGrowth } from '../../roles/start/growth-journal.ts'
import { beginningOf, ownDefinitions, waitingMarks, waitingNames, withProducer } from './growth-topics.ts'
import { StartError } from '../../roles/start/start-error.ts'

type Kafka = ReturnType<typeof createKafka>

/**
 * Removes the topics that an unfinished run of `sluice topics grow` has created. Refuses if the new layout is
 * already in force. The old layout stays unchanged.
 */
export async function abandon(kafka: Kafka, config: Config, growth: Growth | undefined): Promise<string[]> {
  if (growth === undefined || growth.state === 'abandoned' || growth.state === 'grown')
    return ['There is no growth to abandon.']
  if (growth.state === 'switching')
    throw new StartError(
      `The new layout holds already: run \`sluice topics grow ${growth.to.partitions}\` until it ends.`,
    )
  const copies = ownDefinitions(config, growth.to, growth.waiting).map(({ topic }) => topic)
  const removed = await askKafka(config, removeTopics(kafka, copies))
  const abandoned: Growth = { ...growth, state: 'abandoned' }
  await withProducer({ config, kafka }, (producer) =>
    askKafka(config, writeGrowth(producer, config, abandoned)),
  )
  return [...removed.map((topic) => `removed    ${topic}`), 'abandoned  all is as it was: start the workers']
}

/** Removes the topics of all layouts that are older than the layout in force. */
export async function clean(kafka: Kafka, config: Config, growth: Growth | undefined): Promise<string[]> {
  const fault = faultOf(growth, config.topics)
  if (fault !== undefined) throw new StartError(fault)
  if (growth === undefined) return ['There is nothing to remove: this installation has not been grown.']
  const removed: string[] = []
  for (let generation = 1; generation < config.topics.generation; generation++) {
    const layout = { partitions: 1, generation }
    const begins = beginningOf(config, layout)
    const existing = await askKafka(config, topicsBeginning(kafka, begins))
    const names = ['memberships', waitingMarks, ...waitingNames(config, layout, existing)]
    removed.push(
      ...(await askKafka(
        config,
        removeTopics(
          kafka,
          names.map((name) => begins + name),
        ),
      )),
    )
  }
  return removed.length === 0
    ? ['There is nothing to remove.']
    : removed.map((topic) => `removed    ${topic}`)
}
