import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CloudKafka, startCloudKafka } from '../../support/cloud-kafka.ts'
import { otherProgram } from '../../support/kafka.ts'
import { inheritCommits } from '../../../src/kafka/other-groups/group-state.ts'

const offsetFetch = 9
const loading = 14
/** The number of refusals. kafkajs itself would also try again this many times. */
const refusals = 8

let kafka: CloudKafka

beforeAll(async () => {
  kafka = await startCloudKafka()
})

afterAll(() => kafka.stop())

/**
 * Returns an answer to OffsetFetch in versions 3 and 4, with no throttling, no topics and this error code.
 */
function refusal(code: number): Buffer {
  const body = Buffer.alloc(10)
  body.writeInt16BE(code, 8)
  return body
}

test('a coordinator that still loads its groups is asked again, and keeps no worker from starting', async () => {
  let refused = 0
  kafka.manners = {
    answers: ({ apiKey }) => (apiKey === offsetFetch && refused++ < refusals ? refusal(loading) : undefined),
  }
  const client = otherProgram([kafka.address])
  const admin = client.admin()
  await admin.connect()
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: 'events', numPartitions: 2 }] })
  await admin.disconnect()
  const inherited = await inheritCommits({ kafka: client, from: 'one', to: 'two', topics: ['events'] })
  expect(inherited).toEqual({ kind: 'complete' })
  expect(refused).toBeGreaterThan(refusals)
})
