import { expect, test } from 'vitest'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { correctAll } from '../../../src/topics/topic-apply.ts'
import { readSettings } from '../../../src/topics/topic-settings.ts'
import { topicTable } from '../../../src/topics/topics.ts'
import { createTopic, otherProgram, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'

test('a topic with one replica is corrected, but never asked for two in-sync replicas', async () => {
  const prefix = randomPrefix()
  const topic = `${prefix}events`
  await createTopic(topic)
  const layout = { prefix, generation: 1, partitions: 1, replication: 3, minInsync: 2 }
  const limits = { retryLimitMs: 1, tiers: [], maxMessageBytes: 1_000, attemptsKeptMs: 1 }
  const events = topicTable({ ...layout, ...limits }).filter((definition) => definition.topic === topic)
  await withAdmin(otherProgram(), async (admin) => {
    const { corrected, uncorrected } = await correctAll(admin, events)
    expect(corrected).toEqual(events)
    const problem = 'keeps its min.insync.replicas, because it has 1 replicas and would take no records'
    expect(uncorrected).toEqual([{ topic, problem }])
    const valueOf = async (name: string): Promise<string | undefined> => {
      const told = await readSettings(admin, topic)
      return typeof told === 'string' ? undefined : told.get(name)?.value
    }
    await until(
      'the broker tells the corrected settings',
      async () => (await valueOf('message.timestamp.type')) === 'LogAppendTime',
    )
    expect(await valueOf('min.insync.replicas')).toBe('1')
  })
})
