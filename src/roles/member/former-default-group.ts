import type { Logger } from 'pino'
import { groupIdFor, plainGroupId } from '../../config/kafka-keys.ts'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { askKafka } from '../start/ask-kafka.ts'
import { StartError } from '../start/start-error.ts'
import { inheritCommits } from '../../kafka/other-groups/group-state.ts'

/**
 * Takes over the commits of the group `sluice`, which used to be the default group for every topic prefix.
 * Does this only if the configured group has the id that is now the default for its prefix. Throws while a
 * member of the group `sluice` still reads these topics, because every message would then be delivered twice.
 */
export async function continueFromFormerDefault(
  kafka: ReturnType<typeof createKafka>,
  { config, topics, log }: { config: Config; topics: readonly string[]; log: Logger },
): Promise<void> {
  const { groupId, topicPrefix } = config.kafka
  if (groupId === plainGroupId || groupId !== groupIdFor(topicPrefix)) return
  const from = plainGroupId
  const inherited = await askKafka(config, inheritCommits({ kafka, from, to: groupId, topics }))
  switch (inherited.kind) {
    case 'complete':
      return
    case 'taken':
      log.info(
        { groupId, from, partitions: inherited.partitions },
        `took over the commits of the consumer group ${from}, which was the default for every topic prefix before`,
      )
      return
    case 'forbidden':
      log.warn(
        { groupId, from },
        `the commits of the consumer group ${from} can not be read: if this installation used that group before, give its user DESCRIBE on the group until it has started once. Otherwise it delivers messages again`,
      )
      return
    case 'inUse':
      throw new StartError(
        [
          `Workers still read these topics in the consumer group ${from}, which was the default for every topic prefix before: ${inherited.members.join(', ')}.`,
          `Stop them, and start this one when they have left: it goes on in the group ${groupId} where they stopped.`,
          `Or set SLUICE_KAFKA_GROUP_ID=${from} to stay in that group, where no other installation of this cluster is in it.`,
        ].join('\n'),
      )
  }
}
