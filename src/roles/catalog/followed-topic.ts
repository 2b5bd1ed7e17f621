import { type Catalog, createCatalog } from '../../catalog/catalog.ts'
import { type CatalogChanges, changesBetween } from '../../catalog/changes.ts'
import { type Fault, faultOf } from '../../catalog/fault.ts'
import type { CatalogRefusal } from '../../catalog/file.ts'
import { outlineOf } from '../../catalog/outline.ts'
import { Definitions } from '../../catalog-log/definitions.ts'
import { Entries } from '../../catalog-log/entries.ts'
import { CatalogLog, type ChangeSet, type StoredObject } from '../../catalog-log/log.ts'
import type { ObjectKind, ObjectName } from '../../catalog-log/names.ts'
import { catalogReading } from '../../catalog-log/read.ts'
import { RecordSeals } from '../../catalog-log/record.ts'
import type { Config } from '../../config/schema.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import { startTopicTail } from '../../kafka/read/topic-tail.ts'
import type { WholeRecord } from '../../message/records.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { askKafka, openKafka } from '../start/ask-kafka.ts'
import { catalogKeys } from './keys.ts'
import { topicNames } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'

export type CatalogTopicOptions = {
  readonly config: Config
  readonly log: CatalogTopicLog
  readonly role: KafkaRole
  /** Called with each new catalog. `changes`: the difference, for people. `by`: who made the changes. */
  readonly onChange: (
    catalog: Catalog,
    before: Catalog,
    news: { readonly changes: CatalogChanges; readonly by: readonly string[] },
  ) => void
}

/** The tokens of the admin API in the topic, by name, as the topic has them. */
export type TopicTokens = ReadonlyMap<string, StoredObject['definition']>

export type CatalogTopic = {
  current(): Catalog
  /** Returns the tokens as they are now. It is another map after each change. */
  tokens(): TopicTokens
  /** The number of the last change that was read. */
  revision(): number
  /** Returns what of the topic can't be used now. `undefined` if all of it is in force. */
  refused(): CatalogRefusal | undefined
  stop(): Promise<void>
}

/** How long the topic may be unreadable before this is told, in milliseconds. */
const unreadForMs = 30_000
/** The most objects that an error names. */
const mostNamed = 20

export type CatalogTopicLog = Record<
  'debug' | 'info' | 'warn' | 'error',
  (fields: object, message: string) => void
>

/**
 * Changes that come close together make one catalog. A new catalog is made after `leastMs` at the earliest,
 * and after so long that making catalogs takes a tenth of the time, but at most after `mostMs`.
 */
const gather = { leastMs: 50, mostMs: 500, share: 0.1 } as const

/** Reads the catalog's topic to its end. Throws a `StartError` if its content can't be used. */
export async function readCatalogTopic(
  options: Omit<CatalogTopicOptions, 'onChange'>,
): Promise<FollowedTopic> {
  const { config, log, role } = options
  const topic = topicNames(config).catalog
  const keys = catalogKeys(config)
  const kafka = await openKafka(config, log, role)
  const reader = createPartitionReader(kafka)
  try {
    const place = { topic, partition: 0 }
    const topicId = await askKafka(config, reader.topicId(place)).catch((cause: unknown) => {
      throw new StartError(
        `The topic ${topic} can not be read: ${cause instanceof Error ? cause.message : String(cause)}. \`sluice topics apply\` creates it.`,
        { cause },
      )
    })
    const followed = new FollowedTopic({ ...options, topic, topicId: topicId ?? '', keys, kafka })
    for await (const { records, next } of catalogReading(reader, topic)(0)) followed.take(records, next)
    followed.begin()
    return followed
  } finally {
    await reader.stop()
  }
}

type FollowOptions = Omit<CatalogTopicOptions, 'onChange'> & {
  readonly topic: string
  readonly topicId: string
  readonly keys: ReturnType<typeof catalogKeys>
  readonly kafka: Awaited<ReturnType<typeof openKafka>>
}

export class FollowedTopic {
  readonly #options: FollowOptions
  readonly #log: CatalogLog
  readonly #entries: Entries
  #onChange: CatalogTopicOptions['onChange'] = () => undefined
  #catalog: Catalog = createCatalog([], [], 'r0')
  #news: ChangeSet[] = []
  readonly #tokens = new Map<string, StoredObject['definition']>()
  /** A copy of the tokens. `undefined` if they have changed since it was made. */
  #tokensNow: TopicTokens | undefined
  #timer: NodeJS.Timeout | undefined
  #gatherMs: number = gather.leastMs
  /** What is wrong with the topic as a whole, since when. */
  #trouble: CatalogRefusal | undefined
  #unusableSinceMs = 0
  #unreadSinceMs = 0

  constructor(options: FollowOptions) {
    this.#options = options
    const { config, topic, keys, log } = options
    // Installations that share a cluster have different prefixes of topics.
    const installation = topicNames(config).catalog
    this.#log = new CatalogLog(new RecordSeals(installation, keys), (refused) =>
      log.error(
        { topic, ...refused },
        'a record of the catalog was refused: what was in force before it stays in force',
      ),
    )
    this.#entries = new Entries({
      definitions: new Definitions(installation, keys),
      topic,
      onUnusable: ({ kind, id }, problem) =>
        log.error(
          { topic, kind, id, problem },
          'an object of the catalog can not be used: its earlier version stays in force',
        ),
    })
  }

  get current(): Catalog {
    return this.#catalog
  }

  /** The number of the last change. 0: there is none. */
  get revision(): number {
    return this.#log.head?.revision ?? 0
  }

  take(records: readonly WholeRecord[], next: number): void {
    for (const record of records) {
      const set = this.#log.take(record)
      if (set === undefined) continue
      this.#takeTokens(set)
      this.#news.push(set)
    }
    this.#log.readTo(next)
  }

  /** A token is made and revoked at once. The catalog waits for further changes. */
  #takeTokens({ put, removed }: ChangeSet): void {
    for (const { kind, id, definition } of put) if (kind === 'token') this.#tokens.set(id, definition)
    for (const { kind, id } of removed) if (kind === 'token') this.#tokens.delete(id)
    if ([...put, ...removed].some(({ kind }) => kind === 'token')) this.#tokensNow = undefined
  }

  get #presentTokens(): TopicTokens {
    this.#tokensNow ??= new Map(this.#tokens)
    return this.#tokensNow
  }

  /**
   * Makes the first catalog of all that was read. Throws if the topic is damaged, or if an object can't be
   * used.
   */
  begin(): void {
    const { topic } = this.#options
    const { damage } = this.#log
    if (damage !== undefined)
      throw new StartError(
        `The topic ${topic} can not be used: ${damage}. Either this process lacks a key (catalog.keysFile), or somebody without a key has written to the topic, or deleted records. In the latter case, \`sluice catalog import FILE --repair\` writes the whole catalog again.`,
      )
    this.#news = []
    this.#catalog = this.#entries.all(this.#log)
    const unusable = [...this.#entries.unusable]
    if (unusable.length === 0) return
    // Without these objects, their messages would become dead letters.
    const named = unusable.slice(0, mostNamed).map(([key, problem]) => `  ${key}: ${problem}`)
    throw new StartError(
      [
        `The topic ${topic} has ${unusable.length} objects that this process can not use. Update it, give it the keys, or set the objects anew:`,
        ...named,
      ].join('\n'),
    )
  }

  follow(onChange: CatalogTopicOptions['onChange']): CatalogTopic {
    this.#onChange = onChange
    const { kafka, topic, topicId, log } = this.#options
    const tail = startTopicTail({
      kafka,
      topic,
      startOf: () => ({ next: this.#log.next, topicId }),
      onStart: (_, next, id, isOther) => this.#start(next, id, isOther),
      onRecords: (_, records) => {
        if (this.#trouble !== undefined) return
        const last = records.at(-1)
        this.take(records, last === undefined ? 0 : last.offset + 1)
        if (this.#news.length > 0) this.#timer ??= setTimeout(() => this.#tell(), this.#gatherMs)
      },
      log,
    })
    return {
      current: () => this.#catalog,
      tokens: () => this.#presentTokens,
      revision: () => this.revision,
      refused: () => this.#trouble ?? this.#unread(tail.trouble ?? this.#log.otherKey) ?? this.#unusable(),
      stop: async () => {
        clearTimeout(this.#timer)
        await tail.stop()
      },
    }
  }

  #start(next: number, id: string, isOther: boolean): void {
    const { topic, topicId, log } = this.#options
    if (!isOther && next === this.#log.next && (id === '' || topicId === '' || id === topicId)) return
    const problem = 'was made anew, or has lost records that were read'
    const advice = `the catalog stays as it is until this process ends; import an export of it before you restart: sluice catalog import FILE --repair`
    this.#trouble ??= { sinceMs: Date.now(), faults: [faultOf(topic, problem, advice)] }
    log.error({ topic, problem }, `the topic of the catalog is another one: ${advice}`)
  }

  /** Returns why later changes can't be read, once this has lasted for a while. */
  #unread(problem: string | undefined): CatalogRefusal | undefined {
    if (problem === undefined) {
      this.#unreadSinceMs = 0
      return undefined
    }
    this.#unreadSinceMs ||= Date.now()
    if (Date.now() - this.#unreadSinceMs < unreadForMs) return undefined
    const fault = faultOf(this.#options.topic, problem, 'the catalog stays as it is until this is mended')
    return { sinceMs: this.#unreadSinceMs, faults: [fault] }
  }

  #unusable(): CatalogRefusal | undefined {
    const faults: Fault[] = [...this.#entries.unusable].map(([key, problem]) =>
      faultOf(key, 'can not be used', problem),
    )
    if (faults.length === 0) {
      this.#unusableSinceMs = 0
      return undefined
    }
    this.#unusableSinceMs ||= Date.now()
    return { sinceMs: this.#unusableSinceMs, faults }
  }

  #tell(): void {
    const startedMs = performance.now()
    this.#timer = undefined
    const news = this.#news
    this.#news = []
    const before = this.#catalog
    this.#catalog = this.#entries.next(before, news)
    const changes = differenceOf(before, this.#catalog, news)
    this.#onChange(this.#catalog, before, { changes, by: [...new Set(news.map(({ head }) => head.by))] })
    const tookMs = performance.now() - startedMs
    this.#gatherMs = Math.min(gather.mostMs, Math.max(gather.leastMs, tookMs / gather.share))
  }
}

/** Compares only what the change sets name. */
function differenceOf(before: Catalog, after: Catalog, news: readonly ChangeSet[]): CatalogChanges {
  const names = news.flatMap(({ put, removed }) => [...put, ...removed])
  const only = (catalog: Catalog): Catalog =>
    createCatalog(
      entriesOf(names, 'source', catalog.sources),
      entriesOf(names, 'destination', catalog.destinations),
      catalog.version,
    )
  const [old, now] = [only(before), only(after)]
  return changesBetween({ outline: outlineOf(old), catalog: old }, { outline: outlineOf(now), catalog: now })
}

function entriesOf<T>(
  names: readonly ObjectName[],
  kind: ObjectKind,
  entries: ReadonlyMap<string, T>,
): readonly T[] {
  const ids = new Set(names.filter((name) => name.kind === kind).map(({ id }) => id))
  return [...ids].flatMap((id) => entries.get(id) ?? [])
}
