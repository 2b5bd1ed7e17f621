import type { Config } from '../../config/schema.ts'
import { type BrokerLook, lookAtBroker } from '../../topics/broker-look.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { type KafkaSettings, principalOf } from '../../kafka/login/kafka-settings.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { type Right, rightsOf } from '../../topics/rights.ts'
import { topicLayout } from './settings.ts'
import { StartError } from './start-error.ts'

/**
 * Throws when a broker is too old or too new, or doesn't give this role the rights that it needs. The error
 * lists all missing rights at once.
 */
export async function refuseUnfitBroker(
  kafka: ReturnType<typeof createKafka>,
  config: Config,
  { role, settings }: { readonly role: KafkaRole; readonly settings: KafkaSettings },
  log: Record<'debug' | 'warn', (fields: object, message: string) => void>,
): Promise<void> {
  const layout = topicLayout(config)
  const withSettings = config.topics.check !== 'off'
  const rights = rightsOf(role, { layout, groupId: config.kafka.groupId, withSettings })
  const topics = [...new Set(rights.filter(({ resource }) => resource === 'Topic').map(({ name }) => name))]
  const group = rights.find(({ resource }) => resource === 'Group')
  const hasInstanceId = group !== undefined && config.kafka.instanceId !== undefined
  const look = await lookAtBroker(kafka, { topics, groupId: group?.name, hasInstanceId })
  if (look.problem !== undefined)
    throw new StartError(`Kafka at ${config.kafka.brokers.join(',')} can not be used: ${look.problem}.`)
  if (look.caution !== undefined) log.warn({}, look.caution)
  const lacking = rights.filter((right) => isMissing(right, look))
  const missing = lacking.filter(({ isOptional }) => isOptional !== true)
  for (const { operation, name } of lacking.filter(({ isOptional }) => isOptional === true))
    log.warn(
      { operation, topic: name },
      'this principal lacks a right on a topic that deliveries do not need: without it the delivery log is not written (attempts), or there are no notices and no pauses (notices)',
    )
  if (missing.length > 0) throw new StartError(describe(missing, role, settings))
  if (look.topics.size === 0) log.debug({}, 'this Kafka does not tell which rights its clients have')
}

/**
 * Returns true if a right is known to be missing. Kafka reveals nothing about the settings of a topic that
 * the principal may not see at all. So rights on these settings, and the right to create the topic, count as
 * missing only if the principal has some other right on the topic.
 */
function isMissing({ resource, name, operation }: Right, look: BrokerLook): boolean {
  // Brokers don't report what a client may do with a transactional id.
  if (resource === 'TransactionalId') return false
  const allowed = resource === 'Group' ? look.group : (look.topics.get(name) ?? 'unreported')
  if (allowed === 'unreported' || allowed.has(operation)) return false
  const isHidden = allowed.size === 0
  return (
    !isHidden || (operation !== 'DESCRIBE_CONFIGS' && operation !== 'ALTER_CONFIGS' && operation !== 'CREATE')
  )
}

function describe(missing: readonly Right[], role: KafkaRole, settings: KafkaSettings): string {
  return [
    `${principalOf(settings)} may not do all that \`sluice ${role}\` needs. At the brokers it lacks:`,
    ...missing.map(({ resource, name, operation }) => `  ${operation} on ${resource} ${name}`),
    'Grant it (docs/acls.md has all that each role needs), or log in as another user.',
  ].join('\n')
}
