import { Marks, decodeMark, encodeMark } from '../../backfill/marks.ts'
import type { Config } from '../../config/schema.ts'
import type { Growth, GrowthStep } from '../../growth/journal.ts'
import { inTime } from '../../growth/plan.ts'
import { standingsAfter } from '../../growth/standings.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import type { CopyProducer } from '../../kafka/produce/copy-writer.ts'
import { commitAsNobody } from '../../kafka/other-groups/group-state.ts'
import type { PartitionReader } from '../../kafka/read/partition-reader.ts'
import type { Refusal } from '../../topics/topic-apply.ts'
import { addPartitions, enforceAppendTimes, makeCopies } from '../../topics/topic-grow.ts'
import type { TopicDefinition } from '../../topics/topics.ts'
import { GrowthCopy } from './growth-copy.ts'
import { writeGrowth } from '../../roles/start/growth-journal.ts'
import { digestOf, type SourcePartition } from './growth-source.ts'
import { describeRefusals } from './growth-refusals.ts'
import { beginningOf, ownDefinitions, sharedTopics } from './growth-topics.ts'
import { grouped, Progress, type Screen } from '../../roles/start/progress.ts'
import { topicNames } from '../../roles/start/settings.ts'
import { StartError } from '../../roles/start/start-error.ts'

type Source = ReadonlyMap<string, readonly SourcePartition[]>

export type GrowthRunOptions = {
  readonly config: Config
  readonly kafka: ReturnType<typeof createKafka>
  readonly reader: PartitionReader
  readonly producer: CopyProducer
  readonly screen: Screen
  /** The growth, which is already recorded on Kafka. */
  readonly growth: Growth
  /**
   * Reads the offset ranges of the topics that are copied, and the group's positions in these topics. The
   * keys are the topics' names without the prefix of the layout.
   */
  readonly readCopied: () => Promise<Source>
  /** Throws if the group has members. */
  readonly refuseMembers: () => Promise<void>
  /**
   * Throws if a right is missing. Brokers don't report rights on topics that don't exist, so this is called
   * after the topics were created.
   */
  readonly refuseLackingRights: () => Promise<void>
}

/**
 * Continues a growth of the installation (`sluice topics grow`) to its end, step by step. Each step is
 * recorded on Kafka when it is done.
 */
export class GrowthRun {
  readonly #options: GrowthRunOptions
  #growth: Growth

  constructor(options: GrowthRunOptions) {
    this.#options = options
    this.#growth = options.growth
  }

  async go(): Promise<Growth> {
    if (this.#growth.state === 'copying') {
      await this.#copy()
      // From here on the new layout is in force, even if this process ends.
      await this.#note({ state: 'switching' })
    }
    await this.#step('partitions', () => this.#extend())
    await this.#step('marks', () => this.#writeMarks())
    await this.#note({ state: 'grown' })
    return this.#growth
  }

  async #copy(): Promise<void> {
    const source = await this.#source()
    const progress = this.#progressOf(source)
    const copy = new GrowthCopy({
      change: this.#growth,
      reader: this.#options.reader,
      producer: this.#options.producer,
      onPassed: (offsets) => progress.passed(offsets),
    })
    try {
      await this.#copyAll(source, copy)
    } catch (error) {
      progress.abandon()
      throw error
    }
    progress.end()
    await this.#source()
  }

  async #copyAll(source: Source, copy: GrowthCopy): Promise<void> {
    const { kafka } = this.#options
    const begins = beginningOf(this.#options.config, this.#growth.to)
    const states = source.get('memberships') ?? []
    const statesCopy = `${begins}memberships`
    await this.#step('topics', () => refuse(makeCopies(kafka, this.#definitions, { validateOnly: false })))
    await this.#options.refuseLackingRights()
    await this.#step('states', async () => {
      await copy.states(states, statesCopy, { isOpen: false, above: [] })
      return { bounds: await copy.endsOf(statesCopy) }
    })
    await this.#step('open-states', () =>
      copy.states(states, statesCopy, { isOpen: true, above: this.#growth.bounds }),
    )
    for (const name of this.#growth.waiting)
      await this.#step(`waiting/${name}`, () => copy.waiting(source.get(name) ?? [], begins + name))
    await this.#step('stamps', () => refuse(enforceAppendTimes(kafka, this.#definitions)))
    await this.#step('commits', async () => {
      const commits = await copy.placesOfStates(states, statesCopy, this.#growth.bounds)
      for (const name of this.#growth.waiting)
        commits.push(...copy.placesOfWaiting(source.get(name) ?? [], begins + name))
      await commitAsNobody(kafka, this.#growth.groupId, commits)
    })
  }

  get #definitions(): readonly TopicDefinition[] {
    return ownDefinitions(this.#options.config, this.#growth.to, this.#growth.waiting)
  }

  /**
   * Reads the topics to copy. Throws if these topics or the group's commits have changed since the growth
   * began. They change if a worker runs, or if a command writes to these topics.
   */
  async #source(): Promise<Source> {
    await this.#options.refuseMembers()
    const source = await this.#options.readCopied()
    if (digestOf([...source.values()].flat()) === this.#growth.digest) return source
    throw new StartError(
      'The topics that are copied, or the commits of the group, have changed since the growth began: a worker or a command has run meanwhile. ' +
        'Run `sluice topics grow --abandon`, see that nothing of this installation runs but gateways, and begin again.',
    )
  }

  /**
   * Adds partitions to the existing topics that other programs write or read. Producers can keep running, and
   * find the new partitions by themselves.
   */
  #extend(): Promise<void> {
    const { config, kafka } = this.#options
    const { partitions } = this.#growth.to
    return refuse(addPartitions(kafka, { topics: sharedTopics(config), partitions, validateOnly: false }))
  }

  async #writeMarks(): Promise<void> {
    const { config, reader, producer } = this.#options
    const topic = topicNames(config).backfills
    const marks = new Marks(this.#growth.from.partitions)
    for await (const records of reader.read({ topic, partition: 0, from: 0 })) {
      for (const { offset, key, value } of records) {
        const mark = decodeMark(key, value)
        if (mark !== undefined) marks.take(mark, offset)
      }
    }
    const writer = producer.to(topic)
    for (const mark of standingsAfter(marks, this.#growth))
      await writer.write({ partition: 0, ...encodeMark(mark), headers: {}, timestampMs: undefined })
    await writer.flush()
  }

  async #step(step: GrowthStep, work: () => Promise<Pick<Growth, 'bounds'> | void>): Promise<void> {
    if (this.#growth.done.includes(step)) return
    const found = await work()
    await this.#note({ ...found, done: [...this.#growth.done, step] })
  }

  async #note(news: Partial<Growth>): Promise<void> {
    const growth = { ...this.#growth, ...news }
    await writeGrowth(this.#options.producer, this.#options.config, growth)
    this.#growth = growth
  }

  #progressOf(source: Source): CopyProgress {
    const { done, waiting } = this.#growth
    let total = 0
    for (const log of source.get('memberships') ?? []) {
      if (!done.includes('states')) total += log.position - log.start
      if (!done.includes('open-states')) total += log.end - log.position
    }
    for (const name of waiting) {
      if (done.includes(`waiting/${name}`)) continue
      for (const log of source.get(name) ?? []) total += log.end - log.position
    }
    return new CopyProgress(this.#options.screen, total)
  }
}

async function refuse(refusals: Promise<readonly Refusal[]>): Promise<void> {
  const found = await refusals
  if (found.length === 0) return
  throw new StartError(`${describeRefusals(found)}\nRun the command again once it does.`)
}

/**
 * Shows how many records are copied already, how fast records are copied, and how long the copying still
 * takes.
 */
class CopyProgress {
  readonly #progress: Progress
  readonly #total: number
  readonly #startedMs = performance.now()
  #passed = 0

  constructor(screen: Screen, total: number) {
    this.#progress = new Progress(screen, 'copying', total)
    this.#total = total
  }

  passed(offsets: number): void {
    this.#passed += offsets
    this.#progress.at(this.#passed, () => this.#detail())
  }

  end(): void {
    this.#progress.end(this.#passed, this.#detail())
  }

  abandon(): void {
    this.#progress.abandon()
  }

  #detail(): string {
    const seconds = (performance.now() - this.#startedMs) / 1_000
    const perSecond = this.#passed / Math.max(seconds, 0.001)
    const left = perSecond > 0 ? Math.ceil((this.#total - this.#passed) / perSecond) : 0
    const rate = grouped(Math.round(perSecond))
    return `${grouped(this.#passed)} of ${grouped(this.#total)} records, ${rate} a second, ${inTime(Math.max(0, left))} left`
  }
}
