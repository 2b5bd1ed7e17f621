import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../config/schema.ts'
import { withAdmin } from '../../kafka/cluster/with-admin.ts'
import { compactionProblem } from '../../topics/topic-settings.ts'
import { clientOf } from '../start/ask-kafka.ts'
import { kafkaSettings, topicNames } from '../start/settings.ts'
import type { CatalogTopicLog } from './load-topic.ts'

const lookEveryMs = 3_600_000

/**
 * Looks whether Kafka deletes records of the catalog's topic. Somebody may change its cleanup policy while
 * all runs, and Kafka then deletes old destinations without a word. While Kafka doesn't tell the policy, the
 * last look counts. With `topics.check=off`, nothing is looked at.
 */
export class CompactionWatch {
  readonly #config: Config
  readonly #log: CatalogTopicLog
  readonly #topic: string
  readonly #stopping = new AbortController()
  #looked: { readonly problem: string | undefined; readonly atMs: number } | undefined

  constructor({ config, log }: { readonly config: Config; readonly log: CatalogTopicLog }) {
    this.#config = config
    this.#log = log
    this.#topic = topicNames(config).catalog
  }

  /** What is wrong, as of the last look, in words. */
  get problem(): string | undefined {
    return this.#looked?.problem
  }

  /** Looks now, and once an hour. */
  start(): void {
    void this.#run()
  }

  /** Returns what is wrong. Looks again if the last look is an hour old, or has found something. */
  async present(): Promise<string | undefined> {
    const { problem, atMs = -Infinity } = this.#looked ?? {}
    if (problem !== undefined || performance.now() - atMs > lookEveryMs) await this.#look()
    return this.problem
  }

  /** Doesn't wait for a look that is under way, because Kafka may not answer. */
  stop(): void {
    this.#stopping.abort()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#look()
      await delay(lookEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #look(): Promise<void> {
    if (this.#config.topics.check === 'off') return
    const topic = this.#topic
    const before = this.problem
    try {
      const kafka = clientOf(kafkaSettings(this.#config), this.#log)
      const problem = await withAdmin(kafka, (admin) => compactionProblem(admin, topic))
      this.#looked = { problem, atMs: performance.now() }
    } catch (error) {
      this.#log.debug({ err: error, topic }, 'the cleanup policy of the catalog could not be read')
      return
    }
    if (this.problem !== undefined && before === undefined)
      this.#log.error(
        { topic, problem: this.problem },
        'Kafka may delete parts of the catalog: the topic needs cleanup.policy=compact (`sluice topics apply`); until then, changes are refused',
      )
    else if (this.problem === undefined && before !== undefined)
      this.#log.info({ topic }, 'the topic of the catalog has the cleanup policy compact again')
  }
}
