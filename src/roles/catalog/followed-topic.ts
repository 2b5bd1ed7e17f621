import { setTimeout as delay } from 'node:timers/promises'
import isEqual from 'fast-deep-equal'
import { Breath } from '../../async/breath.ts'
import type { Pace } from '../../async/pace.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { CatalogChanges } from '../../catalog/changes.ts'
import { type Fault, faultOf, formatFaults } from '../../catalog/fault.ts'
import type { CatalogRefusal } from '../../catalog/file/file.ts'
import { Definitions } from '../../catalog-log/definitions.ts'
import type { CopyPlace } from '../../catalog-log/disk-copy.ts'
import { Entries, pieceMs } from '../../catalog-log/entries.ts'
import type { CatalogLog, ChangeSet, StoredObject } from '../../catalog-log/log.ts'
import { isEntry, nameOf, type ObjectName } from '../../catalog-log/names.ts'
import type { Config } from '../../config/schema.ts'
import { startTopicTail, type TopicTail } from '../../kafka/read/topic-tail.ts'
import { messageOf } from '../../kafka/wire/errors.ts'
import type { WholeRecord } from '../../message/records.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { openKafka } from '../start/ask-kafka.ts'
import { topicNames } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'
import { differenceOf, firstSets } from './change-sets.ts'
import { catalogKeys } from './keys.ts'
import {
  type CatalogTopicLog,
  type KafkaClient,
  type KnownLog,
  type LoadedTopic,
  loadTopic,
  TopicTroubleError,
  whatToDo,
} from './load-topic.ts'

export type CatalogTopicOptions = {
  readonly config: Config
  readonly log: CatalogTopicLog
  readonly role: KafkaRole
  /** The log that was in force last on this machine. */
  readonly known?: KnownLog | undefined
  /**
   * True: objects that can't be used are left out and told (`problem`). For commands that only show what
   * there is.
   */
  readonly allowsUnusable?: boolean
  /** How much of its time the process may spend on changes. `undefined`: all of it. */
  readonly pace?: Pace | undefined
}

/** Called with each new catalog. */
export type OnCatalog = (catalog: Catalog, before: Catalog, news: CatalogNews) => void

export type CatalogNews = {
  /** The difference, for people. */
  readonly changes: CatalogChanges
  /** Who made the changes. */
  readonly by: readonly string[]
  readonly sets: readonly ChangeSet[]
}

/** The tokens of the admin API in the topic, by name, as the topic has them. */
export type TopicTokens = ReadonlyMap<string, StoredObject['definition']>

/** Why a process uses the copy on its disk, or what it had in memory, instead of its topic. */
export type TopicTrouble = {
  readonly kind: 'copy' | 'other_topic'
  readonly sinceMs: number
  readonly problem: string
  /** Where the copy ends that is in force. */
  readonly copy?: CopyPlace
}

export type CatalogTopic = {
  current(): Catalog
  /** Returns the tokens as they are now. It is another map after each change. */
  tokens(): TopicTokens
  /** The number of the last change that was read. */
  revision(): number
  /** Returns what of the topic can't be used now. `undefined` if all of it is in force. */
  refused(): CatalogRefusal | undefined
  /** Returns why the topic isn't followed. `undefined` if it is. */
  trouble(): TopicTrouble | undefined
  /** True while an object of the topic can't be used, or is of a kind that this version doesn't know. */
  hasUnusable(): boolean
  /**
   * True while somebody else has overwritten records, which Kafka's compaction will delete from the topic.
   */
  hasOverwritten(): boolean
  /** Returns in words what is wrong with the topic now, whatever it is. `undefined` if all is well. */
  problem(): string | undefined
  /** Returns since when the topic can't be read, in epoch milliseconds. `undefined` if it is read. */
  unreadSinceMs(): number | undefined
  /** The log and the id of the topic that are in force. */
  inForce(): LoadedTopic
  stop(): Promise<void>
}

/** How long the topic may be unreadable before this is told, in milliseconds. */
const unreadForMs = 30_000
/** The most objects that an error names. */
const mostNamed = 20
/** While this many records wait, no more are fetched. */
const mostWaiting = 5_000

/**
 * Changes that come close together make one catalog. A new catalog is made after `leastMs` at the earliest,
 * and after so long that making catalogs takes a tenth of the time, but at most after `mostMs`.
 */
const gather = { leastMs: 50, mostMs: 500, share: 0.1 } as const
/** The pause before a topic that could not be used is read again, in milliseconds. It doubles. */
const again = { firstMs: 2_000, mostMs: 60_000 } as const

/** Reads the catalog's topic to its end. Throws a `StartError` if its content can't be used. */
export async function readCatalogTopic(options: CatalogTopicOptions): Promise<FollowedTopic> {
  const { config, log, role, known } = options
  // A missing or faulty file of keys is told before Kafka is asked.
  catalogKeys(config)
  const kafka = await openKafka(config, log, role).catch((cause: unknown) => {
    throw cause instanceof StartError ? new TopicTroubleError(cause.message, { cause }) : cause
  })
  return new FollowedTopic({ ...options, kafka }, await loadTopic(config, kafka, { log, known }))
}

/** The copy that takes the place of the topic, and why. */
export type UsedCopy = { readonly place: CopyPlace; readonly problem: string }

type FollowOptions = CatalogTopicOptions & { readonly kafka: KafkaClient }

export class FollowedTopic {
  readonly #options: FollowOptions
  readonly #topic: string
  readonly #entries: Entries
  readonly #stopping = new AbortController()
  #onChange: OnCatalog = () => undefined
  #onSet: (set: ChangeSet) => void = () => undefined
  #loaded: LoadedTopic
  #catalog: Catalog
  #tail: TopicTail | undefined
  /** The records that were read and not yet taken. */
  #inbox: WholeRecord[] = []
  #isTaking = false
  #news: ChangeSet[] = []
  #isTelling = false
  #tokens = new Map<string, StoredObject['definition']>()
  /** A copy of the tokens. `undefined` if they have changed since it was made. */
  #tokensNow: TopicTokens | undefined
  #timer: NodeJS.Timeout | undefined
  #gatherMs: number = gather.leastMs
  #trouble: TopicTrouble | undefined
  #unreadSinceMs = 0

  /** `copy`: what was loaded is the copy, because the topic can't be used now. */
  constructor(options: FollowOptions, loaded: LoadedTopic, copy?: UsedCopy) {
    this.#options = options
    this.#loaded = loaded
    const { config, log } = options
    // Installations that share a cluster have different prefixes of topics.
    const topic = topicNames(config).catalog
    this.#topic = topic
    this.#entries = new Entries({
      definitions: new Definitions(topic, catalogKeys(config)),
      topic,
      onUnusable: ({ kind, id }, problem) =>
        log.error(
          { topic, kind, id, problem },
          'an object of the catalog can not be used: its earlier version stays in force',
        ),
    })
    if (copy !== undefined)
      this.#trouble = { kind: 'copy', sinceMs: Date.now(), problem: copy.problem, copy: copy.place }
    this.#tokens = tokensOf(loaded.log)
    this.#catalog = this.#entries.all(loaded.log)
    if (options.allowsUnusable !== true) this.#refuseUnusable()
  }

  get current(): Catalog {
    return this.#catalog
  }

  get trouble(): TopicTrouble | undefined {
    return this.#trouble
  }

  /** Returns in words what is wrong with the topic now, whatever it is. `undefined` if all is well. */
  get problem(): string | undefined {
    return this.#problem()
  }

  get #log(): CatalogLog {
    return this.#loaded.log
  }

  /** Without these objects, their messages would become dead letters. */
  #refuseUnusable(): void {
    const unusable = [...this.#entries.unusable]
    if (unusable.length === 0) return
    const named = unusable.slice(0, mostNamed).map(([key, { problem }]) => `  ${key}: ${problem}`)
    throw new StartError(
      [
        `The topic ${this.#topic} has ${unusable.length} objects that this process can not use. Update it, give it the keys, or set the objects anew:`,
        ...named,
      ].join('\n'),
    )
  }

  get #presentTokens(): TopicTokens {
    this.#tokensNow ??= new Map(this.#tokens)
    return this.#tokensNow
  }

  /** `onSet`: called with each change set at once, before it is in a catalog. */
  follow(onChange: OnCatalog, onSet: (set: ChangeSet) => void = () => undefined): CatalogTopic {
    this.#onChange = onChange
    this.#onSet = onSet
    if (this.#trouble === undefined) this.#startTail()
    else void this.#readAgain()
    return {
      current: () => this.#catalog,
      tokens: () => this.#presentTokens,
      revision: () => this.#log.head?.revision ?? 0,
      refused: () => this.#refused(),
      trouble: () => this.#trouble,
      hasUnusable: () => this.#entries.unusable.size > 0 || this.#log.unknown.length > 0,
      hasOverwritten: () => this.#log.overwritten.length > 0,
      problem: () => this.#problem(),
      unreadSinceMs: () => (this.#unread() === undefined ? undefined : this.#unreadSinceMs),
      inForce: () => this.#loaded,
      stop: async () => {
        this.#stopping.abort()
        clearTimeout(this.#timer)
        // A reading that is under way isn't waited for, because Kafka may not answer.
        await this.#tail?.stop()
      },
    }
  }

  #startTail(): void {
    const { kafka, log } = this.#options
    const { topicId } = this.#loaded
    this.#tail = startTopicTail({
      kafka,
      topic: this.#topic,
      startOf: () => ({ next: this.#log.next, topicId }),
      onStart: (_, next, id, isOther) => this.#start(next, id, isOther),
      onRecords: (_, records) => {
        if (this.#trouble !== undefined) return
        for (const record of records) this.#inbox.push(record)
        this.#tail?.setFull(this.#inbox.length > mostWaiting)
        if (!this.#isTaking) void this.#takeAll()
      },
      log,
    })
  }

  /**
   * Takes what was read. Checking the signatures of a thousand records would block the process for too long.
   */
  async #takeAll(): Promise<void> {
    this.#isTaking = true
    const breath = this.#breath()
    while (this.#inbox.length > 0) {
      for (const record of this.#inbox.splice(0)) {
        // After another leader was elected, records may be read again.
        if (this.#trouble === undefined && record.offset >= this.#log.next) await this.#take(record, breath)
        await breath.take()
      }
    }
    this.#isTaking = false
    this.#tail?.setFull(false)
  }

  #breath(): Breath {
    return new Breath(pieceMs, this.#options.pace)
  }

  async #take(record: WholeRecord, breath: Breath): Promise<void> {
    const log = this.#log
    const work = log.taking(record)
    let step = work.next()
    while (step.done !== true) {
      await breath.take()
      // Meanwhile, the topic may have been read anew.
      if (log !== this.#log) return
      step = work.next()
    }
    // Nothing may come between the log and those that note what has changed in it.
    const set = step.value
    if (set === undefined) return
    // A token is made and revoked at once. The catalog waits for further changes.
    this.#takeTokens(set)
    this.#onSet(set)
    this.#news.push(set)
    this.#tellSoon()
  }

  #takeTokens({ put, removed }: ChangeSet): void {
    for (const { kind, id, definition } of put) if (kind === 'token') this.#tokens.set(id, definition)
    for (const { kind, id } of removed) if (kind === 'token') this.#tokens.delete(id)
    if (put.some(isToken) || removed.some(isToken)) this.#tokensNow = undefined
  }

  #start(next: number, id: string, isOther: boolean): void {
    const { log } = this.#options
    const { topicId } = this.#loaded
    if (!isOther && next === this.#log.next && (id === '' || topicId === '' || id === topicId)) return
    if (this.#trouble !== undefined) return
    const problem = 'was made anew, or has lost records that were read'
    this.#trouble = { kind: 'other_topic', sinceMs: Date.now(), problem }
    log.error(
      { topic: this.#topic, problem },
      `the topic of the catalog is another one: the catalog stays as it is; ${whatToDo}`,
    )
    void this.#readAgain()
  }

  /** Reads the topic until it can be used, and then goes on with it. */
  async #readAgain(): Promise<void> {
    const { config, kafka, log } = this.#options
    const { signal } = this.#stopping
    for (let pauseMs: number = again.firstMs; ; pauseMs = Math.min(2 * pauseMs, again.mostMs)) {
      await delay(pauseMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      const { revision = 0, lineage } = this.#log.head ?? {}
      const known = { revision, lineage }
      try {
        const loaded = await loadTopic(config, kafka, { log: quieter(log), known })
        if (signal.aborted) return
        await this.#adopt(loaded)
        log.info(
          { topic: this.#topic, version: this.#catalog.version },
          'the topic of the catalog is followed again',
        )
        return
      } catch (error) {
        if (!(error instanceof StartError))
          log.error({ err: error }, 'the topic of the catalog can not be read')
        if (this.#trouble !== undefined && error instanceof StartError)
          this.#trouble = { ...this.#trouble, problem: messageOf(error) }
      }
    }
  }

  /** Goes on with the topic as it is. Entries that stay the same keep their objects. */
  async #adopt(loaded: LoadedTopic): Promise<void> {
    const before = this.#log
    const put: StoredObject[] = []
    const breath = new Breath()
    for (const [key, object] of loaded.log.all) {
      const same = isEqual(before.all.get(key)?.definition, object.definition)
      if (!same || this.#entries.unusable.has(key)) put.push(object)
      await breath.take()
    }
    const gone = [...before.all.keys()].filter((key) => !loaded.log.all.has(key))
    const removed = gone.flatMap((key) => nameOf(key) ?? [])
    const { head } = loaded.log
    await this.#tail?.stop()
    this.#inbox = []
    this.#loaded = loaded
    this.#tokens = tokensOf(loaded.log)
    this.#tokensNow = undefined
    this.#trouble = undefined
    if (head !== undefined) {
      const set = { head, put, removed }
      this.#onSet(set)
      this.#news.push(set)
      this.#tellSoon()
    }
    this.#startTail()
  }

  #refused(): CatalogRefusal | undefined {
    const trouble = this.#trouble
    if (trouble === undefined) return this.#unread() ?? this.#unusable()
    const fault = faultOf(this.#topic, trouble.problem, `the catalog stays as it is; ${whatToDo}`)
    return { sinceMs: trouble.sinceMs, faults: [fault] }
  }

  #problem(): string | undefined {
    if (this.#trouble !== undefined) return this.#trouble.problem
    const { faults = [] } = this.#refused() ?? {}
    const { overwritten, unknown } = this.#log
    const told = [
      ...(faults.length === 0 ? [] : [formatFaults(faults.slice(0, mostNamed))]),
      ...(faults.length > mostNamed ? [`and ${faults.length - mostNamed} more`] : []),
      ...(unknown.length === 0 ? [] : [unknownText(this.#topic, unknown)]),
      ...(overwritten.length === 0 ? [] : [overwrittenText(this.#topic, overwritten)]),
    ]
    return told.length === 0 ? undefined : told.join('\n')
  }

  /** Returns why later changes can't be read, once this has lasted for a while. */
  #unread(): CatalogRefusal | undefined {
    const problem = this.#trouble === undefined ? (this.#tail?.trouble ?? this.#log.otherKey) : undefined
    if (problem === undefined) {
      this.#unreadSinceMs = 0
      return undefined
    }
    this.#unreadSinceMs ||= Date.now()
    if (Date.now() - this.#unreadSinceMs < unreadForMs) return undefined
    const fault = faultOf(this.#topic, problem, 'the catalog stays as it is until this is mended')
    return { sinceMs: this.#unreadSinceMs, faults: [fault] }
  }

  #unusable(): CatalogRefusal | undefined {
    const { unusable } = this.#entries
    if (unusable.size === 0) return undefined
    const faults = [...unusable].map(([key, { problem, sinceMs }]): Fault => {
      const since = new Date(sinceMs).toISOString()
      return faultOf(key, `can not be used since ${since} (${problem})`, whatToDoWithUnusable)
    })
    return { sinceMs: Math.min(...[...unusable.values()].map(({ sinceMs }) => sinceMs)), faults }
  }

  #tellSoon(): void {
    if (this.#isTelling || this.#stopping.signal.aborted) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#tell().catch((error: unknown) =>
        this.#options.log.error({ err: error }, 'a fault of Sluice: please report it'),
      )
    }, this.#gatherMs)
  }

  /** Makes catalogs of all change sets that have come. Those that come meanwhile make later ones. */
  async #tell(): Promise<void> {
    const startedMs = performance.now()
    const news = this.#news
    if (news.length === 0) return
    this.#news = []
    this.#isTelling = true
    let told = 0
    const breath = this.#breath()
    try {
      while (told < news.length && !this.#stopping.signal.aborted) {
        const sets = firstSets(news, told)
        told += sets.length
        await this.#tellOf(sets, breath)
        await breath.take()
      }
    } finally {
      this.#isTelling = false
      this.#news = [...news.slice(told), ...this.#news]
      // Tokens and sessions come and go, and must not put off a change of a destination.
      if (news.some(({ put, removed }) => put.some(isEntry) || removed.some(isEntry))) {
        const tookMs = performance.now() - startedMs
        this.#gatherMs = Math.min(gather.mostMs, Math.max(gather.leastMs, tookMs / gather.share))
      }
      if (this.#news.length > 0) this.#tellSoon()
    }
  }

  /** All steps share the breath, because together they may take no longer than one piece without a rest. */
  async #tellOf(sets: readonly ChangeSet[], breath: Breath): Promise<void> {
    const before = this.#catalog
    const catalog = await this.#entries.next(before, sets, breath)
    await breath.take()
    const changes = await differenceOf(before, catalog, sets, breath)
    await breath.take()
    if (this.#stopping.signal.aborted) return
    this.#catalog = catalog
    const by = [...new Set(sets.map(({ head }) => head.by))]
    this.#onChange(catalog, before, { changes, by, sets })
  }
}

const whatToDoWithUnusable =
  'what was in force before stays in force: update this process, give it the same keys (catalog.keysFile), or set the object anew'

function unknownText(topic: string, keys: readonly string[]): string {
  return `A later version of Sluice has written objects to the topic ${topic} that this one does not know, and does not use (${namesOf(keys)}). Update this process.`
}

function namesOf(keys: readonly string[]): string {
  return [...keys.slice(0, mostNamed), ...(keys.length > mostNamed ? ['…'] : [])].join(', ')
}

function overwrittenText(topic: string, keys: readonly string[]): string {
  return `Somebody without the key has overwritten records of the topic ${topic} (${namesOf(keys)}). What they were stays in force, until Kafka compacts the topic and a process starts. \`sluice catalog export > all.yaml\` and \`sluice catalog import all.yaml --repair\` write them again.`
}

/** The same records would be refused at each reading. */
function quieter(log: CatalogTopicLog): CatalogTopicLog {
  const debug: CatalogTopicLog['debug'] = (fields, message) => log.debug(fields, message)
  return { debug, info: debug, warn: debug, error: debug }
}

function isToken({ kind }: ObjectName): boolean {
  return kind === 'token'
}

function tokensOf(log: CatalogLog): Map<string, StoredObject['definition']> {
  return new Map(log.of('token').map(({ id, definition }) => [id, definition]))
}
