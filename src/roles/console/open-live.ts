import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { type LiveEnd, type LiveOrder, LiveStreams } from '../../admin/console/live.ts'
import type { LiveSubject } from '../../admin/console/live-groups.ts'
import { type AdminAnswer, problem } from '../../admin/problem.ts'
import { isScoped, scopeData, sees, type TokenScope } from '../../admin/scope.ts'
import type { AdminRequest } from '../../admin/server.ts'
import { seesAnswers, shareOf, type Token } from '../../admin/tokens.ts'
import { within } from '../../async/within.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { BlockReader } from '../../delivery-log/block-reader.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { startTopicTail, type TopicTail } from '../../kafka/read/topic-tail.ts'
import { timeOrNull } from '../operations/condition-text.ts'
import { type AssessedDestination, assessOne } from '../operations/destination-conditions.ts'
import { destinationHealthData } from '../operations/destination-list.ts'
import { recordData } from '../operations/log-text.ts'
import type { FollowedPicture, Picture } from '../operations/picture.ts'
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
type View = LiveSubject & Pick<Token, 'seesContent' | 'grants' | 'scope'>

/**
 * Which share of all live views those may have who share their limits, such as the customers of one label.
 */
const mostOfShare = 0.25
const lookEveryMs = 2_000
/** How long a view waits until the delivery log is followed, in milliseconds. */
const followedWithinMs = 5_000
/** How long the delivery log is still followed after the last view was closed, in milliseconds. */
const followsForMs = 30_000
/** How long brokers gather records of the delivery log, in milliseconds. */
const gatherMs = 500
/** A destination is told again after this time, in milliseconds, even if nothing has changed. */
const tellAgainAfterMs = 15_000

/**
 * Follows what happens as long as somebody looks: the records of the delivery log, how destinations are, and
 * the progress of replays.
 */
export class Live {
  readonly #options: LiveOptions
  readonly #streams: LiveStreams<View>
  readonly #reader = new BlockReader()
  #tail: TopicTail | undefined
  #lookedMs = 0
  readonly #timer: NodeJS.Timeout
  #isLooking = false
  /** The condition of each destination that somebody looks at, by its id. */
  #conditions: ReadonlyMap<string, string> = new Map()
  /** How each destination that somebody looks at was told last, by the key of the views. */
  #told: ReadonlyMap<string, ToldDestination> = new Map()
  #progress: ReadonlyMap<string, string> | undefined
  #looked: object | undefined

  constructor(options: LiveOptions) {
    const { liveViews, liveViewsOfSession } = options.config.admin
    this.#options = options
    this.#streams = new LiveStreams({
      limits: {
        ofAll: liveViews,
        ofShare: Math.max(liveViewsOfSession, Math.floor(liveViews * mostOfShare)),
        ofHolder: liveViewsOfSession,
      },
      stillSees: ({ scope }, { destination }) => sees(scope, options.catalog(), destination),
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
    const who = {
      holder: token.digest.toString('hex'),
      share: isScoped(token.scope) ? shareOf(token) : undefined,
    }
    if (!this.#streams.hasRoom(who)) return problem('busy', tooMany)
    const { destination, message, source } = query
    const view = { ...token, destination, message, source }
    const key = JSON.stringify([scopeData(token.scope), seesAnswers(token), destination, message, source])
    return {
      status: 200,
      body: {},
      isProblem: false,
      stream: (response) => void this.#open(response, { ...who, view, key, isInForce, lastEventId }),
    }
  }

  /** Opens a view once the log is followed, so that it shows all that happens after its `ready`. */
  async #open(response: ServerResponse, order: LiveOrder<View>): Promise<void> {
    response.flushHeaders()
    const free = this.#streams.reserve(order)
    this.#follow()
    // Without Kafka, a view still shows that it is there.
    if (this.#tail !== undefined) await within(followedWithinMs, this.#tail.begun)
    free()
    await this.#begin(order.view, this.#streams.open(response, order))
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
      gatherMs,
      onStart: () => undefined,
      onRecords: (partition, records) => {
        if (this.#streams.count === 0) return
        for (const { value } of records) if (value !== null) this.#sendAttempts(value, partition)
      },
      log,
    })
  }

  /** A block that is damaged, or of a later version, has no records, or not all of them. */
  #sendAttempts(block: Buffer, partition: number): void {
    const reader = this.#reader
    try {
      if (!reader.open(block)) return
      while (reader.next()) {
        const { destination, messageId: message, source } = reader
        // Most attempts of a busy installation concern no view.
        const about = { destination, message, source }
        if (this.#streams.mayConcern(about)) this.#sendAttempt(about, partition)
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
    }
  }

  /** Sends the present record of the reader. */
  #sendAttempt(about: { destination: string; message: string; source: string }, partition: number): void {
    const concerns = (view: View): boolean =>
      (view.message ?? about.message) === about.message &&
      (view.source ?? about.source) === about.source &&
      this.#concerns(view, about.destination)
    let record: LogRecord | undefined
    const made = new Map<boolean, object>()
    const dataFor = (view: View): object => {
      const hasAnswers = seesAnswers(view)
      record ??= this.#reader.record(partition)
      const data = made.get(hasAnswers) ?? recordData(record, view)
      made.set(hasAnswers, data)
      return data
    }
    this.#streams.send({
      name: 'attempt',
      about,
      isKept: true,
      isPaced: true,
      concerns,
      shownTo: (view) => (concerns(view) ? dataFor(view) : undefined),
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
      this.#progress = this.#looked = undefined
      this.#conditions = this.#told = new Map()
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

  /** Tells a new view of a destination how it is. */
  async #begin(view: View, tell: (name: string, data: object) => void): Promise<void> {
    const id = shownDestination(view)
    if (id === undefined) return
    try {
      const data = this.#stateOf(view, id, await this.#options.followed.current())
      if (data !== undefined) tell('destination', data)
    } catch (error) {
      this.#options.log.debug({ err: error }, 'live views get no news of health and replays for now')
    }
  }

  #stateOf(view: View, id: string, picture: Picture) {
    const catalog = this.#options.catalog()
    const destination = catalog.destinations.get(id)
    if (destination === undefined || !sees(view.scope, catalog, id)) return undefined
    return destinationHealthData(destination, picture)
  }

  async #lookAtHealth(): Promise<void> {
    const { followed } = this.#options
    const picture = await followed.current()
    if (picture === this.#looked) return
    this.#looked = picture
    const shown = [...this.#streams.shown()]
    const before = this.#conditions
    const views = shown.map(({ view }) => view)
    const assessed = this.#assessedFor(views, picture)
    this.#conditions = new Map(assessed.map(({ destination: { id }, condition }) => [id, condition]))
    for (const { destination, condition, sinceMs } of assessed) {
      const { id } = destination
      if ((before.get(id) ?? condition) === condition) continue
      const data = { destination: id, condition, since: timeOrNull(sinceMs) }
      this.#streams.send({
        name: 'health',
        about: { destination: id },
        shownTo: (view) => (!isOfMessages(view) && this.#concerns(view, id) ? data : undefined),
      })
    }
    this.#tellDestinations(shown, picture)
  }

  /** Looks at all destinations only if a view shows all. */
  #assessedFor(views: readonly View[], picture: Picture): readonly AssessedDestination[] {
    const { followed, catalog } = this.#options
    const ofDestinations = views.filter((view) => !isOfMessages(view))
    if (ofDestinations.some(({ destination }) => destination === undefined))
      return followed.assessed(catalog(), picture)
    const { destinations } = catalog()
    return [...new Set(ofDestinations.map(({ destination = '' }) => destination))].flatMap((id) => {
      const destination = destinations.get(id)
      return destination === undefined ? [] : [assessOne(destination, picture.pauses, picture.health)]
    })
  }

  /** Tells the views of a destination how it is, if it is otherwise than before. */
  #tellDestinations(shown: readonly { readonly key: string; readonly view: View }[], picture: Picture): void {
    const nowMs = performance.now()
    const told = new Map<string, ToldDestination>()
    for (const { key, view } of shown) {
      const id = shownDestination(view)
      const data = id === undefined ? undefined : this.#stateOf(view, id, picture)
      if (data === undefined) continue
      const text = JSON.stringify({ ...data, asOf: '', health: { ...data.health, asOf: '' } })
      const before = this.#told.get(key)
      const isSame = before?.text === text && nowMs - before.atMs < tellAgainAfterMs
      told.set(key, isSame ? before : { text, atMs: nowMs })
      if (!isSame) this.#streams.tell(key, 'destination', data)
    }
    this.#told = told
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
        about: { destination },
        shownTo: (view) =>
          !isOfMessages(view) && (view.destination ?? destination) === destination
            ? shownTo(view.scope)
            : undefined,
      })
    }
  }
}

type ToldDestination = { readonly text: string; readonly atMs: number }

/** Returns the destination of which a view shows how it is. */
function shownDestination(view: View): string | undefined {
  return isOfMessages(view) ? undefined : view.destination
}

/** Tells whether a view shows what becomes of messages, and nothing else. */
function isOfMessages({ message, source }: View): boolean {
  return message !== undefined || source !== undefined
}

const tooMany =
  'There are too many live views: close some (admin.liveViewsOfSession for each session, admin.liveViews in all, and a quarter of these for those who see one label).'
