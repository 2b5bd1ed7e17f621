import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../src/config/read.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { CompactionWatch } from '../../../src/roles/catalog/compaction-watch.ts'
import { noteLine } from '../../support/emitted-lines.ts'
import { createTopic, otherProgram, randomPrefix, testKafka } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'

/** A watch of an installation's topic, and the lines that it writes. */
function watchOf(prefix: string, brokers: readonly string[]) {
  const read = readConfig({
    env: { SLUICE_KAFKA_BROKERS: brokers.join(','), SLUICE_KAFKA_TOPIC_PREFIX: prefix },
  })
  if (!read.ok) throw new Error(read.message)
  const said: string[] = []
  const tell = (_fields: object, message: string): void => {
    said.push(message)
    noteLine(message)
  }
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const watch = new CompactionWatch({ config: read.config, log })
  onTestFinished(() => watch.stop())
  return { watch, said }
}

test('a cleanup policy by which Kafka deletes destinations is told, and that it is mended', async () => {
  const prefix = randomPrefix()
  const topic = `${prefix}catalog`
  await createTopic(topic, { settings: { 'cleanup.policy': 'delete' } })
  const { watch, said } = watchOf(prefix, testKafka())
  expect(await watch.present()).toContain('cleanup.policy=delete')
  await withAdmin(otherProgram(), (admin) =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: 2, name: topic, configEntries: [{ name: 'cleanup.policy', value: 'compact' }] }],
    }),
  )
  await until('it is mended', async () => (await watch.present()) === undefined)
  expect(said).toEqual([
    'Kafka may delete parts of the catalog: the topic needs cleanup.policy=compact (`sluice topics apply`); until then, changes are refused',
    'the topic of the catalog has the cleanup policy compact again',
  ])
})

test('a cleanup policy that Kafka does not tell counts as it was', async () => {
  const { watch, said } = watchOf(randomPrefix(), testKafka())
  expect(await watch.present()).toBeUndefined()
  expect(said.at(-1)).toBe('the cleanup policy of the catalog could not be read')
})
