import { GroupMember } from './group-member.ts'
import type { ConsumerOptions, GroupConsumer } from './consumer-ports.ts'

export type { ConsumerOptions, GroupConsumer } from './consumer-ports.ts'
export type { EarlyPartition } from '../partitions/early-partition.ts'
export type { PulledPartition } from '../partitions/pulled-partition.ts'

/**
 * Starts one member of the consumer group. Resolves once the brokers have reported the topics. By then the
 * group may not have accepted the member yet: see `isJoined`.
 */
export async function startConsumer(options: ConsumerOptions): Promise<GroupConsumer> {
  const member = new GroupMember(options)
  await member.start()
  return member
}
