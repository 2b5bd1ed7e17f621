import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { isProtocolError } from '../kafka/wire/errors.ts'
import { withAdmin } from '../kafka/cluster/with-admin.ts'

/**
 * Returns how long each topic keeps a record, in milliseconds, according to the present settings. Leaves out
 * topics that never delete a record because of its age, and topics whose settings can't be read.
 */
export async function readRetentions(
  kafka: Kafka,
  topics: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  return withAdmin(kafka, async (admin) => {
    const retentions = new Map<string, number>()
    for (const topic of topics) {
      const ms = await retentionOf(admin, topic)
      if (ms !== undefined) retentions.set(topic, ms)
    }
    return retentions
  })
}

async function retentionOf(admin: Admin, topic: string): Promise<number | undefined> {
  const values = await readValues(admin, topic)
  const ms = Number(values.get('retention.ms') ?? -1)
  return ms >= 0 && values.get('cleanup.policy')?.includes('delete') === true ? ms : undefined
}

/**
 * Reads the settings of one topic. A request for several topics would be refused as a whole if one of the
 * topics doesn't exist any more, or may not be read.
 */
async function readValues(admin: Admin, topic: string): Promise<ReadonlyMap<string, string>> {
  const configNames = ['cleanup.policy', 'retention.ms']
  try {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames }],
    })
    const entries = resources[0]?.configEntries ?? []
    return new Map(entries.map(({ configName, configValue }) => [configName, configValue]))
  } catch (error) {
    if (isProtocolError(error, unreported)) return new Map()
    throw error
  }
}

const unreported: ReadonlySet<string> = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'TOPIC_AUTHORIZATION_FAILED'])
