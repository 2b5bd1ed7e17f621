import { expect, onTestFinished, test } from 'vitest'
import { startKafka } from '../../src/development/kafka.ts'
import { askMetadata } from '../../src/development/metadata.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { otherProgram } from '../support/kafka.ts'
import { until } from '../support/until.ts'

test('three brokers keep three copies, and serve with one of them dead and back', async () => {
  const kafka = await startKafka({ ways: ['java'], count: 3 })
  onTestFinished(() => kafka.stop())
  const { brokers, nodes = [] } = kafka
  const client = otherProgram(brokers)
  await withAdmin(client, (admin) =>
    admin.createTopics({ topics: [{ topic: 'copied' }], waitForLeaders: true }),
  )
  const { topics } = await withAdmin(client, (admin) => admin.fetchTopicMetadata({ topics: ['copied'] }))
  expect(topics[0]?.partitions[0]?.replicas).toHaveLength(3)

  const [first, second] = nodes
  await first?.kill('SIGKILL')
  expect(first?.pid).toBeUndefined()
  await until('the second broker lists two', async () => {
    const { brokers: present } = await askMetadata(`127.0.0.1:${second?.port}`, 1_000)
    return present.length === 2
  })
  await first?.start()
  expect((await askMetadata(brokers[0] ?? '', 1_000)).brokers).toHaveLength(3)
})
