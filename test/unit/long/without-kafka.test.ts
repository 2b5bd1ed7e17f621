import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import { openBackfillMarks } from '../../../src/roles/member/backfill-marks.ts'
import { DeliveryPort } from '../../../src/roles/member/member-ports.ts'
import { openLending } from '../../../src/roles/member/open-lending.ts'
import { readConfig } from '../../../src/config/read.ts'
import type { Config } from '../../../src/config/schema.ts'
import { openRetentions } from '../../../src/roles/member/retentions.ts'
import { Coordinator } from '../../../src/kafka/cluster/coordinator.ts'
import { GroupWatch } from '../../../src/kafka/group/group-watch.ts'
import { Membership } from '../../../src/kafka/group/membership.ts'
import { openGroupLag } from '../../../src/roles/start/lag-gauges.ts'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

/** What a worker says once its client has given up trying to reach a broker, which takes half a minute. */

const kafka = workerKafka({ brokers: ['127.0.0.1:1'] })
const [groupId, topic] = ['sluice', 'events']

function openLog() {
  const told: string[] = []
  const write = (text: string): void => {
    const { msg }: { msg: string } = JSON.parse(text)
    told.push(msg)
  }
  return { told, log: pino({}, { write }) }
}

function configOf(env: Readonly<Record<string, string>> = {}): Config {
  const read = readConfig({ env })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

async function untilTold(told: readonly string[], line: string): Promise<void> {
  await until(line, () => told.includes(line), { timeoutMs: 120_000 })
}

test('the retention of topics is not known', async () => {
  const { told, log } = openLog()
  const retentions = openRetentions({ kafka, topics: ['events'], log })
  await untilTold(told, 'the retention of the topics could not be read, trying again in 10 minutes')
  expect(retentions.current.size).toBe(0)
  await retentions.stop()
})

test('a join that fails is told, and tried again', async () => {
  const { told, log } = openLog()
  const coordinator = new Coordinator(kafka, groupId, topic)
  onTestFinished(() => coordinator.close())
  const membership = new Membership({
    kafka,
    groupId,
    instanceId: undefined,
    leaveOnStop: false,
    sessionTimeoutMs: 6_000,
    topics: [topic],
    partitions: 1,
    coordinator,
    claim: () => ({ units: [], sinceMs: 0, busy: [], busyWithState: [] }),
    onAssigned: () => undefined,
    onExpelled: () => undefined,
    onSilent: () => undefined,
    onFatal(error) {
      throw error
    },
    log,
  })
  membership.start()
  onTestFinished(() => membership.stop())
  await untilTold(told, 'joining the group failed, trying again')
  expect(membership.isMember).toBe(false)
})

test('it is unknown which destinations need a backfill', async () => {
  const { told, log } = openLog()
  const marks = openBackfillMarks({
    kafka,
    topic: 'backfills',
    layout: { partitions: 3, generation: 1 },
    producer: { produceAt: () => Promise.reject(new Error('no broker answers')) },
    log,
    onFatal(error) {
      throw error
    },
  })
  await untilTold(
    told,
    'the topic backfills can not be read: it is unknown which destinations need a backfill',
  )
  expect(marks.behind).toEqual([])
  await marks.stop()
})

test('workers lend each other nothing', async () => {
  const { told, log } = openLog()
  const hooks = '[{ url: https://crm.example/ }]'
  const destinations = `[{ id: crm, sources: [shop], rateLimit: { perSecond: 10 }, hooks: ${hooks} }]`
  const parsed = parseCatalog(`{ sources: [{ id: shop }], destinations: ${destinations} }`, {
    file: 'catalog.yaml',
  })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults))
  const lending = openLending({
    config: configOf(),
    log,
    kafka,
    catalog: () => parsed.catalog,
    deliveries: new DeliveryPort(),
  })
  lending.assigned(0.5, 1)
  await untilTold(told, 'workers lend each other nothing: the topic can not be read')
  expect(lending.differenceOf('crm')).toBe(0)
  await lending.stop()
})

test('members of a group that can not be read are told', async () => {
  const { told, log } = openLog()
  const coordinator = new Coordinator(kafka, groupId, topic)
  onTestFinished(() => coordinator.close())
  const watch = new GroupWatch({
    coordinator,
    groupId,
    topics: [topic],
    ownMemberId: () => 'member',
    isFormerProcess: undefined,
    settleMs: 0,
    log,
  })
  onTestFinished(() => watch.stop())
  watch.joined()
  await untilTold(told, 'the members of the group could not be read, trying again')
  expect(watch.foreign).toEqual([])
})

test('the lag of the group can not be read', async () => {
  const { told, log } = openLog()
  const metrics = createWorkerMetrics({ perDestination: true })
  const lag = openGroupLag({ kafka, config: configOf(), metrics, log })
  onTestFinished(async () => {
    await lag.stop()
  })
  await untilTold(
    told,
    'the lag of the group can not be read for some partitions, trying again: they have no leader, or the user needs DESCRIBE on the group and its topics',
  )
  expect((await metrics.groupLag.get()).values).toEqual([])
})

test('a reading of the lag that is under way at a stop is no trouble', async () => {
  const { told, log } = openLog()
  const metrics = createWorkerMetrics({ perDestination: true })
  const lag = openGroupLag({ kafka, config: configOf(), metrics, log })
  metrics.groupLag.set({ topic: 'events' }, 1)
  await lag.stop()
  const isOver = async (): Promise<boolean> => (await metrics.groupLag.get()).values.length === 0
  await until('the reading has failed', isOver, { timeoutMs: 120_000 })
  expect(told).toEqual([])
})
