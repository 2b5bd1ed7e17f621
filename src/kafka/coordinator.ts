import type { Broker, Kafka, Offsets } from 'kafkajs'
import { openCluster } from './open-cluster.ts'

/** A member of a group, as the group's coordinator knows it. */
export type Membership = {
  readonly groupId: string
  readonly memberId: string
  readonly generationId: number
}

/** `leaveGroup` is there in kafkajs 2.2.4, and not declared. */
type Coordinator = Broker & { leaveGroup(member: { groupId: string; memberId: string }): Promise<unknown> }

/*
 * For a member that joins its group again, which may take as long as the session of a member that was killed: a broker answers what
 * comes by one connection in its order, so that by the member's own nothing is taken before the join is answered. By another one,
 * the member is what it was until then.
 */

/** Throws when the coordinator can't be reached, or refuses it, as it does as soon as the group has a new generation. */
export async function commitBesideJoin(
  kafka: Kafka,
  { groupId, memberId, generationId }: Membership,
  { topics }: Offsets,
): Promise<void> {
  await askCoordinator(kafka, groupId, async (coordinator) => {
    await coordinator.offsetCommit({ groupId, memberId, groupGenerationId: generationId, topics })
  })
}

/** The join is answered then: the member is unknown. Throws when the coordinator can't be reached, or knows no such member. */
export async function leaveBesideJoin(kafka: Kafka, { groupId, memberId }: Membership): Promise<void> {
  await askCoordinator(kafka, groupId, async (coordinator) => {
    await coordinator.leaveGroup({ groupId, memberId })
  })
}

async function askCoordinator(
  kafka: Kafka,
  groupId: string,
  ask: (coordinator: Coordinator) => Promise<void>,
): Promise<void> {
  const opened = openCluster(kafka)
  try {
    await opened.cluster.connect()
    const coordinator = await opened.cluster.findGroupCoordinator({ groupId })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares a part of its brokers only
    await ask(coordinator as Coordinator)
  } finally {
    await opened.close()
  }
}
