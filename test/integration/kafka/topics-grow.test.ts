import { expect, test } from 'vitest'
import { parseSubject } from '../../../src/audience/state-record.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { setScene } from '../../e2e/scene.ts'
import { createTopic, otherProgram, produce, readAll } from '../../support/kafka.ts'
import { Random } from '../../support/random.ts'
import { fill, partitionsOf, type Standing, standingOf, tiers } from '../../support/stopped-installation.ts'
import { type Ended, runSluice, runToEnd } from '../../support/worker-process.ts'

const catalog = { sources: [{ id: 'space', kind: 'audiences' }], destinations: [] }
const ladder = { SLUICE_RETRY_LADDER: '1s,2s', SLUICE_RETRY_THEN: '2s' }

async function install(partitions: number) {
  const scene = await setScene({
    catalog,
    variables: { ...ladder, SLUICE_TOPICS_PARTITIONS: String(partitions) },
  })
  const { prefix, variables } = scene
  const groupId = variables['SLUICE_KAFKA_GROUP_ID'] ?? ''
  const grow = (...args: string[]): Promise<Ended> => runToEnd(['topics', 'grow', ...args], variables)
  return { prefix, groupId, partitions, variables, grow }
}

const grownTo = (partitions: number, generation = 2) => ({
  SLUICE_TOPICS_PARTITIONS: String(partitions),
  SLUICE_TOPICS_GENERATION: String(generation),
})

/** Kills a growth to 7 partitions once it has begun. */
async function growUntilBegun({ prefix, variables }: Awaited<ReturnType<typeof install>>): Promise<void> {
  for (let killAfterMs = 1_000; ; killAfterMs += 200) {
    const { code } = await runToEnd(['topics', 'grow', '7'], variables, { killAfterMs })
    expect(code).toBe(null)
    if ((await readAll(`${prefix}backfills`)).length > 0) return
  }
}

const identityOf = ({ key, value, timestamp, isSettled }: Standing): string =>
  JSON.stringify([key, String(value), timestamp, isSettled])

const kindOf = ({ key }: Standing) => parseSubject(Buffer.from(key ?? ''))?.kind

const properties = (all: readonly Standing[]) => all.filter((record) => kindOf(record) === 'property')

/** Each of a log's records once, as it was. */
async function expectCopied(prefix: string, groupId: string, from: number, to: number): Promise<void> {
  const before = await standingOf(`${prefix}memberships`, groupId)
  const after = await standingOf(`${prefix}g2.memberships`, groupId)
  expect(properties(after).map(identityOf).sort()).toEqual(properties(before).map(identityOf).sort())
  for (const { key, partition } of properties(after))
    expect(partition).toBe(partitionOf(String(JSON.parse(String(key))[0]), to))
  // The newer state of each user is behind the older one.
  const values = Map.groupBy(properties(after), ({ key }) => key)
  for (const states of values.values())
    expect(states.map(({ value }) => JSON.parse(String(value)).value)).toEqual([1, 2])
  for (const kind of ['deletion', 'sync']) {
    const keys = new Set(before.filter((record) => kindOf(record) === kind).map(({ key }) => key))
    const ofUnits = after
      .filter((record) => kindOf(record) === kind)
      .map(({ key, partition }) => `${partition} ${key}`)
    expect(ofUnits.toSorted()).toEqual(
      [...keys].flatMap((key) => Array.from({ length: to }, (_, unit) => `${unit} ${key}`)).toSorted(),
    )
  }
  for (const name of [...tiers, 'replays']) {
    const waiting = (await standingOf(prefix + name, groupId)).filter(({ isSettled }) => !isSettled)
    const copied = await standingOf(`${prefix}g2.${name}`, groupId)
    expect(waiting.length).toBeGreaterThan(from)
    expect(copied.map(identityOf).sort()).toEqual(waiting.map(identityOf).sort())
    for (const ofUnit of Map.groupBy(copied, ({ partition }) => partition).values())
      expect(ofUnit.map(({ timestamp }) => timestamp)).toEqual(
        ofUnit.map(({ timestamp }) => timestamp).toSorted((a, b) => a - b),
      )
    for (const { partition, headers } of copied)
      if (headers['property'] !== undefined)
        expect(partition).toBe(partitionOf(String(JSON.parse(headers['property'])[0]), to))
  }
}

test('an installation without a record grows in one run: each topic has the new partitions, and a start with the old settings says which to set', async () => {
  const { prefix, variables, grow } = await install(3)
  const grown = await grow('7')
  expect(grown).toMatchObject({ code: 0 })
  expect(grown.stdout).toContain('set SLUICE_TOPICS_PARTITIONS=7 and SLUICE_TOPICS_GENERATION=2')
  for (const name of [
    'events',
    'audience-changes',
    'deletions',
    'dead-letters',
    'g2.memberships',
    'g2.retry.1s',
  ])
    expect(await partitionsOf(prefix + name)).toBe(7)
  for (const command of [['worker'], ['topics', 'apply'], ['topics', 'check']]) {
    const stale = await runToEnd(command, variables)
    expect(stale.code).toBe(1)
    expect(stale.stderr).toContain(
      'set SLUICE_TOPICS_PARTITIONS=7 and SLUICE_TOPICS_GENERATION=2 (they are 3 and 1)',
    )
  }
  const checked = await runSluice(['topics', 'check'], { ...variables, ...grownTo(7) })
  expect(checked.stdout).toContain('All topics are as Sluice needs them.')
  const again = await grow('7')
  expect(again).toMatchObject({ code: 0, stdout: grown.stdout.replace(/^(?!grown|next|then).*\n/gm, '') })

  const cleaned = await runSluice(['topics', 'grow', '--clean'], { ...variables, ...grownTo(7) })
  expect(cleaned.stdout).toContain(`removed    ${prefix}memberships`)
  await runSluice(['topics', 'check'], { ...variables, ...grownTo(7) })
})

test(
  'all that is known and all that waits is in its new unit, once, in its order, with its time, and settled where it was',
  { timeout: 240_000 },
  async () => {
    const installation = await install(3)
    const { prefix, groupId, grow } = installation
    await fill(installation, { users: 400, waiting: 300, random: new Random(1) })
    const grown = await grow('7')
    expect(grown.stderr + grown.stdout).toContain('grown      from 3 to 7 partitions')
    await expectCopied(prefix, groupId, 3, 7)
  },
)

test(
  'killed at any moment, it goes on where it was: nothing is copied twice, nothing is left out',
  { timeout: 240_000 },
  async () => {
    const installation = await install(3)
    const { prefix, groupId, variables } = installation
    const random = new Random(2)
    await fill(installation, { users: 4_000, waiting: 1_500, random })
    let kills = 0
    for (let killAfterMs = 600; ; killAfterMs += 150 + random.below(250)) {
      const { code, stderr } = await runToEnd(['topics', 'grow', '7'], variables, { killAfterMs })
      if (code === 0) break
      expect(stderr).not.toContain('sluice:')
      expect(code).toBe(null)
      kills++
    }
    expect(kills).toBeGreaterThanOrEqual(3)
    await expectCopied(prefix, groupId, 3, 7)
  },
)

test('a dry run tells what would be done, and writes nothing', async () => {
  const installation = await install(3)
  const { prefix, grow } = installation
  await fill(installation, { users: 100, waiting: 100, random: new Random(3) })
  const { code, stdout } = await grow('7', '--dry-run')
  expect(code).toBe(0)
  expect(stdout).toContain(`copy       ${prefix}memberships to ${prefix}g2.memberships: `)
  expect(stdout).toContain('users      about 100 with a state')
  expect(stdout).toMatch(/^copy .*retry\.1s to .*, \d+ of them wait for their delivery$/m)
  expect(stdout).toContain(`partitions ${prefix}events: 7, in place`)
  expect(stdout).toContain(`right      READ, WRITE, CREATE, ALTER_CONFIGS on Topic ${prefix}g2.memberships`)
  expect(stdout).toMatch(/^disk .*$/m)
  expect(stdout).toMatch(/^time .*$/m)
  expect(stdout).toContain('no sync of an audience')
  expect(await readAll(`${prefix}backfills`)).toEqual([])
  expect(await partitionsOf(`${prefix}events`)).toBe(3)
})

test(
  'a growth that has begun can be abandoned: all is as it was, and the next one makes other topics',
  { timeout: 240_000 },
  async () => {
    const installation = await install(3)
    const { prefix, groupId, variables, grow } = installation
    await fill(installation, { users: 4_000, waiting: 1_000, random: new Random(4) })
    const before = await standingOf(`${prefix}retry.1s`, groupId)
    await growUntilBegun(installation)
    const blocked = await runToEnd(['worker'], variables)
    expect(blocked.code).toBe(1)
    expect(blocked.stderr).toContain('`sluice topics grow 7`')
    expect((await grow('9')).stderr).toContain('A growth to 7 partitions is under way')
    const abandoned = await grow('--abandon')
    expect(abandoned).toMatchObject({ code: 0 })
    await runSluice(['topics', 'check'], variables)
    expect(await standingOf(`${prefix}retry.1s`, groupId)).toEqual(before)
    const grown = await grow('5')
    expect(grown.stdout).toContain('SLUICE_TOPICS_PARTITIONS=5 and SLUICE_TOPICS_GENERATION=3')
  },
)

test.each([
  ['2', 'they can only become more'],
  ['3', 'they can only become more'],
  ['many', 'has to be a whole number'],
  ['5000', 'has to be a whole number'],
])('a growth from 3 partitions to %s is refused', async (partitions, reason) => {
  const { grow } = await install(3)
  const { code, stderr } = await grow(partitions)
  expect(code).toBe(1)
  expect(stderr).toContain(reason)
})

test('topics of the next generation that nobody knows of are not touched', async () => {
  const { prefix, grow } = await install(3)
  await createTopic(`${prefix}g2.memberships`, { partitions: 2 })
  const { code, stderr } = await grow('7')
  expect(code).toBe(1)
  expect(stderr).toContain(`${prefix}g2.memberships`)
  expect(await partitionsOf(`${prefix}events`)).toBe(3)
})

test('parts of a sync that are not applied hold it up, and so does a sync that some units have not had', async () => {
  const first = await install(3)
  const part = {
    type: 'sync',
    audienceId: 'a',
    audienceName: 'A',
    syncId: 's',
    snapshotAt: new Date().toISOString(),
  }
  await produce(`${first.prefix}audience-changes`, [
    { partition: 1, key: null, value: JSON.stringify({ ...part, part: 1, parts: 2, userIds: [] }) },
  ])
  const open = await first.grow('7')
  expect(open.code).toBe(1)
  expect(open.stderr).toContain(`${first.prefix}audience-changes/1 has 1 parts of syncs that are not applied`)

  const second = await install(3)
  await fill(second, { users: 10, waiting: 10, random: new Random(5), withoutSync: [2] })
  const uneven = await second.grow('7')
  expect(uneven.code).toBe(1)
  expect(uneven.stderr).toContain(
    'the last sync of audience vips of space was not applied in 1 of 3 units (2)',
  )
})

test('what the brokers would not do is told before anything is written', async () => {
  const { prefix, variables } = await install(3)
  const { code, stderr } = await runToEnd(['topics', 'grow', '7'], {
    ...variables,
    SLUICE_TOPICS_DEVELOPMENT: 'false',
  })
  expect(code).toBe(1)
  expect(stderr).toMatch(/g2\.memberships can not be created: .*[Rr]eplication/)
  expect(await readAll(`${prefix}backfills`)).toEqual([])
})

test('while somebody is in the group it is refused, and names who', async () => {
  const { prefix, groupId, grow } = await install(3)
  const consumer = otherProgram().consumer({ groupId })
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [`${prefix}events`] })
    await consumer.run({ eachMessage: async () => {} })
    await consumer.describeGroup()
    const { code, stderr } = await grow('7')
    expect(code).toBe(1)
    expect(stderr).toMatch(/Workers are in the group .*: test at 127\.0\.0\.1/)
  } finally {
    await consumer.disconnect()
  }
})

test('where somebody wrote to what is copied it goes no further', { timeout: 240_000 }, async () => {
  const installation = await install(3)
  const { prefix, grow } = installation
  await fill(installation, { users: 4_000, waiting: 1_000, random: new Random(6) })
  await growUntilBegun(installation)
  await produce(`${prefix}replays`, [{ partition: 0, value: 'late' }])
  const { code, stderr } = await grow('7')
  expect(code).toBe(1)
  expect(stderr).toContain('have changed since the growth began')
})
