import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bindMetadata } from '../../../src/kafka/wire/commit-binding.ts'
import { encodeCommitMetadata } from '../../../src/kafka/wire/commit-metadata.ts'
import { createTopic, otherProgram, produce, readAll } from '../../support/kafka.ts'
import { expectCopied, grownTo, type Installed, install } from '../../support/growing.ts'
import { Random } from '../../support/random.ts'
import { fill, partitionsOf } from '../../support/stopped-installation.ts'
import { until } from '../../support/until.ts'
import { runSluice, runToEnd, startSluice } from '../../support/worker-process.ts'
import { writeCommit } from '../../support/write-commit.ts'

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
  const commands = [['worker'], ['topics', 'apply']]
  for (const stale of await Promise.all(commands.map((command) => runToEnd(command, variables)))) {
    expect(stale.code).toBe(1)
    expect(stale.stderr).toContain(
      'set SLUICE_TOPICS_PARTITIONS=7 and SLUICE_TOPICS_GENERATION=2 (they are 3 and 1)',
    )
  }
  const again = await grow('7')
  expect(again).toMatchObject({ code: 0, stdout: grown.stdout.replace(/^(?!grown|next|then).*\n/gm, '') })

  const cleaned = await runSluice(['topics', 'grow', '--clean'], { ...variables, ...grownTo(7) })
  expect(cleaned.stdout).toContain(`removed    ${prefix}memberships`)
  const checked = await runSluice(['topics', 'check'], { ...variables, ...grownTo(7) })
  expect(checked.stdout).toContain('All topics are as Sluice needs them.')
})

describe('of an installation with states and retries', () => {
  let installation: Installed

  beforeAll(async () => {
    installation = await install(3)
    await fill(installation, { users: 400, waiting: 300, random: new Random(1) })
  })

  test('a dry run tells what would be done, and writes nothing', async () => {
    const { prefix, grow } = installation
    const { code, stdout } = await grow('7', '--dry-run')
    expect(code).toBe(0)
    expect(stdout).toContain(`copy       ${prefix}memberships to ${prefix}g2.memberships: `)
    expect(stdout).toContain('users      about 400 with a state')
    expect(stdout).toMatch(/^copy .*retry\.1s to .*, \d+ of them wait for their delivery$/m)
    expect(stdout).toContain(`partitions ${prefix}events: 7, in place`)
    expect(stdout).toContain(`right      READ, WRITE, CREATE, ALTER_CONFIGS on Topic ${prefix}g2.memberships`)
    expect(stdout).toMatch(/^disk .*$/m)
    expect(stdout).toMatch(/^time .*$/m)
    expect(stdout).toContain('no sync of an audience')
    expect(await readAll(`${prefix}backfills`)).toEqual([])
    expect(await partitionsOf(`${prefix}events`)).toBe(3)
  })

  test('all that is known and all that waits is in its new unit, once, in its order, with its time, and settled where it was', async () => {
    const { prefix, groupId, grow } = installation
    const grown = await grow('7')
    expect(grown.stderr + grown.stdout).toContain('grown      from 3 to 7 partitions')
    await expectCopied(prefix, groupId, 3, 7)
  })
})

describe('of an installation that stays as it is', () => {
  let installation: Installed

  beforeAll(async () => {
    installation = await install(3)
  })

  test('a growth to as many partitions, or to more than there may be, is refused', async () => {
    const { grow } = installation
    const [same, many] = await Promise.all([grow('3'), grow('5000')])
    expect(same).toMatchObject({ code: 2, stderr: expect.stringContaining('they can only become more') })
    expect(many).toMatchObject({ code: 2, stderr: expect.stringContaining('has to be a whole number') })
  })

  test('what the brokers would not do is told before anything is written', async () => {
    const { prefix, variables } = installation
    const { code, stderr } = await runToEnd(['topics', 'grow', '7'], {
      ...variables,
      SLUICE_TOPICS_DEVELOPMENT: 'false',
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/g2\.memberships can not be created: .*[Rr]eplication/)
    expect(await readAll(`${prefix}backfills`)).toEqual([])
  })

  test('while somebody is in the group it is refused, and names who; a dry run is not refused', async () => {
    const { prefix, groupId, grow } = installation
    const consumer = otherProgram().consumer({ groupId })
    await consumer.connect()
    try {
      await consumer.subscribe({ topics: [`${prefix}events`] })
      await consumer.run({ eachMessage: async () => {} })
      await consumer.describeGroup()
      const { code, stderr } = await grow('7')
      expect(code).toBe(1)
      expect(stderr).toMatch(/Workers are in the group .*: test at 127\.0\.0\.1/)
      const dry = await grow('7', '--dry-run')
      expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing written') })
      expect(dry.stdout).toMatch(/^workers .*: test at 127\.0\.0\.1\. Stop them all/m)
    } finally {
      await consumer.disconnect()
    }
  })
})

test('a worker that was suspended through a growth ends when it wakes up, and says which settings to set', async () => {
  const { variables, grow } = await install(3)
  const worker = await startSluice(variables)
  onTestFinished(() => worker.kill())
  process.kill(worker.pid, 'SIGSTOP')
  await until(
    'the group has removed it, and the topics have grown',
    async () => (await grow('7')).code === 0,
    {
      timeoutMs: 60_000,
    },
  )
  process.kill(worker.pid, 'SIGCONT')
  await until('it has ended', () => !worker.isRunning)
  expect(await worker.exited).toBe(1)
  expect(worker.stderr + JSON.stringify(worker.log)).toContain(
    'set SLUICE_TOPICS_PARTITIONS=7 and SLUICE_TOPICS_GENERATION=2',
  )
})

test('topics of the next generation that nobody knows of are not touched', async () => {
  const { prefix, grow } = await install(3)
  await createTopic(`${prefix}g2.memberships`, { partitions: 2 })
  const { code, stderr } = await grow('7')
  expect(code).toBe(1)
  expect(stderr).toContain(`${prefix}g2.memberships`)
  expect(await partitionsOf(`${prefix}events`)).toBe(3)
})

test('a commit that somebody has moved with its metadata holds it up: what it lists as settled may never have been delivered', async () => {
  const { prefix, groupId, grow } = await install(3)
  const home = { groupId, topic: `${prefix}memberships`, partition: 1 }
  const metadata = encodeCommitMetadata(5, [6, 7], { isFinal: true, epoch: 1 })
  await writeCommit({ ...home, offset: 0, metadata: bindMetadata(metadata, home, 5) })
  const { code, stderr } = await grow('7')
  expect(code).toBe(1)
  expect(stderr).toContain(
    `${home.topic}/1: somebody has moved the commit of this partition from offset 5 to 0`,
  )
  expect(stderr).toContain('Start the workers')
})

test('parts of a sync that are not applied hold it up, and so does a sync that some units have not had', async () => {
  const installation = await install(3)
  const part = {
    type: 'sync',
    audienceId: 'a',
    audienceName: 'A',
    syncId: 's',
    snapshotAt: new Date().toISOString(),
  }
  const { prefix, grow } = installation
  await fill(installation, { users: 10, waiting: 10, random: new Random(5), withoutSync: [2] })
  await produce(`${prefix}audience-changes`, [
    { partition: 1, key: null, value: JSON.stringify({ ...part, part: 1, parts: 2, userIds: [] }) },
  ])
  const { code, stderr } = await grow('7')
  expect(code).toBe(1)
  expect(stderr).toContain(`${prefix}audience-changes/1 has 1 parts of syncs that are not applied`)
  expect(stderr).toContain('the last sync of audience vips of space was not applied in 1 of 3 units (2)')
})
