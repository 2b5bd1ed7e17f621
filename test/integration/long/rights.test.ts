import { writeFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import { readConfig } from '../../../src/config/read.ts'
import type { Config } from '../../../src/config/schema.ts'
import { type KafkaRole, kafkaRoles } from '../../../src/topics/kafka-roles.ts'
import { type Right, rightsOf } from '../../../src/topics/rights.ts'
import { applyTopics } from '../../../src/topics/topic-apply.ts'
import { openKafka } from '../../../src/roles/start/ask-kafka.ts'
import { topicLayout } from '../../../src/roles/start/settings.ts'
import { openCatalogDesk } from '../../../src/roles/operations/catalog-desk.ts'
import { applyTopicTable } from '../../../src/roles/operations/topic-table.ts'
import { type AuthorizedKafka, startAuthorizedKafka } from '../../support/authorized-kafka.ts'
import { until } from '../../support/until.ts'
import { quietLog } from '../../support/emitted-lines.ts'

/**
 * The Kafka of these tests. They check that the start of a role notices a missing right.
 * `test/fault/rights.test.ts` runs the roles themselves.
 */
let kafka: AuthorizedKafka

const quiet = quietLog
const nameOf = (role: KafkaRole): string => role.replaceAll(/[^a-z]+/g, '-')

beforeAll(async () => {
  kafka = await startAuthorizedKafka(kafkaRoles.map(nameOf))
  const all = configOf({ SLUICE_KAFKA_BROKERS: kafka.direct })
  await applyTopicTable(all, quiet)
  // Creates the topics that a growth would create, because brokers don't report rights on topics that don't
  // exist.
  const next = { ...topicLayout(all), generation: 2 }
  await applyTopics(await openKafka(all, quiet, 'topics apply'), next, {
    mayLeaveOut: false,
    withSettings: true,
  })
  for (const role of kafkaRoles) await kafka.allow(nameOf(role), rights(role))
})

afterAll(() => kafka.stop())

function configOf(login: Record<string, string>): Config {
  const env = {
    ...login,
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_TOPICS_PARTITIONS: '2',
    SLUICE_RETRY_LADDER: '1m',
  }
  const read = readConfig({ env })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

function rights(role: KafkaRole): Right[] {
  const config = configOf({})
  return rightsOf(role, { layout: topicLayout(config), groupId: config.kafka.groupId, withSettings: true })
}

async function start(role: KafkaRole): Promise<string> {
  try {
    await openKafka(configOf(kafka.login(nameOf(role))), quiet, role)
    return 'started'
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  }
}

describe.each(kafkaRoles)('%s', (role) => {
  test('starts with its rights', async () => {
    expect(await until('the rules are in force', async () => (await start(role)) === 'started')).toBe(true)
  })

  test('does not start with any one less, and says which, on what, and for whom', async () => {
    for (const right of rights(role).filter(({ isOptional }) => isOptional !== true)) {
      const { operation, resource, name } = right
      await kafka.withdraw(nameOf(role), right)
      const said = await until(`${operation} on ${name} is missed`, async () => {
        const answer = await start(role)
        return answer === 'started' ? undefined : answer
      })
      expect(said).toMatch(/^StartError: User:/)
      expect(said).toContain(`User:${nameOf(role)} may not do all that \`sluice ${role}\` needs`)
      expect(said).toContain(`  ${operation} on ${resource} ${name}\n`)
      await kafka.allow(nameOf(role), [right])
      await until('it is allowed again', async () => (await start(role)) === 'started')
    }
  })
})

test('a change of the catalog without the right to its transactional id is refused with what is missing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rights-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const keys = join(folder, 'keys')
  writeFileSync(keys, newKeyLine())
  const inTopic = { SLUICE_CATALOG_SOURCE: 'topic', SLUICE_CATALOG_KEYS_FILE: keys }
  await applyTopicTable(configOf({ ...inTopic, SLUICE_KAFKA_BROKERS: kafka.direct }), quiet)
  const config = configOf({ ...inTopic, ...kafka.login('admin') })
  const all = rightsOf('admin', {
    layout: topicLayout(config),
    groupId: config.kafka.groupId,
    withSettings: true,
  })
  const pen = all.find(({ resource }) => resource === 'TransactionalId')
  if (pen === undefined) throw new Error('the admin API needs no right to change the catalog')
  await kafka.allow(
    'admin',
    all.filter((right) => right !== pen),
  )
  // No broker tells at a start what a client may do with a transactional id.
  const desk = await until('the other rights are in force', () =>
    openCatalogDesk(config, quiet, 'admin').catch(() => undefined),
  )
  onTestFinished(() => desk.close())
  const change = () =>
    desk.change({
      edits: [{ name: { kind: 'source', id: 'shop' }, op: 'put', given: { id: 'shop' } }],
      by: 'a',
    })
  await expect(change()).rejects.toThrow(
    /^The change was not made, .* needs WRITE on the transactional id sluice\.catalog,/,
  )
  await kafka.allow('admin', [pen])
  expect(
    await until('it is made once it is allowed', () => change().catch(() => undefined), {
      timeoutMs: 30_000,
    }),
  ).toMatchObject({ ok: true })
})
