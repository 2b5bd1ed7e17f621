import { connect, type Socket } from 'node:net'
import { type ISocketFactory, Kafka, logLevel } from 'kafkajs'
import { afterEach, describe, expect, test } from 'vitest'
import { Coordinator } from '../../../src/kafka/cluster/coordinator.ts'
import { describeGroup, leaveGroup } from '../../../src/kafka/wire/group-messages.ts'
import { createTopic, produce, randomPrefix, testKafka } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { committedOffsets, type Member, startMember } from './member.ts'

/** The API keys of the requests of a join. Source: the Kafka protocol, API keys. */
const apiKeys = { FindCoordinator: 10, JoinGroup: 11, SyncGroup: 14 }

let member: Member | undefined

afterEach(async () => {
  await member?.consumer.stop()
  member = undefined
})

/**
 * The connections of a client. When the client next sends a request with `apiKey`, its connection is cut
 * instead.
 */
class Scissors {
  /** If undefined, no connection is cut. */
  apiKey: number | undefined
  cuts = 0

  readonly connect: ISocketFactory = ({ host, port, onConnect }) => {
    const socket = connect({ host, port }, onConnect)
    const write = socket.write.bind(socket)
    socket.write = (bytes: Uint8Array | string) => {
      if (!Buffer.isBuffer(bytes) || bytes.readInt16BE(4) !== this.apiKey) return write(bytes)
      this.#cut(socket)
      return false
    }
    return socket
  }

  #cut(socket: Socket): void {
    this.apiKey = undefined
    this.cuts++
    socket.destroy(new Error('cut'))
  }
}

function cutKafka({ connect: socketFactory }: Scissors): Kafka {
  return new Kafka({
    brokers: testKafka(),
    clientId: 'sluice',
    logLevel: logLevel.NOTHING,
    socketFactory,
    retry: { initialRetryTime: 200, maxRetryTime: 5_000, retries: 10 },
  })
}

async function expelAll(groupId: string, topic: string): Promise<void> {
  const coordinator = new Coordinator(workerKafka(), groupId, topic)
  const { members } = await coordinator.ask(describeGroup(groupId))
  for (const { memberId } of members)
    await coordinator.ask(leaveGroup(groupId, { memberId, instanceId: undefined }))
  coordinator.close()
}

describe('a member that its group does not know any more', () => {
  test.each(Object.entries(apiKeys))(
    'joins again, also where the connection breaks at its %s',
    async (_name, apiKey) => {
      const prefix = randomPrefix()
      const topic = `${prefix}events`
      await createTopic(topic)
      const scissors = new Scissors()
      const groupId = `${prefix}group`
      member = await startMember({ kafka: cutKafka(scissors), groupId, topics: [{ topic, waitMs: 0 }] })
      const { consumer, received } = member
      scissors.apiKey = apiKey
      await expelAll(groupId, topic)
      await until('its connection is cut', () => scissors.cuts === 1)
      await produce(topic, [{ value: 'after' }])
      // The group accepts commits only from its members.
      const committed = async () => (await committedOffsets(groupId, [topic]))[`${topic}/0`]
      await until('it is committed', async () => (await committed()) === 1)
      expect(consumer.isJoined).toBe(true)
      expect(received.map(({ text }) => text)).toEqual(['after'])
    },
  )
})
