import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { type SyncPart, syncPartCheck } from '../../../src/message/audience-change.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { createTopic, otherProgram, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { runSluice } from '../../support/worker-process.ts'

/** Tests of `sluice audience sync` as an operator runs it, with a real Kafka. */

const partitions = 6
const about = ['--space', 'personas', '--audience', 'aud_1', '--name', 'Big spenders']

const folder = mkdtempSync(join(tmpdir(), 'sluice-users-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let variables: Record<string, string> = {}
let topic = ''

beforeEach(async () => {
  const prefix = randomPrefix()
  topic = `${prefix}audience-changes`
  variables = {
    SLUICE_KAFKA_BROKERS: testKafka().join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
  }
  await createTopic(topic, { partitions })
  await createTopic(`${prefix}memberships`, { partitions })
})

function fileOf(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

type Written = SyncPart & { partition: number }

async function partsWritten(): Promise<Written[]> {
  const records = await readAll(topic)
  return records.map(({ partition, key, value, headers }) => {
    expect(key).toBeNull()
    expect(headers).toEqual({ 'source-id': 'personas' })
    const part: unknown = JSON.parse(value?.toString() ?? '')
    if (!syncPartCheck.Check(part)) throw new Error('not as the schema has it')
    return { ...part, partition }
  })
}

const partsOf = (written: readonly Written[], partition: number): readonly Written[] =>
  written.filter((part) => part.partition === partition)

describe('a sync of a file', () => {
  test('is written as parts, to each partition those of its users', async () => {
    const userIds = Array.from({ length: 40_000 }, (_, user) => `user-${user}`)
    const file = fileOf('vips.csv', `name,userId\n${userIds.map((id) => `"A, B",${id}\n`).join('')}`)
    const { stdout } = await runSluice(['audience', 'sync', file, ...about, '--key', 'vip'], {
      ...variables,
      // With this limit, each partition gets several parts.
      SLUICE_MESSAGE_MAX_BYTES: '39KiB',
    })
    const written = await partsWritten()
    expect(new Set(written.flatMap((part) => part.userIds))).toEqual(new Set(userIds))
    expect(written.flatMap((part) => part.userIds)).toHaveLength(userIds.length)
    for (const { partition, userIds: own } of written) {
      for (const id of own) expect(partitionOf(id, partitions)).toBe(partition)
    }
    for (let partition = 0; partition < partitions; partition++) {
      const parts = partsOf(written, partition)
      expect(parts.length).toBeGreaterThan(1)
      expect(parts.map(({ part }) => part)).toEqual(parts.map((_, index) => index + 1))
      expect(parts.every((part) => part.parts === parts.length)).toBe(true)
    }
    const [first] = written
    expect(first).toMatchObject({ audienceId: 'aud_1', audienceName: 'Big spenders', audienceKey: 'vip' })
    expect(new Set(written.map(({ syncId, snapshotAt }) => `${syncId} ${snapshotAt}`)).size).toBe(1)
    expect(Math.abs(Date.parse(first?.snapshotAt ?? '') - Date.now())).toBeLessThan(60_000)
    expect(stdout.split('\n')).toEqual([
      `audience aud_1 of space personas, property vip, as of ${first?.snapshotAt}`,
      `read     40,000 users from ${file}`,
      'members  0 known: 40,000 enter, 0 leave, 0 stay',
      `sent     ${written.length} parts to 6 partitions of ${topic}`,
      `sync     ${first?.syncId}`,
      '',
    ])
  })

  test('takes standard input, leaves out who is named again, and tells the time that it is of', async () => {
    const args = [
      'audience',
      'sync',
      '-',
      '--format',
      'ndjson',
      ...about,
      '--snapshot-at',
      '2026-01-31T13:00+01:00',
    ]
    const { stdout } = await runSluice(args, variables, { input: '"u1"\n{"userId":"Zoë"}\n"u1"\n' })
    const written = await partsWritten()
    expect(written).toHaveLength(partitions)
    expect(written.flatMap((part) => part.userIds).toSorted()).toEqual(['Zoë', 'u1'])
    expect(new Set(written.map((part) => part.snapshotAt))).toEqual(new Set(['2026-01-31T12:00:00.000Z']))
    expect(written.every((part) => !('audienceKey' in part))).toBe(true)
    expect(stdout).toContain('read     3 users (1 of them named again) from standard input')
  })

  test('that nobody is in ends the audience, if that is what is asked for', async () => {
    const file = fileOf('empty.csv', 'userId\n')
    const { stderr } = await runSluice(['audience', 'sync', file, ...about], variables, { expectedCode: 1 })
    expect(stderr).toBe(
      `sluice: ${file} names no user: everybody would leave aud_1. Say --allow-empty where the audience has ended.\n`,
    )
    expect(await readAll(topic)).toEqual([])
    await runSluice(['audience', 'sync', file, ...about, '--allow-empty'], variables)
    const written = await partsWritten()
    expect(written.map(({ partition, part, parts, userIds }) => [partition, part, parts, userIds])).toEqual(
      Array.from({ length: partitions }, (_, partition) => [partition, 1, 1, []]),
    )
  })

  test('is only counted in a dry run', async () => {
    const file = fileOf('dry.ndjson', '"u1"\n"u2"\n')
    const { stdout } = await runSluice(['audience', 'sync', file, ...about, '--dry-run'], variables)
    expect(stdout).toContain(`read     2 users from ${file}`)
    expect(stdout).toContain('members  0 known: 2 would enter, 0 would leave, 0 would stay')
    expect(stdout).toContain(`nothing sent: it would be 6 parts to 6 partitions of ${topic}`)
    expect(await readAll(topic)).toEqual([])
  })

  test('of a file that can not be opened is refused in a line', async () => {
    const file = join(folder, 'socket.csv')
    const server = createServer().listen(file)
    await once(server, 'listening')
    const { stderr } = await runSluice(['audience', 'sync', file, ...about], variables, { expectedCode: 1 })
    server.close()
    expect(stderr).toBe(`sluice: ${file} can not be read to its end (ENXIO).\n`)
  })

  test('with a bad row is refused, with the line, and nothing is sent', async () => {
    const users = Array.from({ length: 5_000 }, (_, user) => `"user-${user}"\n`).join('')
    const file = fileOf('bad.ndjson', `${users}17\n"u1"\n`)
    const { stderr, stdout } = await runSluice(['audience', 'sync', file, ...about], variables, {
      expectedCode: 1,
    })
    expect(stdout).toBe('')
    expect(stderr).toBe(
      `sluice: ${file}, line 5001: has a user id that is no text: write it in quotation marks. Nothing was sent.\n`,
    )
    expect(await readAll(topic)).toEqual([])
  })

  test.concurrent.each([
    [
      'no such file',
      ['/nowhere/vips.csv'],
      {},
      { code: 1, says: '/nowhere/vips.csv can not be read (ENOENT)' },
    ],
    ['a folder', ['/'], {}, { code: 2, says: "can't be told from its name: give --format" }],
    [
      'an ending that says nothing',
      ['vips.txt'],
      {},
      { code: 2, says: 'give --format csv or --format ndjson' },
    ],
    [
      'a time ahead',
      ['-', '--format', 'csv', '--snapshot-at', '2999-01-01'],
      {},
      { code: 2, says: 'more than 5 minutes ahead' },
    ],
    [
      'a time that is none',
      ['-', '--format', 'csv', '--snapshot-at', 'now'],
      {},
      { code: 2, says: '--snapshot-at that is no time' },
    ],
    [
      'an empty name',
      ['-', '--format', 'csv', '--name', ''],
      {},
      { code: 2, says: '--name has to be a text' },
    ],
    ['a name of symbols only', ['-', '--format', 'csv', '--name', '💸'], {}, { code: 2, says: 'or a --key' }],
    [
      'no topic',
      ['-', '--format', 'csv'],
      { SLUICE_KAFKA_TOPIC_PREFIX: 'none.' },
      { code: 1, says: 'sluice topics apply' },
    ],
    [
      'no brokers',
      ['-', '--format', 'csv'],
      { SLUICE_KAFKA_BROKERS: '' },
      { code: 1, says: 'SLUICE_KAFKA_BROKERS' },
    ],
  ])('with %s says what to do', async (_fault, args, more, { code, says }) => {
    const { stderr } = await runSluice(
      ['audience', 'sync', ...about, ...args],
      { SLUICE_KAFKA_BROKERS: testKafka().join(','), ...more },
      { expectedCode: code },
    )
    expect(stderr).toContain(says)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test('whose producer is killed half-way leaves no set that is not whole and looks so', async () => {
    const userIds = Array.from({ length: 20_000 }, (_, user) => `"user-${user}"\n`)
    const file = fileOf('killed.ndjson', userIds.join(''))
    const main = resolve(import.meta.dirname, '../../../src/main.ts')
    const child = spawn(process.execPath, [main, 'audience', 'sync', file, ...about], {
      // With this limit, the sync has some hundred small parts and takes several seconds.
      env: { ...process.env, ...variables, SLUICE_MESSAGE_MAX_BYTES: '1KiB' },
      stdio: 'ignore',
    })
    const exited = once(child, 'exit')
    const admin = otherProgram().admin()
    await admin.connect()
    await until('the second partition is begun', async () => {
      const ends = await admin.fetchTopicOffsets(topic)
      return ends.some(({ partition, high }) => partition === 1 && Number(high) > 0)
    })
    child.kill('SIGKILL')
    expect(await exited).toEqual([null, 'SIGKILL'])
    await admin.disconnect()

    const written = await partsWritten()
    const isWhole = Array.from({ length: partitions }, (_, partition) => {
      const parts = partsOf(written, partition)
      return parts.length === parts[0]?.parts
    })
    expect(isWhole[0]).toBe(true)
    expect(isWhole).toContain(false)
    for (const [partition, whole] of isWhole.entries()) {
      const own = userIds.filter((text) => partitionOf(String(JSON.parse(text)), partitions) === partition)
      const named = new Set(partsOf(written, partition).flatMap((part) => part.userIds))
      expect(named.size === own.length).toBe(whole)
    }
  })
})
