import { expect, test } from 'vitest'
import { ByteWriter } from '../../../../src/kafka/wire/bytes.ts'
import { errorCodes } from '../../../../src/kafka/wire/error-codes.ts'
import { GroupLagReader } from '../../../../src/kafka/other-groups/group-lag.ts'
import { apis, brokerOf, kafkaOf, nothing } from '../scripted-kafka.ts'

/** Returns the answer of a coordinator that refuses to tell any commit of the group. */
function refusal(apiKey: number): Buffer {
  const out = new ByteWriter().int32(0)
  if (apiKey === apis.findCoordinator) out.int16(0).string('').int32(1).string('broker').int32(9092)
  else out.int32(0).int16(errorCodes.GROUP_AUTHORIZATION_FAILED)
  return out.finished()
}

test('a lag whose commits the group does not tell is an error, and not a group without lag', async () => {
  const broker = brokerOf(async (apiKey) => refusal(apiKey))
  const topicMetadata = [{ topic: 'events', partitionMetadata: [{ partitionId: 0, leader: 1 }] }]
  const cluster = {
    brokerPool: { metadata: { topicMetadata }, findConnectedBroker: async () => broker },
    addTargetTopic: nothing,
    addMultipleTargetTopics: nothing,
    refreshMetadataIfNecessary: nothing,
    findBroker: async () => broker,
  }
  const reader = new GroupLagReader(kafkaOf([cluster, cluster]), 'sluice', 'events')
  await expect(reader.read(['events'])).rejects.toMatchObject({ type: 'GROUP_AUTHORIZATION_FAILED' })
  await reader.close()
})
