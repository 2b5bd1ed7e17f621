import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { produce, readAll } from '../../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { now } from '../../support/strict-clock.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { type Scene, setScene, unhurried } from '../scene.ts'

/**
 * Tests of a sync whose producer died before it wrote all parts. The parts that it wrote must make no user
 * leave the audience, whatever else happens in the meantime.
 */

const partitions = 6
const syncTimeoutMs = 4_000

let receiver: Receiver
let scene: Scene
let stateFolder: string
let worker: SluiceProcess

beforeAll(async () => {
  stateFolder = mkdtempSync(join(tmpdir(), 'sluice-state-'))
  receiver = await startReceiver({ '/crm': answer(200) })
  scene = await setScene({
    catalog: {
      sources: [{ id: 'space', kind: 'audiences' }],
      destinations: [{ id: 'crm', sources: ['space'], hooks: [{ url: `${receiver.origin}/crm` }] }],
    },
    variables: {
      ...unhurried,
      SLUICE_STATE_FOLDER: stateFolder,
      SLUICE_AUDIENCES_SYNC_TIMEOUT: `${syncTimeoutMs}ms`,
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
    },
  })
  worker = await startSluice(scene.variables)
})

afterAll(async () => {
  await worker.kill()
  scene.close()
  await receiver.stop()
  rmSync(stateFolder, { recursive: true, force: true })
})

/** Returns 60 users of an audience. Each partition has some of them. */
function membersOf(audience: string): string[] {
  return Array.from({ length: 60 }, (_, index) => `${audience}-${index}`)
}

type Part = { partition: number; part: number; parts: number; userIds: readonly string[] }

/** Returns two parts of a sync for each partition, in the order in which a producer writes them. */
function partsOf(members: readonly string[]): Part[] {
  return Array.from({ length: partitions }, (_, partition) => {
    const own = members.filter((user) => partitionOf(user, partitions) === partition)
    const half = Math.ceil(own.length / 2)
    return [own.slice(0, half), own.slice(half)].map((userIds, index) => ({
      partition,
      part: index + 1,
      parts: 2,
      userIds,
    }))
  }).flat()
}

async function write(
  audience: string,
  syncId: string,
  parts: readonly Part[],
  snapshotAt = now(),
): Promise<void> {
  const records = parts.map(({ partition, ...part }) => ({
    key: null,
    partition,
    value: JSON.stringify({
      type: 'sync',
      audienceId: audience,
      audienceName: audience,
      syncId,
      snapshotAt,
      ...part,
    }),
    headers: { 'source-id': 'space' },
  }))
  await produce(`${scene.prefix}audience-changes`, records)
}

/** Returns the values of a user that arrived at the webhook, in order of arrival. */
function told(user: string): unknown[] {
  return receiver
    .requestsTo('/crm')
    .map(({ body }): { userId: string; traits: object } => JSON.parse(String(body)))
    .filter(({ userId }) => userId === user)
    .flatMap(({ traits }): unknown[] => Object.values(traits))
}

async function lettersOf(syncId: string) {
  const all = await readAll(`${scene.prefix}dead-letters`)
  return all.filter(({ value }) => String(value).includes(syncId))
}

async function join60(audience: string): Promise<string[]> {
  const members = membersOf(audience)
  await write(audience, `${audience} first`, partsOf(members))
  await until('all have joined', () => members.every((user) => told(user).length === 1))
  // The last Identify may arrive before the worker has settled the sync.
  await until('nothing waits', async () => (await scene.lag()) === 0)
  return members
}

/** Returns the parts that a producer writes if it dies in the middle of the fourth partition. */
function firstHalf(parts: readonly Part[]): readonly Part[] {
  return parts.filter(({ partition, part }) => partition < 3 || (partition === 3 && part === 1))
}

test('a sync that its producer left half-way makes nobody leave; after its time it is refused, and a whole one works', async () => {
  const members = await join60('Left Open')
  await write('Left Open', 'dead producer', firstHalf(partsOf(members)))
  const writtenMs = Date.now()
  const letters = await until('it is refused', async () => {
    const found = await lettersOf('dead producer')
    return found.length > 0 ? found : undefined
  })
  expect(Date.now() - writtenMs).toBeGreaterThan(syncTimeoutMs - 1_000)
  expect(letters).toHaveLength(1)
  expect(letters[0]?.headers).toMatchObject({
    reason: 'sync_incomplete',
    detail: 'Send the sync again, whole and with a new syncId: 1 of 2 parts came within 4 seconds.',
    'source-id': 'space',
  })
  expect(letters[0]?.partition).toBe(3)
  expect(await worker.metric('sluice_audience_syncs_total', { outcome: 'sync_incomplete' })).toBe(1)
  expect(await worker.metric('sluice_dead_letters_total', { reason: 'sync_incomplete' })).toBe(1)
  const line = await until('the log says so', () =>
    worker.log.find(({ reason, syncId }) => reason === 'sync_incomplete' && syncId === 'dead producer'),
  )
  expect(line).toMatchObject({ level: 'error', unit: 3, spaceId: 'space', audienceId: 'Left Open' })
  expect(line.msg).toContain('no user has left')
  await until('nothing waits', async () => (await scene.lag()) === 0)
  expect(members.filter((user) => told(user).length !== 1)).toEqual([])

  const [gone = '', ...stay] = members
  await write('Left Open', 'whole again', partsOf([...stay, 'Left Open-new']))
  await until(
    'one has left, one has joined',
    () => told(gone).length === 2 && told('Left Open-new').length === 1,
  )
  await until('nothing waits', async () => (await scene.lag()) === 0)
  expect(told(gone)).toEqual([true, false])
  expect(stay.filter((user) => told(user).length !== 1)).toEqual([])
})

test('what is left of it is refused, and makes nobody leave, by a worker too that begins when another was killed over it', async () => {
  const members = await join60('Killed Over')
  const parts = partsOf(members)
  const snapshotAt = now()
  const before = await appliedSyncs()
  await write('Killed Over', 'half and killed', firstHalf(parts), snapshotAt)
  await until('the first partitions are compared', async () => (await appliedSyncs()) === before + 3)
  await worker.kill()
  worker = await startSluice(scene.variables)
  await until('it is refused', async () => (await lettersOf('half and killed')).length > 0)
  // The producer of the sync was only slow, and now sends the parts that were missing. The worker must not
  // take the second part of partition 3 for the whole sync of this partition.
  await write('Killed Over', 'half and killed', parts.slice(7), snapshotAt)
  await until('nothing waits', async () => (await scene.lag()) === 0)
  const letters = await lettersOf('half and killed')
  expect(letters.map(({ partition, headers }) => [partition, headers['reason']])).toEqual([
    [3, 'sync_incomplete'],
    [3, 'sync_incomplete'],
  ])
  expect(members.filter((user) => told(user).length !== 1)).toEqual([])
})

function appliedSyncs(): Promise<number> {
  return worker.metric('sluice_audience_syncs_total', { outcome: 'applied' })
}
