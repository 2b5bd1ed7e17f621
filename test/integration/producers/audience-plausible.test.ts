import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { encodeState, encodeStateKey } from '../../../src/audience/records/state-record.ts'
import { readConfig } from '../../../src/config/read.ts'
import { encodeGrowth } from '../../../src/growth/journal.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { syncPartCheck } from '../../../src/message/audience-change.ts'
import { openKafka } from '../../../src/roles/start/ask-kafka.ts'
import { compareWithKnown, membersLine } from '../../../src/commands/audience/known-members.ts'
import { Sync } from '../../../src/audience-files/sync.ts'
import { createTopic, produce, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { runSluice } from '../../support/worker-process.ts'

/**
 * Tests of `sluice audience sync` with files that aren't the audience, with a real Kafka. The known members
 * are records of `memberships` as a worker writes them.
 */

const partitions = 6
const about = ['--space', 'personas', '--audience', 'aud_1', '--name', 'Big spenders']
const folder = mkdtempSync(join(tmpdir(), 'sluice-plausible-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let prefix = ''
let variables: Record<string, string> = {}

beforeEach(async () => {
  prefix = randomPrefix()
  variables = { SLUICE_KAFKA_BROKERS: testKafka().join(','), SLUICE_KAFKA_TOPIC_PREFIX: prefix }
  for (const name of ['audience-changes', 'memberships']) await createTopic(prefix + name, { partitions })
})

type Held = { value?: boolean; atMs?: number; audienceId?: string; spaceId?: string; property?: string }

function membership(
  userId: string,
  {
    value = true,
    atMs = 1,
    audienceId = 'aud_1',
    spaceId = 'personas',
    property = 'big_spenders',
  }: Held = {},
) {
  const version = { atMs, isNative: true, partition: 0, offset: atMs }
  return {
    partition: partitionOf(userId, partitions),
    key: encodeStateKey({ kind: 'property', userId, spaceId, property }),
    value: encodeState(
      { kind: 'audience', id: audienceId, name: 'A', value: String(value), version, since: version },
      false,
    ),
  }
}

const usersFrom = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, index) => `user-${first + index}`)

async function know(userIds: readonly string[], held: Held = {}): Promise<void> {
  await produce(
    `${prefix}memberships`,
    userIds.map((userId) => membership(userId, held)),
  )
}

function fileOf(name: string, lines: readonly string[]): string {
  const path = join(folder, name)
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
  return path
}

/** Runs a sync that is refused. Returns what it says, without the path of the file. */
async function refused(file: string, ...flags: string[]): Promise<string> {
  const args = ['audience', 'sync', file, ...about, ...flags]
  const { stderr, stdout } = await runSluice(args, variables, { expectedCode: 1 })
  expect(stdout).toBe('')
  expect(await readAll(`${prefix}audience-changes`)).toEqual([])
  return stderr.replaceAll(`${folder}/`, '')
}

async function synced(file: string, ...flags: string[]): Promise<{ lines: string[]; sent: Set<string> }> {
  const { stdout } = await runSluice(['audience', 'sync', file, ...about, ...flags], variables)
  const records = await readAll(`${prefix}audience-changes`)
  const sent = records.flatMap(({ value }) => {
    const part: unknown = JSON.parse(value?.toString() ?? '')
    if (!syncPartCheck.Check(part)) throw new Error('not as the schema has it')
    return part.userIds
  })
  return { lines: stdout.replaceAll(`${folder}/`, '').split('\n'), sent: new Set(sent) }
}

test('a file with ; between its columns would remove everybody: it is refused, with numbers, unless flags allow it', async () => {
  await know(usersFrom(1, 100))
  const rows = usersFrom(1, 100).map((user) => `${user};Ada;ada@example.com`)
  const file = fileOf('semicolons.csv', rows)
  const odd =
    'Of the 100 users in semicolons.csv, some look like no user: 100 contain a semicolon, as rows do that were not split (first in line 1). Correct the file, or say --allow-odd-ids where these are users.'
  const leaving =
    'semicolons.csv names 100, and only 0 of the 100 known members of aud_1: 100 would leave, and 100 would enter. Check whether it is the right file and column, and complete. Say --allow-leaving where so many have left.'
  expect(await refused(file, '--no-header')).toBe(`sluice: ${odd} ${leaving} Nothing was sent.\n`)
  expect(await refused(file, '--no-header', '--dry-run')).toBe(
    `sluice: ${odd} ${leaving} Nothing was sent.\n`,
  )
  expect(await refused(file, '--no-header', '--allow-odd-ids')).toBe(`sluice: ${leaving} Nothing was sent.\n`)
  expect(await refused(file, '--no-header', '--allow-leaving')).toBe(`sluice: ${odd} Nothing was sent.\n`)
  const { sent } = await synced(file, '--no-header', '--allow-leaving', '--allow-odd-ids')
  expect(sent).toEqual(new Set(rows))
})

test('a line that is no user is refused wherever it is, even in the first file of an audience', async () => {
  const withFooter = fileOf('footer.csv', ['userId', ...usersFrom(1, 30), 'Total: 30 rows', '-- end --'])
  expect(await refused(withFooter)).toBe(
    'sluice: Of the 32 users in footer.csv, some look like no user: 2 look like lines of a report, such as a total (first in line 32). Correct the file, or say --allow-odd-ids where these are users. Nothing was sent.\n',
  )
  const withHeader = fileOf('header.csv', ['customer_id', 'u1'])
  expect(await refused(withHeader, '--no-header')).toContain('1 look like the name of a column (line 1)')
  const rows = fileOf('rows.ndjson', ['"u1"', '{"userId":"u2\\tAda"}', '"NULL"'])
  expect(await refused(rows)).toContain('split (line 2); 1 stand for no value, such as NULL (line 3)')
})

test('hardly any member in common is refused with numbers, even if --allow-empty is given', async () => {
  await know(usersFrom(1, 100))
  const emails = fileOf(
    'emails.csv',
    usersFrom(1, 100).map((user) => `${user}@example.com`),
  )
  expect(await refused(emails, '--no-header', '--allow-empty')).toContain(
    'only 0 of the 100 known members of aud_1: 100 would leave, and 100 would enter.',
  )
  const cut = fileOf('cut.csv', usersFrom(1, 49))
  expect(await refused(cut, '--no-header')).toContain(
    'cut.csv names 49, and only 49 of the 100 known members of aud_1: 51 would leave, and 0 would enter.',
  )
  const half = fileOf('half.csv', usersFrom(51, 110))
  expect((await synced(half, '--no-header')).lines[2]).toBe('members  100 known: 10 enter, 50 leave, 50 stay')
})

test('a few members may be others, and an empty file may be allowed', async () => {
  await know(usersFrom(1, 19))
  const others = fileOf('others.csv', usersFrom(101, 119))
  expect((await synced(others, '--no-header')).sent.size).toBe(19)
  await know(usersFrom(20, 100))
  const empty = fileOf('empty.csv', ['userId'])
  expect(await refusedAsEmpty(empty)).toContain('names no user')
  expect((await synced(empty, '--allow-empty', '--dry-run')).lines[2]).toBe(
    'members  100 known: 0 would enter, 100 would leave, 0 would stay',
  )
  expect((await synced(empty, '--allow-empty')).lines[2]).toContain('sent     6 parts')
})

async function refusedAsEmpty(file: string): Promise<string> {
  return (await runSluice(['audience', 'sync', file, ...about], variables, { expectedCode: 1 })).stderr
}

test('a dry run says how many are known, would enter, would leave and would stay', async () => {
  await know(usersFrom(1, 100))
  // None of these users is a member now.
  await know(usersFrom(41, 50), { value: false, atMs: 2 })
  await produce(
    `${prefix}memberships`,
    usersFrom(51, 60).map((user) => ({ ...membership(user), value: null })),
  )
  await know(usersFrom(200, 300), { audienceId: 'aud_2', property: 'others' })
  await know(usersFrom(200, 300), { spaceId: 'elsewhere' })
  // This user is known twice.
  await know(['user-1'], { atMs: 3 })
  const file = fileOf('vips.csv', [
    'userId',
    ...usersFrom(1, 45),
    ...usersFrom(61, 70),
    ...usersFrom(201, 203),
  ])
  const { lines, sent } = await synced(file, '--dry-run')
  expect(lines.slice(1, 4)).toEqual([
    'read     58 users from vips.csv',
    'members  80 known: 8 would enter, 30 would leave, 50 would stay',
    `nothing sent: it would be 6 parts to 6 partitions of ${prefix}audience-changes`,
  ])
  expect(sent.size).toBe(0)
})

test('ids that are odd for most members are not odd', async () => {
  const users = usersFrom(1, 60).map((user) => `auth0|${user}`)
  await know(users)
  const file = fileOf('auth0.csv', ['userId', ...users, 'auth0|new'])
  expect((await synced(file)).lines[2]).toBe('members  60 known: 1 enter, 0 leave, 60 stay')
  expect(await refusedIn(fileOf('both.csv', ['userId', ...users, 'u1;x']))).toContain('1 contain a semicolon')
})

async function refusedIn(file: string): Promise<string> {
  return (await runSluice(['audience', 'sync', file, ...about], variables, { expectedCode: 1 })).stderr
}

test('the members of a grown installation are read, whatever the settings say', async () => {
  await createTopic(`${prefix}backfills`, { partitions: 1 })
  const growth = encodeGrowth({
    state: 'grown',
    from: { partitions: 3, generation: 1 },
    to: { partitions, generation: 2 },
    groupId: 'sluice',
    digest: '',
    waiting: [],
    done: [],
    bounds: [],
  })
  await produce(`${prefix}backfills`, [{ partition: 0, ...growth }])
  const file = fileOf('grown.csv', usersFrom(101, 200))
  expect(await refused(file, '--no-header')).toContain(
    `g2.memberships does not exist: \`sluice topics apply\` creates it.`,
  )
  await createTopic(`${prefix}g2.memberships`, { partitions })
  await produce(
    `${prefix}g2.memberships`,
    usersFrom(1, 100).map((user) => membership(user)),
  )
  expect(await refused(file, '--no-header')).toContain('only 0 of the 100 known members')
})

test('topics that do not go together are refused', async () => {
  await createTopic(`${prefix}3.audience-changes`, { partitions: 3 })
  await createTopic(`${prefix}3.memberships`, { partitions })
  variables = { ...variables, SLUICE_KAFKA_TOPIC_PREFIX: `${prefix}3.` }
  const { stderr } = await runSluice(
    ['audience', 'sync', fileOf('users.csv', ['userId', 'u1']), ...about],
    variables,
    { expectedCode: 1 },
  )
  expect(stderr).toContain('differ in partitions: see `sluice topics check`')
})

test('of a large installation only some partitions are read, and the numbers are estimates', async () => {
  const users = usersFrom(1, 3_000)
  await know(users)
  const read = readConfig({ env: variables })
  if (!read.ok) throw new Error(read.message)
  const { config } = read
  const log = pino({ level: 'silent' })
  const kafka = await openKafka(config, log, 'audience sync')
  const head = {
    audienceId: 'aud_1',
    audienceName: 'Big spenders',
    syncId: 's',
    snapshotAt: '2026-01-31T12:00:00.000Z',
  }
  const sync = new Sync({ head, partitions, maxPartBytes: 10_000 })
  try {
    for (const user of usersFrom(1_001, 3_600)) sync.add(user)
    const topic = `${prefix}memberships`
    const comparison = await compareWithKnown(config, kafka, sync, {
      topic,
      partitions,
      scope: { spaceId: 'personas', audienceId: 'aud_1', property: 'big_spenders' },
      mostRecords: 700,
      screen: { isTerminal: false, columns: () => 80, write: () => undefined, redraw: () => undefined },
    })
    expect([comparison.compared, comparison.isEstimate, comparison.isImplausible]).toEqual([2, true, false])
    for (const [estimate, exact] of [
      [comparison.known, 3_000],
      [comparison.entering, 600],
      [comparison.leaving, 1_000],
    ] as const) {
      expect(Math.abs(estimate - exact)).toBeLessThan(exact * 0.15)
    }
    expect(membersLine(comparison, { topic, isDryRun: false })).toMatch(
      /^members {2}about [23],\d{3} known: about \d{3} enter, \d+,?\d+ leave, \d,\d{3} stay \(from 2 partitions of .*memberships\)$/,
    )
  } finally {
    sync.close()
  }
})
