import type { Logger } from 'pino'
import { type LiveEnd, LiveStreams } from '../../admin/console/live.ts'
import { type AdminAnswer, problem } from '../../admin/problem.ts'
import { sees, type TokenScope } from '../../admin/scope.ts'
import type { AdminRequest } from '../../admin/server.ts'
import { seesAnswers, type Token } from '../../admin/tokens.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { readBlock } from '../../delivery-log/block-reader.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { startTopicTail, type TopicTail } from '../../kafka/read/topic-tail.ts'
import { timeOrNull } from '../operations/condition-text.ts'
import { recordData } from '../operations/log-text.ts'
import type { FollowedPicture } from '../operations/picture.ts'
import { clientOf } from '../start/ask-kafka.ts'
import { kafkaSettings, topicNames } from '../start/settings.ts'

/** A replay, as somebody with a scope sees it. `undefined`: it doesn't concern the scope. */
export type LiveReplay = {
  readonly id: string
  readonly destination: string | undefined
  readonly shownTo: (scope: TokenScope) => object | undefined
}

export type LiveOptions = {
  readonly config: Config
  readonly log: Logger
  readonly catalog: () => Catalog
  readonly followed: Pick<FollowedPicture, 'current' | 'assessed'>
  readonly replays: () => Promise<readonly LiveReplay[]>
  /** Called with why a view was ended, unless its browser has closed it. */
  readonly onEnded: (why: LiveEnd) => void
}

/** What a live view shows. */
type View = Pick<Token, 'seesContent' | 'grants'> & {
  readonly scope: TokenScope
  readonly destination: string | undefined
  readonly message: string | undefined
  /** Only attempts of messages of this source, and nothing else. */
  readonly source: string | undefined
}

const lookEveryMs = 2_000
/** How long the delivery log is still followed after the last view was closed, in milliseconds. */
const followsForMs = 30_000

/**
 * Follows what happens as long as somebody looks: the records of the delivery log, the conditions of
 * destinations, and the progress of replays.
 */
export class Live {
  readonly #options: LiveOptions
  readonly #streams: LiveStreams<View>
  #tail: TopicTail | undefined
  #lookedMs = 0
  readonly #timer: NodeJS.Timeout
  #isLooking = false
  #conditions: ReadonlyMap<string, string> | undefined
  #progress: ReadonlyMap<string, string> | undefined
  #looked: object | undefined

  constructor(options: LiveOptions) {
    const { liveViews, liveViewsOfSession } = options.config.admin
    this.#options = options
    this.#streams = new LiveStreams({
      limits: { ofAll: liveViews, ofHolder: liveViewsOfSession },
      onEnded(why) {
        options.onEnded(why)
        if (why === 'slow')
          options.log.info('a live view was ended, because its browser does not read what it is sent')
      },
    })
    this.#timer = setInterval(() => void this.#look(), lookEveryMs).unref()
  }

  /** The number of views that are open. */
  get count(): number {
    return this.#streams.count
  }

  call({ query, token, isInForce, lastEventId }: AdminRequest): AdminAnswer {
    const holder = token.digest.toString('hex')
    if (!this.#streams.hasRoom(holder)) return problem('busy', tooMany)
    const { destination, message, source } = query
    const view = { ...token, destination, message, source }
    return {
      status: 200,
      body: {},
      isProblem: false,
      stream: (response) => {
        this.#follow()
        this.#streams.open(response, { view, holder, isInForce, lastEventId })
      },
    }
  }

  /** Ends all views, so that the server can close. */
  close(): void {
    clearInterval(this.#timer)
    this.#streams.close()
  }

  async stop(): Promise<void> {
    this.close()
    await this.#tail?.stop()
  }

  #follow(): void {
    this.#lookedMs = performance.now()
    const { config, log } = this.#options
    if (!config.attempts.enabled) return
    this.#tail ??= startTopicTail({
      kafka: clientOf(kafkaSettings(config), log),
      topic: topicNames(config).attempts,
      startOf: () => 'end',
      onStart: () => undefined,
      onRecords: (partition, records) => {
        if (this.#streams.count === 0) return
        for (const { value } of records)
          for (const record of statesOf(value, partition)) this.#sendAttempt(record)
      },
      log,
    })
  }

  #sendAttempt(record: LogRecord): void {
    const { destination, messageId, source } = record
    // Most attempts of a busy installation concern no view.
    const made = new Map<boolean, object>()
    const dataFor = (view: View): object => {
      const hasAnswers = seesAnswers(view)
      const data = made.get(hasAnswers) ?? recordData(record, view)
      made.set(hasAnswers, data)
      return data
    }
    this.#streams.send({
      name: 'attempt',
      isKept: true,
      isPaced: true,
      shownTo: (view) =>
        (view.message ?? messageId) === messageId &&
        (view.source ?? source) === source &&
        this.#concerns(view, destination)
          ? dataFor(view)
          : undefined,
    })
  }

  #concerns({ scope, destination }: View, id: string | undefined): boolean {
    if (destination !== undefined && destination !== id) return false
    return sees(scope, this.#options.catalog(), id)
  }

  async #look(): Promise<void> {
    const nowMs = performance.now()
    if (this.#streams.count > 0) this.#lookedMs = nowMs
    else {
      this.#conditions = this.#progress = this.#looked = undefined
      if (this.#tail !== undefined && nowMs - this.#lookedMs > followsForMs) {
        const tail = this.#tail
        this.#tail = undefined
        await tail.stop()
      }
      return
    }
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      await this.#lookAtHealth()
      await this.#lookAtReplays()
    } catch (error) {
      // What waits is told at the next look. That Kafka doesn't answer is in the log already.
      this.#options.log.debug({ err: error }, 'live views get no news of health and replays for now')
    } finally {
      this.#isLooking = false
    }
  }

  async #lookAtHealth(): Promise<void> {
    const { followed, catalog } = this.#options
    const picture = await followed.current()
    if (picture === this.#looked) return
    this.#looked = picture
    const before = this.#conditions
    const assessed = followed.assessed(catalog(), picture)
    this.#conditions = new Map(assessed.map(({ destination: { id }, condition }) => [id, condition]))
    if (before === undefined) return
    for (const { destination, condition, sinceMs } of assessed) {
      const { id } = destination
      if (before.get(id) === condition) continue
      const data = { destination: id, condition, since: timeOrNull(sinceMs) }
      this.#streams.send({
        name: 'health',
        shownTo: (view) => (!isOfMessages(view) && this.#concerns(view, id) ? data : undefined),
      })
    }
  }

  async #lookAtReplays(): Promise<void> {
    const replays = await this.#options.replays()
    const before = this.#progress
    const texts = replays.map((one) => [one.id, JSON.stringify(one.shownTo({}))] as const)
    this.#progress = new Map(texts)
    if (before === undefined) return
    for (const { id, destination, shownTo } of replays) {
      if (before.get(id) === this.#progress.get(id)) continue
      this.#streams.send({
        name: 'replay',
        shownTo: (view) =>
          !isOfMessages(view) && (view.destination ?? destination) === destination
            ? shownTo(view.scope)
            : undefined,
      })
    }
  }
}

/** Tells whether a view shows what becomes of messages, and nothing else. */
function isOfMessages({ message, source }: View): boolean {
  return message !== undefined || source !== undefined
}

/** Decodes a block of records. A block that is damaged, or of a later version, has none. */
function statesOf(value: Buffer | null, partition: number): readonly LogRecord[] {
  try {
    return value === null ? [] : readBlock(value, partition)
  } catch (error) {
    if (error instanceof RangeError) return []
    throw error
  }
}

const tooMany =
  'There are too many live views: close some (admin.liveViewsOfSession for each session, admin.liveViews in all).'
