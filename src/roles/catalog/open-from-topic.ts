import { Pace } from '../../async/pace.ts'
import { Listeners } from '../../async/listeners.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { stateCountsOf } from '../../catalog/next-catalog.ts'
import { outlineOf } from '../../catalog/outline.ts'
import { pieceMs } from '../../catalog-log/entries.ts'
import type { ChangeSet } from '../../catalog-log/log.ts'
import { isEntry } from '../../catalog-log/names.ts'
import type { Config } from '../../config/schema.ts'
import { showCatalog } from '../../telemetry/show-state.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { clientOf } from '../start/ask-kafka.ts'
import { kafkaSettings, topicNames } from '../start/settings.ts'
import { CompactionWatch } from './compaction-watch.ts'
import { type CatalogTopic, FollowedTopic, readCatalogTopic } from './followed-topic.ts'
import { type CatalogTopicLog, type KnownLog, TopicTroubleError } from './load-topic.ts'
import { CatalogMemory } from './memory.ts'
import type { OpenCatalogOptions, RoleCatalog } from './role-catalog.ts'
import { TopicMemory } from './topic-memory.ts'

/** The outline is large, and only a catalog file is compared with it later. So it is written this rarely. */
const outlineEveryMs = 10 * 60_000

/**
 * How much of its time a process spends on changes of the catalog at most, while many come, because what it
 * delivers can't wait. The second share is for a process that has nothing else to do.
 */
const shareOfChanges = { share: 0.2, idleShare: 0.8 } as const

/** Opens the catalog of a role from its topic, or from the last good copy of it. */
export async function openFromTopic({
  config,
  metrics,
  log,
  role,
  counts,
}: OpenCatalogOptions): Promise<RoleCatalog> {
  const listeners = new Listeners<[catalog: Catalog, before: Catalog]>()
  const outlines = new CatalogMemory(config, (about, message) => log.warn(about, message))
  const pace = new Pace({ ...shareOfChanges, pieceMs })
  const memory = new TopicMemory(config, log, pace)
  const known = memory.exists ? await memory.place() : await knownOf(outlines)
  const read = await readOrCopy({ config, log, role, known, memory, pace })
  let outlineDueMs = Infinity
  const keepOutline = (): void => {
    if (Date.now() < outlineDueMs) return
    outlineDueMs = Date.now() + outlineEveryMs
    outlines.keep(() => outlineOf(topic.current()))
  }
  const topic = read.follow(
    (catalog, before, { changes, by, sets }) => {
      showCatalog(metrics, catalog.version, stateCountsOf(catalog))
      const count = counts === undefined ? {} : { [counts]: catalog[counts].size }
      if (sets.some(changesCatalog))
        log.info({ version: catalog.version, ...count, by, changes }, 'the catalog has changed')
      keepOutline()
      listeners.tell(catalog, before)
    },
    (set) => memory.note(set),
  )
  const first = topic.current()
  showCatalog(metrics, first.version, stateCountsOf(first))
  if (first.destinations.size === 0) log.warn({ topic: topicNames(config).catalog }, emptyTopic)
  const compaction = new CompactionWatch({ config, log })
  compaction.start()
  metrics.catalogRefused.follow(() => (topic.refused() === undefined ? 0 : 1))
  metrics.catalogCopyAge.follow(() => ageOf(topic.trouble()?.copy?.writtenMs))
  metrics.catalogTrouble.follow(() => troubleKinds(topic, compaction))
  return {
    current: () => topic.current(),
    refused: () => topic.refused(),
    onChange: (listener) => listeners.add(listener),
    problem: () => topic.problem(),
    topic,
    inForce() {
      outlineDueMs = 0
      keepOutline()
      memory.begin(() => topic.inForce())
    },
    async stop() {
      // The last changes are in the outline too.
      if (outlineDueMs !== Infinity) outlines.keep(() => outlineOf(topic.current()))
      compaction.stop()
      await Promise.all([topic.stop(), memory.stop(), outlines.idle()])
    },
  }
}

const emptyTopic =
  'the catalog has no destinations: `sluice destinations set` makes one, and `sluice catalog import` takes a file'

/** The kinds of `sluice_catalog_topic_trouble` that hold now. */
function troubleKinds(topic: CatalogTopic, compaction: CompactionWatch): readonly string[] {
  const trouble = topic.trouble()
  return [
    ...(trouble === undefined ? [] : [trouble.kind]),
    ...(topic.unreadSinceMs() === undefined ? [] : ['unread']),
    ...(topic.hasUnusable() ? ['unusable'] : []),
    ...(topic.hasOverwritten() ? ['overwritten'] : []),
    ...(compaction.problem === undefined ? [] : ['cleanup_policy']),
  ]
}

/** Whoever signs in or makes a token changes the topic, but not the catalog. */
function changesCatalog({ put, removed }: ChangeSet): boolean {
  return put.some(isEntry) || removed.some(isEntry)
}

function ageOf(writtenMs: number | undefined): number {
  return writtenMs === undefined ? 0 : Math.max(0, Math.round((Date.now() - writtenMs) / 1_000))
}

type OpenOptions = {
  readonly config: Config
  readonly log: CatalogTopicLog
  readonly role: KafkaRole
  readonly known: KnownLog | undefined
  readonly memory: TopicMemory
  readonly allowsUnusable?: boolean
  readonly pace?: Pace
}

/** Reads the topic. If it can't be used, returns the last good copy of this machine. */
export async function readOrCopy({
  config,
  log,
  role,
  known,
  memory,
  allowsUnusable = false,
  pace,
}: OpenOptions): Promise<FollowedTopic> {
  try {
    return await readCatalogTopic({ config, log, role, known, allowsUnusable, pace })
  } catch (error) {
    if (!(error instanceof TopicTroubleError)) throw error
    const copy = await memory.read()
    if (copy === undefined) throw error
    const { place } = copy
    const problem = error.message
    const followed = new FollowedTopic(
      { config, log, role, allowsUnusable, pace, kafka: clientOf(kafkaSettings(config), log) },
      { log: copy.log, topicId: place.topicId },
      { place, problem },
    )
    const { topicId, next, revision, writtenMs } = place
    log.error(
      {
        topicId,
        offset: next,
        version: `r${revision}`,
        writtenAt: new Date(writtenMs).toISOString(),
        problem,
      },
      'the topic of the catalog can not be used: the last good copy on this machine is in force',
    )
    return followed
  }
}

/** A machine may have an outline of the topic and no copy: earlier versions of Sluice wrote only outlines. */
async function knownOf(outlines: CatalogMemory): Promise<KnownLog | undefined> {
  const known = await outlines.known()
  const revision = /^r(\d+)$/.exec(known?.outline.version ?? '')?.[1]
  if (known === undefined || revision === undefined) return undefined
  return { revision: Number(revision), lineage: undefined, ifAnother: known.ifAnother }
}
