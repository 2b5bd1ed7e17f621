import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { until } from '../../support/until.ts'
import { iso, partitions, SimulatedLog, SimulatedOwner, topics } from './simulated-log.ts'

/** Tests of the room that the store of a unit takes on the disk. */

let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-room-'))
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

const parts = 12
const usersOfPart = 4_000

/** Yields users of unit 0 without end. Their ids can't be compressed to few bytes. */
function* someUsers(): Generator<string> {
  for (let number = 0; ; number++) {
    const userId = createHash('sha256').update(String(number)).digest('hex')
    if (partitionOf(userId, partitions) === 0) yield userId
  }
}

async function tablesBytes(): Promise<number> {
  const unit = join(folder, 'unit-0')
  const tables = (await readdir(unit)).filter((name) => name.endsWith('.ldb'))
  const sizes = await Promise.all(tables.map(async (name) => (await stat(join(unit, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

test('a large sync leaves no room taken by its parts', async () => {
  const log = new SimulatedLog()
  const owner = new SimulatedOwner(log, { onDisk: folder })
  await owner.begin()
  const users = someUsers()
  const sendPart = (part: number): void => {
    const userIds = Array.from({ length: usersOfPart }, () => users.next().value)
    const head = { type: 'sync', audienceId: 'a1', audienceName: 'Lions', syncId: 's1' }
    const value = { ...head, snapshotAt: iso(log.nowMs), part, parts, userIds }
    log.append(topics.changes, 0, {
      value: Buffer.from(JSON.stringify(value)),
      headers: { 'source-id': 'space' },
    })
  }
  for (let part = 1; part < parts; part++) sendPart(part)
  owner.deliver(topics.changes, 0)
  const stagedBytes = parts * usersOfPart * 64
  await until('they are staged', async () => (await tablesBytes()) > stagedBytes)
  // A second part with the number 1 has other users. The sync is refused, so no states are written.
  sendPart(1)
  owner.deliver(topics.changes, 0)
  await until('all are in the dead letters', () => log.dead.length === parts)
  expect(new Set(log.dead.map(({ reason }) => reason))).toEqual(new Set(['sync_inconsistent']))
  await until('the room is given back', async () => (await tablesBytes()) < 100_000)
  await owner.units.stop()
})
