import type { Logger } from 'pino'
import type { ProducerOptions } from '../../kafka/produce/producer.ts'
import type { TopicNames } from '../../topics/topics.ts'
import { Listeners } from '../../async/listeners.ts'
import { describeReasons } from '../../kafka/wire/errors.ts'

export type FailingUnitsOptions = {
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly topics: TopicNames
}

const outcomeTopics = ['deadLetters', 'waiting', 'waitingMarks'] as const

/**
 * Says which units have to stop because Kafka accepts no records for a partition to which the unit's
 * deliveries are written. While a unit is stopped, its records aren't fetched, and none of its attempts
 * begin. All other units continue.
 */
export class FailingUnits {
  readonly #options: FailingUnitsOptions
  readonly #listeners = new Listeners<[unit: number, isStopped: boolean]>()
  /** The topics in which a unit's partition takes no records, each with the reason, by unit. */
  readonly #failing = new Map<number, Map<string, string>>()
  #owned: readonly number[] = []

  constructor(options: FailingUnitsOptions) {
    this.#options = options
  }

  /**
   * Calls `listener` when a unit has to stop, and when it may continue. Also calls it at once for each unit
   * that has to stop already.
   */
  onChange(listener: (unit: number, isStopped: boolean) => void): void {
    this.#listeners.add(listener)
    for (const unit of this.#failing.keys()) listener(unit, true)
  }

  readonly changed: NonNullable<ProducerOptions['onFailing']> = ({ topic, partition, reason }, isFailing) => {
    const { log, topics: names } = this.#options
    if (isFailing) log.warn({ topic, partition, reason }, 'Kafka does not accept records for this partition')
    else log.info({ topic, partition }, 'Kafka accepts records for this partition again')
    // A unit is stopped only for the topics without which the outcome of a delivery can't be written.
    const isOutcome = topic.startsWith(names.retryPrefix) || outcomeTopics.some((key) => names[key] === topic)
    if (!isOutcome) return
    const topics = this.#failing.get(partition) ?? new Map<string, string>()
    if (isFailing) topics.set(topic, reason)
    else topics.delete(topic)
    if (topics.size > 0) this.#failing.set(partition, topics)
    else this.#failing.delete(partition)
    this.#listeners.tell(partition, topics.size > 0)
  }

  /**
   * Returns why all units of this worker are stopped. Returns an empty text while at least one unit isn't
   * stopped, or while the worker has no unit.
   */
  get stoppedBy(): string {
    const reasons = this.#owned.map((unit) => [...(this.#failing.get(unit)?.values() ?? [])])
    if (reasons.length === 0 || reasons.some((ofUnit) => ofUnit.length === 0)) return ''
    return describeReasons(reasons.flat())
  }

  /**
   * Takes over an assignment, and stops the failing units again. This is needed because the consumer forgets
   * that a unit is stopped when this member loses the unit.
   */
  assigned(units: readonly number[]): void {
    this.#owned = units
    for (const unit of this.#failing.keys()) this.#listeners.tell(unit, true)
  }
}
