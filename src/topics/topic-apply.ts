import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { type TopicChange, untilEveryBrokerReports } from './every-broker.ts'
import { isProtocolError } from '../kafka/wire/errors.ts'
import { reportOn, type TopicReport } from './topic-check.ts'
import { readSettings, satisfies, type TopicSetting } from './topic-settings.ts'
import { type TopicDefinition, type TopicLayout, topicTable } from './topics.ts'
import { withAdmin } from '../kafka/cluster/with-admin.ts'

/** A change that a cluster refused, in words. */
export type Refusal = { readonly topic: string; readonly problem: string }

export type Applied = {
  readonly created: readonly string[]
  readonly corrected: readonly string[]
  /** The settings and topics that the cluster refuses, and the settings that could not be corrected. */
  readonly refused: readonly Refusal[]
  readonly report: TopicReport
}

export type ApplyOptions = {
  /**
   * True if a topic is created without the settings that the cluster refuses. False if a topic with refused
   * settings isn't created at all.
   */
  readonly mayLeaveOut: boolean
  readonly withSettings: boolean
}

/**
 * Creates missing topics and corrects settings. Returns what was changed, what the cluster has refused, and
 * the faults that remain.
 */
export function applyTopics(kafka: Kafka, layout: TopicLayout, options: ApplyOptions): Promise<Applied> {
  return withAdmin(kafka, async (admin) => {
    const table = topicTable(layout)
    const existing = new Set(await admin.listTopics())
    const { created, refused } = await createTopics(
      admin,
      table.filter(({ topic }) => !existing.has(topic)),
      options.mayLeaveOut,
    )
    const present = table.filter(({ topic }) => existing.has(topic))
    const { corrected, uncorrected } = await correctAll(admin, options.withSettings ? present : [])
    await untilEveryBrokerReports(kafka, [...created.map(asNew), ...corrected])
    return {
      created: created.map(({ topic }) => topic),
      corrected: corrected.map(({ topic }) => topic),
      refused: [...refused, ...uncorrected],
      report: await reportOn(admin, table, options),
    }
  })
}

async function createTopics(
  admin: Admin,
  missing: readonly TopicDefinition[],
  mayLeaveOut: boolean,
): Promise<{ created: TopicDefinition[]; refused: Refusal[] }> {
  const created: TopicDefinition[] = []
  const refused: Refusal[] = []
  for (const definition of missing) {
    const { topic, settings } = definition
    const problem = await tryToCreate(admin, definition, settings)
    if (problem === undefined) {
      created.push(definition)
      continue
    }
    const unwanted = await refusedSettings(admin, definition)
    for (const { name, value } of unwanted) refused.push({ topic, problem: `${name}=${value} is refused` })
    const left = settings.filter((setting) => !unwanted.includes(setting))
    const isCreated =
      mayLeaveOut && unwanted.length > 0 && (await tryToCreate(admin, definition, left)) === undefined
    if (isCreated) created.push(definition)
    else if (unwanted.length === 0) refused.push({ topic, problem: `can not be created: ${problem}` })
  }
  return { created, refused }
}

/**
 * Returns the settings with which the cluster would not create the topic. Asks the cluster about each setting
 * alone, without creating the topic.
 */
async function refusedSettings(admin: Admin, definition: TopicDefinition): Promise<TopicSetting[]> {
  if ((await tryToCreate(admin, definition, [], true)) !== undefined) return []
  const refused: TopicSetting[] = []
  for (const setting of definition.settings) {
    if ((await tryToCreate(admin, definition, [setting], true)) !== undefined) refused.push(setting)
  }
  return refused
}

/**
 * Creates a topic. Returns `undefined` if the cluster has created it, or the reason why the cluster refuses.
 * Throws if the cluster could not be asked.
 */
export async function tryToCreate(
  admin: Admin,
  { topic, partitions, replication }: TopicDefinition,
  settings: readonly TopicSetting[],
  validateOnly = false,
): Promise<string | undefined> {
  try {
    await admin.createTopics({
      validateOnly,
      // kafkajs' own wait for leaders would fail if a broker doesn't know the topic yet.
      waitForLeaders: false,
      timeout: 30_000,
      topics: [
        {
          topic,
          numPartitions: partitions,
          replicationFactor: replication,
          configEntries: settings.map(({ name, value }) => ({ name, value })),
        },
      ],
    })
    return undefined
  } catch (error) {
    if (!(error instanceof kafkajs.KafkaJSAggregateError)) throw error
    return error.errors.map((one) => (typeof one === 'string' ? one : one.message)).join('; ')
  }
}

/** Returns a new topic as a `TopicChange`: all its partitions are new. */
export function asNew({ topic, partitions }: Pick<TopicDefinition, 'topic' | 'partitions'>): TopicChange {
  return { topic, newPartitions: { first: 0, count: partitions } }
}

/**
 * Corrects the settings that differ from the table of topics. Returns the topics that were corrected, and the
 * topics whose settings the cluster doesn't let change.
 */
export async function correctAll(
  admin: Admin,
  definitions: readonly TopicDefinition[],
): Promise<{ corrected: TopicDefinition[]; uncorrected: Refusal[] }> {
  const corrected: TopicDefinition[] = []
  const uncorrected: Refusal[] = []
  const replicas = await fewestReplicas(admin, definitions)
  for (const definition of definitions) {
    const { topic } = definition
    const { settings, problem } = writable(definition, replicas.get(topic))
    if (problem !== undefined) uncorrected.push({ topic, problem })
    const outcome = await correctSettings(admin, { topic, settings })
    if (outcome === 'corrected') corrected.push(definition)
    else if (outcome !== 'right') uncorrected.push({ topic, ...outcome })
  }
  return { corrected, uncorrected }
}

async function fewestReplicas(
  admin: Admin,
  definitions: readonly TopicDefinition[],
): Promise<ReadonlyMap<string, number>> {
  if (definitions.length === 0) return new Map()
  const { topics } = await admin.fetchTopicMetadata({ topics: definitions.map(({ topic }) => topic) })
  return new Map(
    topics.map(({ name, partitions }) => [
      name,
      Math.min(...partitions.map(({ replicas }) => replicas.length)),
    ]),
  )
}

/**
 * Leaves out `min.insync.replicas` if the topic has fewer replicas than that. With it, brokers before Kafka
 * 4.1 would take no more records for the topic.
 */
function writable(
  { settings }: TopicDefinition,
  replicas = Infinity,
): { settings: readonly TopicSetting[]; problem?: string } {
  const isWritable = ({ name, value }: TopicSetting): boolean =>
    name !== 'min.insync.replicas' || Number(value) <= replicas
  if (settings.every(isWritable)) return { settings }
  return {
    settings: settings.filter(isWritable),
    problem: `keeps its min.insync.replicas, because it has ${replicas} replicas and would take no records`,
  }
}

/** Corrects the settings that differ from the table of topics. Other settings stay as they are. */
async function correctSettings(
  admin: Admin,
  { topic, settings }: Pick<TopicDefinition, 'topic' | 'settings'>,
): Promise<'right' | 'corrected' | { readonly problem: string }> {
  const actual = await readSettings(admin, topic)
  if (typeof actual === 'string') return { problem: `does not tell its settings (${actual})` }
  const wrong = settings.filter((setting) => !satisfies(setting, actual.get(setting.name)?.value))
  if (wrong.length === 0) return 'right'
  // The call replaces all of a topic's own settings, so the settings that somebody else made are sent along.
  const own = [...actual].flatMap(([name, { value, isDefault }]) =>
    isDefault ? [] : [[name, value] as const],
  )
  const wanted = new Map([...own, ...wrong.map(({ name, value }) => [name, value] as const)])
  try {
    await admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: kafkajs.ConfigResourceTypes.TOPIC,
          name: topic,
          configEntries: [...wanted].map(([name, value]) => ({ name, value })),
        },
      ],
    })
    return 'corrected'
  } catch (error) {
    if (!isProtocolError(error, refusals)) throw error
    const names = wrong.map(({ name }) => name).join(', ')
    const reason = error instanceof Error ? error.message : String(error)
    return { problem: `can not be corrected in ${names} (${reason})` }
  }
}

const refusals: ReadonlySet<string> = new Set([
  'INVALID_CONFIG',
  'INVALID_REQUEST',
  'POLICY_VIOLATION',
  'TOPIC_AUTHORIZATION_FAILED',
  'UNSUPPORTED_VERSION',
])
