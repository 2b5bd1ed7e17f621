import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encodeState, encodeStateKey } from '../../../src/audience/records/state-record.ts'
import { encodeMark } from '../../../src/backfill/marks.ts'
import { encodePosition } from '../../../src/backfill/position.ts'
import { readConfig } from '../../../src/config/read.ts'
import { encodeGrowth } from '../../../src/growth/journal.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { decodeRetryState } from '../../../src/retry/retry-state.ts'
import { backfill } from '../../../src/commands/audience/audience-backfill.ts'
import { createTopic, produce, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { runSluice, writeCatalog } from '../../support/worker-process.ts'

/** Tests of `sluice audience backfill` as an operator runs it, with a real Kafka. */

const partitions = 3
const hooks = [{ url: 'https://hooks.example/hook' }]
const catalogData = {
  sources: [
    { id: 'personas', kind: 'audiences' },
    { id: 'shop', kind: 'events' },
  ],
  destinations: [
    { id: 'crm', sources: ['personas', 'shop'], hooks },
    { id: 'paused', sources: ['personas'], state: 'paused', hooks },
    { id: 'off', sources: ['personas'], state: 'off', hooks },
    { id: 'other', sources: ['shop'], hooks },
  ],
}
const backfillArgs = ['audience', 'backfill', '--space', 'personas', '--destination']

let prefix = ''
let folder = ''
let variables: Record<string, string> = {}
let catalog: ReturnType<typeof writeCatalog> | undefined

beforeEach(async () => {
  prefix = randomPrefix()
  folder = mkdtempSync(join(tmpdir(), 'sluice-backfill-'))
  catalog = writeCatalog(catalogData)
  variables = {
    SLUICE_KAFKA_BROKERS: testKafka().join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_CATALOG_FILE: catalog.path,
  }
  for (const name of ['memberships', 'replays']) await createTopic(prefix + name, { partitions })
  await createTopic(`${prefix}backfills`, { partitions: 1 })
})

afterEach(() => {
  catalog?.remove()
  rmSync(folder, { recursive: true, force: true })
})

type Held = { userId: string; value?: boolean; atMs?: number; since?: number; id?: string; spaceId?: string }

const versionAt = (atMs: number) => ({ atMs, isNative: true, partition: 0, offset: atMs })

/** Returns a record of `memberships` as a worker writes it. */
function membership({
  userId,
  value = true,
  atMs = 1,
  since = atMs,
  id = 'aud_1',
  spaceId = 'personas',
}: Held) {
  return {
    partition: partitionOf(userId, partitions),
    key: encodeStateKey({ kind: 'property', userId, spaceId, property: `property_${id}` }),
    value: encodeState(
      {
        kind: 'audience',
        id,
        name: id,
        value: String(value),
        version: versionAt(atMs),
        since: versionAt(since),
      },
      since !== atMs,
    ),
  }
}

/** The mark that a worker writes when a destination has missed a value. */
const missed = {
  partition: 0,
  ...encodeMark({ kind: 'missed', destinationId: 'crm', spaceId: 'personas' }),
}

async function replayed() {
  const records = await readAll(`${prefix}replays`)
  return records.map(({ partition, key, value, headers }) => {
    const decoded = decodeRetryState(headers)
    if (!decoded.ok) throw new Error(decoded.detail)
    const { destinationId, property, kind } = decoded.state
    const body: unknown = JSON.parse(value?.toString() ?? '')
    expect(property?.userId).toBe(key)
    expect(partition).toBe(partitionOf(key ?? '', partitions))
    expect(body).toMatchObject({ type: 'identify', userId: key })
    expect(kind).toBe('identify')
    return { userId: key ?? '', destinationId, since: property?.since, body }
  })
}

const outputOf = async (args: readonly string[]): Promise<string> => (await runSluice(args, variables)).stdout

const numberOf = (text: string | undefined): number => Number(text?.replaceAll(',', ''))

const usersOf = (records: Awaited<ReturnType<typeof replayed>>): string[] =>
  records.map(({ userId }) => userId).toSorted()

describe('a backfill', () => {
  test('writes each present member once, for the destination', async () => {
    await produce(`${prefix}memberships`, [
      membership({ userId: 'stays' }),
      membership({ userId: 'stays', atMs: 5, since: 1 }),
      membership({ userId: 'leaves' }),
      membership({ userId: 'leaves', value: false, atMs: 2 }),
      membership({ userId: 'is back', value: false }),
      membership({ userId: 'is back', atMs: 3 }),
      { ...membership({ userId: 'deleted' }) },
      { ...membership({ userId: 'deleted' }), value: null },
      membership({ userId: 'elsewhere', spaceId: 'other space' }),
    ])
    const { stdout } = await runSluice([...backfillArgs, 'crm'], variables)
    expect(stdout).toBe(`sent     2 of space personas for destination crm to ${prefix}replays\n`)
    const records = await replayed()
    expect(usersOf(records)).toEqual(['is back', 'stays'])
    expect(new Set(records.map(({ destinationId }) => destinationId))).toEqual(new Set(['crm']))
    expect(records.find(({ userId }) => userId === 'stays')).toMatchObject({
      since: '1.1.0.1',
      body: { traits: { property_aud_1: true } },
    })
  })

  test('of one audience leaves out the others, and brings those who left when asked', async () => {
    await produce(`${prefix}memberships`, [
      membership({ userId: 'u1' }),
      membership({ userId: 'u2', value: false }),
      membership({ userId: 'u3', id: 'aud_2' }),
    ])
    await runSluice([...backfillArgs, 'paused', '--audience', 'aud_1', '--with-left'], variables)
    const records = await replayed()
    expect(usersOf(records)).toEqual(['u1', 'u2'])
    expect(records.find(({ userId }) => userId === 'u2')?.body).toMatchObject({
      traits: { property_aud_1: false },
    })
  })

  test('is only counted in a dry run', async () => {
    await produce(`${prefix}memberships`, [membership({ userId: 'u1' })])
    const { stdout } = await runSluice([...backfillArgs, 'crm', '--dry-run'], variables)
    expect(stdout).toBe('members  1 of space personas for destination crm\nnothing sent\n')
    expect(await readAll(`${prefix}replays`)).toEqual([])
  })

  test('shows its progress while it reads values that it does not send', async () => {
    const others = Array.from({ length: 30_000 }, (_, at) =>
      membership({ userId: `user_${at}`, spaceId: 'other space' }),
    )
    await produce(`${prefix}memberships`, others)
    const read = readConfig({ env: variables })
    if (!read.ok) throw new Error(read.message)
    const written: string[] = []
    const note = (text: string): void => void written.push(text)
    const screen = { isTerminal: true, columns: () => 200, write: note, redraw: note }
    const options = {
      spaceId: 'personas',
      destinationId: 'crm',
      audienceId: undefined,
      property: undefined,
      withLeft: false,
      rate: undefined,
      stateFile: undefined,
      isDryRun: true,
    }
    await backfill(read.config, pino({ level: 'silent' }), options, screen)
    const [, partition, at, end] =
      /0 Identifys?; reading partition (\d), offset ([\d,]+) of ([\d,]+)/.exec(written.join('\n')) ?? []
    expect(Number(partition)).toBeLessThan(partitions)
    expect(numberOf(at)).toBeGreaterThan(0)
    expect(numberOf(at)).toBeLessThanOrEqual(numberOf(end))
  })

  test('that was killed goes on where it was, at its rate', async () => {
    const userIds = Array.from({ length: 1_500 }, (_, user) => `user-${user}`)
    await produce(
      `${prefix}memberships`,
      userIds.map((userId) => membership({ userId })),
    )
    const stateFile = join(folder, 'state.json')
    const args = [...backfillArgs, 'crm', '--state', stateFile, '--rate']
    const main = resolve(import.meta.dirname, '../../../src/main.ts')
    const child = spawn(process.execPath, [main, ...args, '200'], {
      env: { ...process.env, ...variables },
      stdio: 'ignore',
    })
    const exited = once(child, 'exit')
    const sentSoFar = (): number => {
      const state: unknown = JSON.parse(readFileSync(stateFile, 'utf8'))
      return typeof state === 'object' && state !== null && 'sent' in state ? Number(state.sent) : 0
    }
    await until('some are noted', () => existsSync(stateFile) && sentSoFar() >= 200)
    const startedMs = performance.now()
    await until('some more are noted', () => sentSoFar() >= 600)
    // The command sends 400 more values at 200 a second. It saves its position once a second, and sends in
    // batches of 50.
    expect(performance.now() - startedMs).toBeGreaterThan(1_000)
    child.kill('SIGKILL')
    await exited
    const noted = sentSoFar()
    expect(noted).toBeLessThan(userIds.length)

    // A change during the backfill. The Identify of the change itself is routed as always.
    await produce(`${prefix}memberships`, [membership({ userId: 'newcomer', atMs: 9 })])
    const { stdout } = await runSluice([...args, '100000'], variables)
    expect(stdout).toContain(`(${noted.toLocaleString('en-US')} of them in an earlier run)`)
    expect(existsSync(stateFile)).toBe(false)
    const records = await replayed()
    const sent = new Set(records.map(({ userId }) => userId))
    for (const userId of userIds) expect(sent).toContain(userId)
    // The second run sends again what was sent after the last saved position.
    expect(records.length).toBeLessThan(userIds.length + 600)
    expect(records.length - userIds.length).toBeLessThan(userIds.length - noted)
  })

  test('whose state can not be kept says so before anything is sent', async () => {
    await produce(`${prefix}memberships`, [membership({ userId: 'u1' })])
    const stateFile = join(folder, 'none', 'state.json')
    const { stderr } = await runSluice([...backfillArgs, 'crm', '--state', stateFile], variables, {
      expectedCode: 1,
    })
    expect(stderr).toContain(`${stateFile} can not be written (ENOENT)`)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(await readAll(`${prefix}replays`)).toEqual([])
  })

  test('of all that the space holds takes down the mark of what was missed before; one of a part lets it stay', async () => {
    const ofAll = [...backfillArgs, 'crm', '--with-left']
    const ofPart = [...ofAll, '--audience', 'aud_1']
    await produce(`${prefix}memberships`, [membership({ userId: 'u1' })])
    expect(await outputOf(ofAll)).not.toContain('mark ')
    await produce(`${prefix}backfills`, [missed])
    expect(await outputOf(ofPart)).toContain('mark     stays: crm needs a backfill of all of personas')
    expect(await outputOf([...ofAll, '--dry-run'])).not.toContain('mark ')
    expect(await outputOf(ofAll)).toContain('mark     taken down: crm has missed nothing more of personas')
    expect(await outputOf(ofPart)).not.toContain('mark ')
    await produce(`${prefix}backfills`, [missed])
    expect(await outputOf(ofPart)).toContain('mark     stays')
  })

  test('that goes on takes down only what was missed before it began at first', async () => {
    const args = [...backfillArgs, 'crm', '--with-left', '--state', join(folder, 'state.json')]
    const scope = { prefix, partitions, spaceId: 'personas', destinationId: 'crm' }
    const whole = { ...scope, audienceId: null, property: null, withLeft: true }
    const noteOf = (marksUpTo: number): void => {
      const position = { unit: partitions, end: 0, bucket: 0, offset: -1, sent: 5, marksUpTo }
      writeFileSync(join(folder, 'state.json'), encodePosition(whole, position))
    }
    await produce(`${prefix}backfills`, [missed, missed])
    noteOf(1)
    expect(await outputOf(args)).toContain('mark     stays')
    noteOf(2)
    expect(await outputOf(args)).toContain('mark     taken down')
  })

  test('that goes on late sends a value that was confirmed since, and whose older record was compacted away', async () => {
    const [other, user] = Array.from({ length: 20 }, (_, number) => `user-${number}`).filter(
      (userId) => partitionOf(userId, partitions) === 0,
    )
    if (other === undefined || user === undefined) throw new Error('partition 0 has too few users')
    await produce(`${prefix}memberships`, [
      membership({ userId: other }),
      // The record at the lower offset, which this one replaces, is gone.
      membership({ userId: user, atMs: 5, since: 1 }),
    ])
    const scope = { prefix, partitions, spaceId: 'personas', destinationId: 'crm' }
    const whole = { ...scope, audienceId: null, property: null, withLeft: true }
    const position = { unit: 0, end: 1, bucket: 0, offset: -1, sent: 0, marksUpTo: 0 }
    writeFileSync(join(folder, 'state.json'), encodePosition(whole, position))
    await runSluice([...backfillArgs, 'crm', '--with-left', '--state', join(folder, 'state.json')], variables)
    expect(usersOf(await replayed())).toEqual([other, user].toSorted())
  })

  test('during which the installation was grown says so, and lets the mark stay', async () => {
    await produce(`${prefix}backfills`, [missed])
    await produce(
      `${prefix}memberships`,
      Array.from({ length: 300 }, (_, user) => membership({ userId: `user-${user}` })),
    )
    const stateFile = join(folder, 'state.json')
    const args = [...backfillArgs, 'crm', '--with-left', '--rate', '100', '--state', stateFile]
    const ended = runSluice(args, variables, { expectedCode: 1 })
    await until('it has begun', () => existsSync(stateFile))
    const growth = encodeGrowth({
      state: 'grown',
      from: { partitions, generation: 1 },
      to: { partitions: 6, generation: 2 },
      groupId: 'sluice',
      digest: '',
      waiting: [],
      done: [],
      bounds: [],
    })
    await produce(`${prefix}backfills`, [{ partition: 0, ...growth }])
    const { stderr } = await ended
    expect(stderr).toContain('6 partitions')
    const keys = (await readAll(`${prefix}backfills`)).map(({ key }) => key)
    expect(keys.some((key) => key?.includes('filled'))).toBe(false)
  })

  test.each([
    ['of a cluster whose topics have other ids', { membershipsId: 'AAAAAAAAAAAAAAAAAAAAAA' }, 1],
    ['with offsets that the topics do not have', {}, 1_000],
  ])('does not go on with a state %s: it would pass over users', async (_what, ids, end) => {
    await produce(
      `${prefix}memberships`,
      Array.from({ length: 30 }, (_, user) => membership({ userId: `user-${user}` })),
    )
    const stateFile = join(folder, 'state.json')
    const scope = { prefix, partitions, spaceId: 'personas', destinationId: 'crm' }
    const whole = { ...scope, audienceId: null, property: null, withLeft: false, ...ids }
    const position = { unit: 1, end, bucket: 3, offset: -1, sent: 10, marksUpTo: -1 }
    writeFileSync(stateFile, encodePosition(whole, position))
    const args = [...backfillArgs, 'crm', '--state', stateFile]
    const { stderr } = await runSluice(args, variables, { expectedCode: 1 })
    expect(stderr).toContain('of a backfill that read other topics')
    expect(stderr).toContain('remove it to begin anew')
    expect(await replayed()).toEqual([])
  })

  test('does not go on with the state of another', async () => {
    const stateFile = join(folder, 'state.json')
    writeFileSync(stateFile, '{"version":1}')
    const { stderr } = await runSluice([...backfillArgs, 'crm', '--state', stateFile], variables, {
      expectedCode: 1,
    })
    expect(stderr).toContain('is of another backfill')
    expect(readFileSync(stateFile, 'utf8')).toBe('{"version":1}')
  })

  test.each([
    ['an unknown space', ['--space', 'nowhere', 'crm'], 1, 'no source "nowhere" of kind audiences'],
    ['a source of events', ['--space', 'shop', 'crm'], 1, 'no source "shop" of kind audiences'],
    ['an unknown destination', ['nobody'], 1, 'no destination "nobody"'],
    ['a destination that is not connected', ['other'], 1, 'add it to its sources'],
    ['a destination that is off', ['off'], 1, 'switch it on or pause it'],
    ['a rate that is none', ['crm', '--rate', 'fast'], 2, '--rate has to be a whole number'],
  ])('with %s says what to do', async (_fault, args, expectedCode, expected) => {
    const destination =
      args.find((arg, index) => !arg.startsWith('--') && !args[index - 1]?.startsWith('--')) ?? ''
    const rest = args.filter((arg) => arg !== destination)
    const { stderr } = await runSluice([...backfillArgs, destination, ...rest], variables, {
      expectedCode,
    })
    expect(stderr).toContain(expected)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test('without topics says what to do', async () => {
    const { stderr } = await runSluice(
      [...backfillArgs, 'crm'],
      { ...variables, SLUICE_KAFKA_TOPIC_PREFIX: 'none.' },
      { expectedCode: 1 },
    )
    expect(stderr).toContain('sluice topics apply')
  })
})
