import { formatFaults, type Fault } from '../../catalog/fault.ts'
import { readQuota } from '../../catalog/labels.ts'
import { Definitions } from '../../catalog-log/definitions.ts'
import {
  CatalogDesk,
  type Change,
  type ChangeAnswer,
  type ChangedObject,
  type Deed,
} from '../../catalog-log/desk.ts'
import type { CatalogLog, StoredObject } from '../../catalog-log/log.ts'
import { isEntry, type ObjectName } from '../../catalog-log/names.ts'
import { catalogReading } from '../../catalog-log/read.ts'
import { RecordSeals } from '../../catalog-log/record.ts'
import type { Config } from '../../config/schema.ts'
import { NotWrittenError, Pen } from '../../kafka/pen/pen.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import { encodeJobRecord } from '../../replay/job.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { lineOf } from '../../catalog-log/difference.ts'
import { HistoryReading } from '../../catalog-log/history-reading.ts'
import { openKafka } from '../start/ask-kafka.ts'
import { CompactionWatch } from '../catalog/compaction-watch.ts'
import { refuseInFile } from '../catalog/in-file.ts'
import type { CatalogTopicLog } from '../catalog/load-topic.ts'
import { catalogKeys } from '../catalog/keys.ts'
import { TopicMemory } from '../catalog/topic-memory.ts'
import { topicNames } from '../start/settings.ts'
import { auditRecord } from './replay-jobs.ts'
import { StartError } from '../start/start-error.ts'

/** Looks at the catalog's topic, and changes it. The methods reject when Kafka doesn't answer. */
export type OpenedDesk = {
  /** Reads the topic to its end. */
  look(): Promise<CatalogLog>
  change(change: Change): Promise<ChangeAnswer>
  /** Returns an object as people see it, without secrets. */
  shown(object: StoredObject, how: { readonly showsUrls: boolean }): Readonly<Record<string, unknown>>
  readonly definitions: Definitions
  /** Signs records, and checks who has signed them. */
  readonly seals: RecordSeals
  readonly history: HistoryReading
  close(): Promise<void>
}

/**
 * Opens the desk. Throws if the catalog is in a file. `obstacle`: returns why the process of the desk doesn't
 * follow the topic. Then it makes no changes, except those that say that the topic is right.
 */
export async function openCatalogDesk(
  config: Config,
  log: CatalogTopicLog,
  role: KafkaRole,
  obstacle: () => string | undefined = () => undefined,
): Promise<OpenedDesk> {
  refuseInFile(config)
  const keys = catalogKeys(config)
  const { catalog: topic, catalogHistory: historyTopic, replayJobs } = topicNames(config)
  const kafka = await openKafka(config, log, role)
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const definitions = new Definitions(topic, keys)
  const seals = new RecordSeals(topic, keys)
  const desk = new CatalogDesk({
    pen: new Pen({ kafka, transactionalId: topic, topic }),
    read: catalogReading(reader, topic),
    seals,
    definitions,
    historyTopic,
    allowAddresses: config.delivery.allowAddresses,
    quotas: config.catalog.quotas.flatMap((text) => readQuota(text) ?? []),
    audited: (change) => ({ topic: replayJobs, partition: 0, records: [auditedRecord(change)] }),
    onRefused: (refused) => log.error({ topic, ...refused }, 'a record of the catalog was refused'),
  })
  const compaction = new CompactionWatch({ config, log })
  return {
    look: () => desk.look(),
    async change(change) {
      const problem = change.accepts === true ? undefined : obstacle()
      // What is accepted has to be later than what this machine has seen.
      const seen = change.accepts === true ? await new TopicMemory(config, log).place() : undefined
      const after = Math.max(change.after ?? 0, seen?.revision ?? 0)
      const halt = change.isDryRun === true ? problem : (problem ?? (await compaction.present()))
      if (halt !== undefined) return { ok: false, kind: 'halted', problem: halt }
      return desk.change({ ...change, after }).catch((error: unknown) => {
        if (!(error instanceof NotWrittenError)) throw error
        if (error.lacksTopic) throw new StartError(lacksTopic(config))
        throw error.lacksRight ? new StartError(lacksRight(config)) : error
      })
    },
    shown: (object, how) => definitions.shown(object, object.definition, how),
    definitions,
    seals,
    history: new HistoryReading(reader, {
      topic: historyTopic,
      seals,
      onRefused: (refused) =>
        log.error({ topic: historyTopic, ...refused }, 'a record of the history of the catalog was refused'),
    }),
    async close() {
      await Promise.all([desk.close(), reader.stop()])
    },
  }
}

function lacksTopic(config: Config): string {
  const { catalog, catalogHistory, replayJobs } = topicNames(config)
  return `The change was not made, because ${catalog}, ${catalogHistory} or ${replayJobs} does not exist: \`sluice topics apply\` creates what is missing.`
}

function lacksRight(config: Config): string {
  const { catalog, catalogHistory, replayJobs } = topicNames(config)
  return `The change was not made, because Kafka does not allow it to this program: it needs WRITE on the transactional id ${catalog}, and on the topics ${catalog}, ${catalogHistory} and ${replayJobs} (docs/acls.md).`
}

function auditedRecord({
  by,
  note,
  deed = 'tokens_changed',
  changed,
}: {
  readonly by: string
  readonly note: string | undefined
  readonly deed: Deed | 'tokens_changed' | undefined
  readonly changed: readonly ChangedObject[]
}): ReturnType<typeof encodeJobRecord> {
  // The note of a token names it, with its right and scope.
  const isOfTokens = changed.length > 0 && !changed.some(({ name }) => isEntry(name))
  if (isOfTokens && note !== undefined)
    return encodeJobRecord(auditRecord({ action: deed, by, detail: note }))
  const { detail, ...about } = auditedOf(changed)
  const told = note === undefined ? detail : `${note}: ${detail}`
  return encodeJobRecord(auditRecord({ action: 'catalog_changed', by, ...about, detail: told }))
}

/** The most objects that an entry of the audit trail names. */
const mostAudited = 20

function auditedOf(changed: readonly ChangedObject[]): { detail: string; destination?: string } {
  const lines = changeLines(changed)
  const left = lines.length - mostAudited
  const detail = [...lines.slice(0, mostAudited), ...(left > 0 ? [`and ${left} more`] : [])].join(', ')
  const [only] = changed
  const destination = changed.length === 1 && only?.name.kind === 'destination' ? only.name.id : undefined
  return { detail, ...(destination !== undefined && { destination }) }
}

/** Describes what a change has made, in lines such as `+ destination/crm`. Leaves out what is unchanged. */
export function changeLines(changed: readonly ChangedObject[]): string[] {
  return changed.flatMap(({ name, what }) => (what === 'unchanged' ? [] : [lineOf({ name, what })]))
}

/** Returns why a change was refused, and what to do. */
export function refusalText(answer: Extract<ChangeAnswer, { ok: false }>): string {
  switch (answer.kind) {
    case 'outdated':
      return outdatedText(answer.name, answer.present)
    case 'missing':
      return `There is no ${describe(answer.name)}.`
    case 'faulty':
      return faultText(answer.faults)
    case 'asked':
      return `Change ${answer.asked.revision} was made for this request already.`
    case 'busy':
      return 'Other processes change the catalog all the time: try again.'
    case 'full':
      return 'Too many changes of the catalog wait here: nothing was changed. Try again in a few seconds.'
    case 'ended':
      return 'The token has ended meanwhile: nothing was changed.'
    case 'halted':
      return `Nothing was changed: ${answer.problem}. Changes are refused until this is mended (docs/catalog-topic.md).`
    case 'damaged':
      return `The topic of the catalog can not be changed: ${answer.problem}. Either this process lacks a key (catalog.keysFile), or somebody without a key has written to the topic, or deleted records. In the latter case, \`sluice catalog restore FILE\` or \`sluice catalog import FILE --repair\` writes the whole catalog again.`
  }
}

/** Says why a change with faults was not made. */
export function faultText(faults: readonly Fault[]): string {
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  return `The change has ${count}, so nothing was changed:\n${formatFaults(faults)}`
}

function outdatedText(name: ObjectName, present: StoredObject | undefined): string {
  if (present === undefined) return `The ${describe(name)} does not exist any more: look at it again.`
  return `The ${describe(name)} exists in version ${present.version}, and not as you have seen it: look at it again.`
}

function describe({ kind, id }: ObjectName): string {
  return `${kind} ${JSON.stringify(id)}`
}
