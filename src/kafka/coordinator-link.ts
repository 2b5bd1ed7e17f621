import type { Broker, Kafka, Offsets } from 'kafkajs'
import type { NamedMember } from './former-self.ts'
import type { Membership } from './group-join.ts'
import { openCluster, type OpenCluster } from './open-cluster.ts'
import { within } from './within.ts'

/** As in kafkajs 2.2.4, which declares it in part. */
type Coordinator = Omit<Broker, 'describeGroups'> & {
  leaveGroup(member: { groupId: string; memberId: string }): Promise<unknown>
  describeGroups(of: { groupIds: string[] }): Promise<{ groups: { members: NamedMember[] }[] }>
}

type Opened = OpenCluster & { readonly isReady: Promise<void> }

const timeoutMs = 5_000

/**
 * A connection to a group's coordinator beside the member's own. Nothing gets through that one while the member joins: a broker
 * answers what comes by one connection in its order, and a join perhaps only when the session of a member that was killed is over.
 * Connects when it is first used, and again after an error.
 */
export class CoordinatorLink {
  readonly #kafka: Kafka
  readonly #groupId: string
  readonly #topic: string
  #opened: Opened | undefined

  /** `topic`: any of the group's, so that the brokers needn't tell about all. */
  constructor(kafka: Kafka, groupId: string, topic: string) {
    this.#kafka = kafka
    this.#groupId = groupId
    this.#topic = topic
  }

  /** Throws when the coordinator can't be reached in seconds, or refuses it, as it does when the group has a new generation. */
  async commit({ memberId, generationId }: Membership, { topics }: Offsets): Promise<void> {
    await this.#ask(async (coordinator) => {
      const member = { groupId: this.#groupId, memberId, groupGenerationId: generationId }
      await coordinator.offsetCommit({ ...member, topics })
    })
  }

  /**
   * For this member, or for one that can't any more. Where that one is joining, the group answers its join: it is unknown. Throws
   * when the coordinator can't be reached in seconds, or knows no such member.
   */
  async leave({ memberId }: Pick<Membership, 'memberId'>): Promise<void> {
    await this.#ask(async (coordinator) => {
      await coordinator.leaveGroup({ groupId: this.#groupId, memberId })
    })
  }

  /** Who is in the group, also while it is being joined. Throws when the coordinator can't be reached in seconds. */
  async readMembers(): Promise<readonly NamedMember[]> {
    const { groups } = await this.#ask((coordinator) =>
      coordinator.describeGroups({ groupIds: [this.#groupId] }),
    )
    return groups.flatMap(({ members }) => members)
  }

  close(): void {
    void this.#opened?.close()
    this.#opened = undefined
  }

  async #ask<T>(ask: (coordinator: Coordinator) => Promise<T>): Promise<T> {
    try {
      const answered = this.#answered(ask)
      if (await within(timeoutMs, answered)) return await answered
      throw new Error(`the group's coordinator did not answer within ${timeoutMs} ms`)
    } catch (error) {
      this.close()
      throw error
    }
  }

  async #answered<T>(ask: (coordinator: Coordinator) => Promise<T>): Promise<T> {
    this.#opened ??= this.#open()
    const opened = this.#opened
    try {
      await opened.isReady
      const coordinator = await opened.cluster.findGroupCoordinator({ groupId: this.#groupId })
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares a part of its brokers only
      return await ask(coordinator as Coordinator)
    } finally {
      // It was given up meanwhile, and the client may have connected again since.
      if (this.#opened !== opened) await opened.close()
    }
  }

  #open(): Opened {
    const opened = openCluster(this.#kafka)
    const { cluster } = opened
    return { ...opened, isReady: cluster.connect().then(() => cluster.addTargetTopic(this.#topic)) }
  }
}
