import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { partitionOf } from '../../src/message/partitioner.ts'
import { produce, readAll, type SeenRecord } from '../support/kafka.ts'
import { answer, type Receiver, type Script, startReceiver } from '../support/receiver.ts'
import { now } from '../support/strict-clock.ts'
import { until } from '../support/until.ts'
import { type CatalogData, runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newNeighbourOf, newNeighbours, newUser, partitions } from './audience-users.ts'
import { type Scene, setScene, unhurried } from './scene.ts'

const waitMs = 1_000

/**
 * The script that each destination's server follows. A test may change the script of the destination that it
 * uses.
 */
const scripts = { crm: answer(200), limited: answer(200), slow: answer(200), off: answer(200) }
const destinations = ['crm', 'limited', 'slow', 'off'] as const
type Destination = (typeof destinations)[number]

let receiver: Receiver
let scene: Scene
let stateFolder: string
let worker: SluiceProcess

beforeAll(async () => {
  stateFolder = mkdtempSync(join(tmpdir(), 'sluice-state-'))
  receiver = await startReceiver(Object.fromEntries(destinations.map((id) => [`/${id}`, behave(id)])))
  scene = await setScene({
    catalog: catalogWithOff('off'),
    variables: {
      ...unhurried,
      SLUICE_STATE_FOLDER: stateFolder,
      SLUICE_DELIVERY_TIMEOUT: '4s',
      SLUICE_RETRY_LADDER: `${waitMs / 1_000}s`,
      SLUICE_RETRY_THEN: `${waitMs / 1_000}s`,
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_METRICS_PER_DESTINATION: 'true',
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

/**
 * Returns the catalog. `state` is the state of the destination `off`. The destination `parted` is not
 * connected to its space.
 */
function catalogWithOff(state: 'on' | 'off', parted?: Destination): CatalogData {
  return {
    sources: [...destinations.map((id) => ({ id: spaceOf(id), kind: 'audiences' })), { id: 'shop' }],
    destinations: destinations.map((id) => ({
      id,
      state: id === 'off' ? state : 'on',
      sources: [
        ...(id === parted ? [] : [spaceOf(id)]),
        ...(id === 'limited' || id === parted ? ['shop'] : []),
      ],
      hooks: [{ url: `${receiver.origin}/${id}` }],
    })),
  }
}

/** Returns a script that always follows the present script of the destination in `scripts`. */
function behave(id: Destination): Script {
  return (...request) => scripts[id](...request)
}

function spaceOf(destination: Destination): string {
  return `space-of-${destination}`
}

type Membership = { name?: string; key?: string; at?: string }

function membership(
  userId: string,
  member: boolean,
  { name = 'Big Spenders', key, at = now() }: Membership = {},
) {
  return {
    type: 'membership',
    audienceId: `id of ${name}`,
    audienceName: name,
    ...(key !== undefined && { audienceKey: key }),
    userId,
    member,
    changedAt: at,
  }
}

type Change = { userId: string }

/** Writes changes to `audience-changes`, as an upstream service does. */
async function change(changes: readonly Change[], space = spaceOf('crm'), partition?: number): Promise<void> {
  const records = changes.map((value) => ({
    key: value.userId,
    value: JSON.stringify(value),
    headers: { 'source-id': space },
    ...(partition !== undefined && { partition }),
  }))
  await produce(`${scene.prefix}audience-changes`, records)
}

type SyncPlan = {
  name: string
  users: readonly string[]
  syncId?: string
  at?: string
  /** The number of parts that the sync claims to have in each partition. Only part 1 is written. */
  parts?: number
}

async function sync({
  name,
  users: members,
  syncId = `sync ${now()}`,
  at = now(),
  parts = 1,
}: SyncPlan): Promise<void> {
  const records = Array.from({ length: partitions }, (_, partition) => ({
    key: null,
    partition,
    value: JSON.stringify({
      type: 'sync',
      audienceId: `id of ${name}`,
      audienceName: name,
      syncId,
      snapshotAt: at,
      part: 1,
      parts,
      userIds: members.filter((user) => partitionOf(user, partitions) === partition),
    }),
    headers: { 'source-id': spaceOf('crm') },
  }))
  await produce(`${scene.prefix}audience-changes`, records)
}

type Body = {
  type: string
  messageId: string
  userId: string
  traits: Record<string, unknown>
  [name: string]: unknown
}

/** Returns the bodies about a user that a destination received, in order of arrival. */
function sent(userId: string, destination: Destination = 'crm'): Body[] {
  return receiver
    .requestsTo(`/${destination}`)
    .map(({ body }): Body => JSON.parse(String(body)))
    .filter((body) => body.userId === userId)
}

function traits(userId: string, destination: Destination = 'crm'): unknown[] {
  return sent(userId, destination).map((body) => body.traits)
}

/**
 * Waits until the worker has handled all earlier changes in the user's partition. To find this out, writes a
 * change of another user to the same partition, and waits for its Identify.
 */
async function allIsDone(userId: string): Promise<void> {
  const marker = newNeighbourOf(userId)
  await change([membership(marker, true, { name: 'Marker' })])
  await until('the marker has come', () => sent(marker).length === 1)
}

async function deadLettersOf(userId: string): Promise<SeenRecord[]> {
  const all = await readAll(`${scene.prefix}dead-letters`)
  return all.filter(({ value }) => String(value).includes(userId))
}

async function deadReasons(userId: string): Promise<(string | undefined)[]> {
  return (await deadLettersOf(userId)).map(({ headers }) => headers['reason'])
}

describe('a change', () => {
  test('gives an Identify with the audience in snake_case; the same again gives nothing, and leaving gives false', async () => {
    const user = newUser()
    const at = now()
    await change([membership(user, true, { name: 'Orders Last 30days', at })])
    await until('it has come', () => sent(user).length === 1)
    expect(sent(user)).toEqual([
      {
        type: 'identify',
        version: 1,
        messageId: expect.stringMatching(/^personas-[\w-]+$/),
        userId: user,
        timestamp: at,
        traits: { orders_last_30days: true },
        context: {
          personas: {
            computation_class: 'audience',
            computation_id: 'id of Orders Last 30days',
            computation_key: 'orders_last_30days',
            namespace: spaceOf('crm'),
            space_id: spaceOf('crm'),
          },
        },
      },
    ])
    await change([membership(user, true, { name: 'Orders Last 30days' })])
    await allIsDone(user)
    expect(sent(user)).toHaveLength(1)
    await change([membership(user, false, { name: 'Orders Last 30days' })])
    await until('the user has left', () => sent(user).length === 2)
    await allIsDone(user)
    expect(traits(user)).toEqual([{ orders_last_30days: true }, { orders_last_30days: false }])
  })

  test('that is older than what is known gives nothing', async () => {
    const user = newUser()
    const earlier = now()
    await change([membership(user, true), membership(user, false, { at: earlier })])
    await allIsDone(user)
    expect(traits(user)).toEqual([{ big_spenders: true }])
  })

  test('of a computed trait comes with any JSON value', async () => {
    const user = newUser()
    const value = { total: 12.5, list: [null, 'é', { __proto__: null, deep: true }], n: -0.1 }
    const values = [value, 'gold', 0, null, [], false]
    for (const [index, one] of values.entries()) {
      await change([
        {
          type: 'trait',
          traitId: 't',
          traitName: 'LTV',
          userId: user,
          value: one,
          changedAt: now(),
        } as Change,
      ])
      await until('it has come', () => sent(user).length === index + 1)
    }
    expect(traits(user)).toEqual(values.map((one) => ({ ltv: JSON.parse(JSON.stringify(one)) })))
  })

  test('that is of no use is a dead letter with its reason, and stops nothing', async () => {
    const [empty = '', early = '', taken = '', lost = '', events = '', good = ''] = newNeighbours(6)
    await change([
      membership(empty, true, { name: '🦄 !!' }),
      membership(early, true, { at: new Date(Date.now() + 3_600_000).toISOString() }),
      membership(taken, true, { name: 'One', key: 'same' }),
      membership(taken, true, { name: 'Other', key: 'same' }),
    ])
    await change([membership(lost, true)], 'nowhere')
    await change([membership(events, true)], 'shop')
    await change([membership(good, true)])
    await until('the good one has come', () => sent(good).length === 1)
    // What comes later is delivered before the dead letters are written.
    await until('all is settled', async () => (await scene.lag()) === 0)
    expect({
      empty: await deadReasons(empty),
      early: await deadReasons(early),
      taken: await deadReasons(taken),
      lost: await deadReasons(lost),
      events: await deadReasons(events),
    }).toEqual({
      empty: ['bad_property_name'],
      early: ['ahead_of_time'],
      taken: ['bad_property_name'],
      lost: ['unknown_source'],
      events: ['unknown_source'],
    })
    expect(traits(taken)).toEqual([{ same: true }])
  })

  test('in the wrong partition is moved to that of its user', async () => {
    const user = newUser()
    const right = partitionOf(user, partitions)
    await change([membership(user, true)], spaceOf('crm'), (right + 1) % partitions)
    await until('it has come', () => sent(user).length === 1)
    const records = (await readAll(`${scene.prefix}audience-changes`)).filter(({ key }) => key === user)
    const places = records.map(({ partition, headers }) => ({ partition, isMoved: 'origin' in headers }))
    expect(places).toHaveLength(2)
    expect(places).toContainEqual({ partition: (right + 1) % partitions, isMoved: false })
    expect(places).toContainEqual({ partition: right, isMoved: true })
    expect(traits(user)).toEqual([{ big_spenders: true }])
  })
})

describe('a sync', () => {
  test('gives an Identify of each member at first, then of those alone who have joined or left, and an empty one ends it', async () => {
    const name = 'Whole'
    const members = Array.from({ length: 60 }, newUser)
    await sync({ name, users: members })
    await until('all have joined', () => members.every((user) => sent(user).length === 1))
    const joined = newUser()
    await sync({ name, users: [...members.slice(10), joined] })
    await until('ten have left', () => members.slice(0, 10).every((user) => sent(user).length === 2))
    await until('one has joined', () => sent(joined).length === 1)
    const before = members.map((user) => traits(user).map((one) => Object.values(Object(one))[0]))
    expect(before).toEqual(members.map((_, index) => (index < 10 ? [true, false] : [true])))
    await sync({ name, users: [] })
    const left = [...members.slice(10), joined]
    await until('all have left', () => left.every((user) => sent(user).length === 2))
    expect(new Set(left.map((user) => JSON.stringify(traits(user))))).toEqual(
      new Set([JSON.stringify([{ whole: true }, { whole: false }])]),
    )
    expect(members.slice(0, 10).every((user) => sent(user).length === 2)).toBe(true)
  })

  test('whose parts are not all there lets nobody leave; a newer one that is whole overrules it', async () => {
    const name = 'Half'
    const members = Array.from({ length: 30 }, newUser)
    await sync({ name, users: members })
    await until('all have joined', () => members.every((user) => sent(user).length === 1))
    const half = `half ${now()}`
    await sync({ name, users: members.slice(0, 5), syncId: half, parts: 2 })
    for (const user of members.slice(-10)) await allIsDone(user)
    expect(members.filter((user) => sent(user).length !== 1)).toEqual([])
    await sync({ name, users: members.slice(0, 29) })
    const [last = ''] = members.slice(-1)
    await until('one has left', () => sent(last).length === 2)
    const letters = await until('its parts are dead letters', async () => {
      const found = await deadLettersOf(half)
      return found.length === partitions ? found : undefined
    })
    expect(new Set(letters.map(({ headers }) => headers['reason']))).toEqual(new Set(['sync_outdated']))
    expect(members.slice(0, 29).filter((user) => sent(user).length !== 1)).toEqual([])
  })
})

describe('a destination', () => {
  test('that was failing gets the newest value alone', async () => {
    const user = newUser()
    scripts.limited = answer(429)
    await change([membership(user, true)], spaceOf('limited'))
    await until('it was tried', () => sent(user, 'limited').length === 1)
    await change([membership(user, false)], spaceOf('limited'))
    await change([membership(user, true)], spaceOf('limited'))
    await change([membership(user, false)], spaceOf('limited'))
    // The second of the four values is the same as the newest.
    await allIsDone(user)
    const known = sent(user, 'limited').length
    await until('the newest was tried', () => traits(user, 'limited').slice(known).some(isFalse))
    const tried = sent(user, 'limited').length
    scripts.limited = answer(200)
    await until('it has the newest', () => traits(user, 'limited').slice(tried).some(isFalse))
    await until('nothing waits', async () => (await scene.lag()) === 0)
    expect(traits(user, 'limited').slice(tried)).toEqual([{ big_spenders: false }])
    expect(await worker.metric('sluice_deliveries_total', { verdict: 'superseded' })).toBeGreaterThan(0)
  })

  test('that may yet act on an older value gets the newest once more', async () => {
    const user = newUser()
    scripts.slow = (_request, response, nth) => {
      if (nth > 1) response.writeHead(200).end()
    }
    await change([membership(user, true)], spaceOf('slow'))
    await until('it hangs', () => sent(user, 'slow').length === 1)
    await change([membership(user, false)], spaceOf('slow'))
    await until('the newest has come twice', () => sent(user, 'slow').length === 3)
    await until('nothing waits', async () => (await scene.lag()) === 0)
    expect(traits(user, 'slow')).toEqual([
      { big_spenders: true },
      { big_spenders: false },
      { big_spenders: false },
    ])
    const [, first, again] = sent(user, 'slow')
    expect(again).toEqual(first)
  })

  test('that is off when a value changes needs a backfill, by every worker, until a whole one is made', async () => {
    const [user, left] = [newUser(), newUser()]
    expect(await needsBackfill('off')).toBe(0)
    await change([membership(user, true), membership(left, true)], spaceOf('off'))
    await change([membership(left, false)], spaceOf('off'))
    await until('it is told', async () => (await needsBackfill('off')) === 1)
    expect(await needsBackfill('crm')).toBe(0)
    await until('nothing waits', async () => (await scene.lag()) === 0)
    expect(sent(user, 'off')).toEqual([])

    await worker.kill()
    worker = await startSluice(scene.variables)
    await until('the next worker tells it', async () => (await needsBackfill('off')) === 1)
    await switchOff('on')
    const part = await backfill('off', [])
    expect(part.stdout).toContain(
      'mark     stays: off needs a backfill of all of space-of-off, with --with-left',
    )
    await until('who is in it is told', () => traits(user, 'off').length === 1)
    expect(sent(left, 'off')).toEqual([])
    const whole = await backfill('off', ['--with-left'])
    expect(whole.stdout).toContain('mark     taken down: off has missed nothing more of space-of-off')
    await until('who has left is told', () => traits(left, 'off').some(isFalse))
    await until('the worker knows', async () => (await needsBackfill('off')) === 0)

    await switchOff('off')
    await change([membership(user, false)], spaceOf('off'))
    await until('it is told again', async () => (await needsBackfill('off')) === 1)
  })

  test('that was parted from its space is told all of it once it has it again, also who has left', async () => {
    const [user, left] = [newUser(), newUser()]
    scripts.slow = answer(200)
    await change([membership(left, true)], spaceOf('slow'))
    await until('it is told', () => sent(left, 'slow').length === 1)
    expect(await needsBackfill('slow')).toBe(0)
    await rewrite(catalogWithOff('off', 'slow'))
    await change([membership(user, true), membership(left, false)], spaceOf('slow'))
    await until('nothing waits', async () => (await scene.lag()) === 0)
    expect(sent(user, 'slow')).toEqual([])
    await rewrite(catalogWithOff('off'))
    await until('who has left is told', () => traits(left, 'slow').some(isFalse))
    await until('the user is told', () => traits(user, 'slow').length === 1)
    await until('nothing waits', async () => (await worker.metric('sluice_first_syncs')) === 0)
    await until('it lacks nothing', async () => (await needsBackfill('slow')) === 0)
  })
})

describe('a deletion request', () => {
  test('is delivered as a delete for each source, and suppresses what waits', async () => {
    const user = newUser()
    scripts.limited = (request, response) =>
      response.writeHead(JSON.parse(String(request.body)).type === 'delete' ? 200 : 429).end()
    const track = { type: 'track', userId: user, event: 'Order Completed' }
    await produce(`${scene.prefix}events`, [
      { key: user, value: JSON.stringify(track), headers: { 'source-id': 'shop' } },
    ])
    await change([membership(user, true)], spaceOf('limited'))
    await until('both were tried', () => new Set(sent(user, 'limited').map(({ type }) => type)).size === 2)
    const request = {
      requestId: `request-${user}`,
      userId: user,
      sources: ['shop', spaceOf('limited')],
      requestedAt: now(),
    }
    await produce(`${scene.prefix}deletions`, [{ key: user, value: JSON.stringify(request) }])
    const deletes = (): Body[] => sent(user, 'limited').filter(({ type }) => type === 'delete')
    await until('two deletes have come', () => deletes().length === 2)
    expect(new Set(deletes().map(({ messageId }) => messageId)).size).toBe(2)
    expect(deletes().map(({ messageId: _messageId, ...rest }) => rest)).toEqual(
      expect.arrayContaining(
        request.sources.map((sourceId) => ({
          type: 'delete',
          userId: user,
          timestamp: request.requestedAt,
          context: { sourceId },
        })),
      ),
    )
    await until('nothing waits', async () => (await scene.lag()) === 0)
    expect(await worker.metric('sluice_deliveries_total', { verdict: 'suppressed' })).toBe(2)
    scripts.limited = answer(200)
    const before = sent(user, 'limited').length
    await change([membership(user, true)], spaceOf('limited'))
    await until('what comes after it is new', () => sent(user, 'limited').length > before)
    expect(traits(user, 'limited').at(-1)).toEqual({ big_spenders: true })
  })
})

/** Returns the number of records from which the worker restored the states of all units. */
async function restored(): Promise<number> {
  const lines = await until('all units are there', () => {
    const found = worker.log.filter(({ msg }) => msg === 'the state of a unit is complete')
    return found.length >= partitions ? found : undefined
  })
  expect(new Set(lines.map(({ unit }) => unit)).size).toBe(partitions)
  return lines.reduce((sum, { records }) => sum + Number(records), 0)
}

describe('the state', () => {
  const name = 'Kept'
  const members = Array.from({ length: 60 }, (_, index) => `kept-${index}`)

  async function syncTellsTheDifferenceAlone(gone: string): Promise<void> {
    const before = new Map(members.map((user) => [user, sent(user).length]))
    await sync({ name, users: members.filter((user) => user !== gone) })
    await until('one has left', () => sent(gone).length === (before.get(gone) ?? 0) + 1)
    for (const user of members.slice(0, 10)) await allIsDone(user)
    expect(members.filter((user) => user !== gone && sent(user).length !== before.get(user))).toEqual([])
    await change([membership(gone, true, { name })])
    await until('it is back', () => sent(gone).length === (before.get(gone) ?? 0) + 2)
  }

  test('is found again after a stop, and read again where its folder is gone', async () => {
    await sync({ name, users: members })
    await until('all have joined', () => members.every((user) => sent(user).length === 1))
    await until('nothing waits', async () => (await scene.lag()) === 0)
    const { code } = await worker.terminate()
    expect(code).toBe(0)
    worker = await startSluice(scene.variables)
    expect(await restored()).toBeLessThan(10)
    await syncTellsTheDifferenceAlone('kept-0')

    await worker.terminate()
    rmSync(stateFolder, { recursive: true })
    worker = await startSluice(scene.variables)
    expect(await restored()).toBeGreaterThan(members.length)
    await syncTellsTheDifferenceAlone('kept-1')
  })
})

/** Returns 1 if the worker says that the destination lacks values, and 0 if not. */
function needsBackfill(destination: Destination): Promise<number> {
  return worker.metric('sluice_destination_needs_backfill', { destination })
}

function isFalse(value: unknown): boolean {
  return Object.values(Object(value)).includes(false)
}

function switchOff(state: 'on' | 'off'): Promise<void> {
  return rewrite(catalogWithOff(state))
}

async function rewrite(catalog: CatalogData): Promise<void> {
  await worker.untilLogged('the catalog has changed', () => scene.catalog.rewrite(catalog))
}

function backfill(destination: Destination, args: readonly string[]): ReturnType<typeof runSluice> {
  return runSluice(
    ['audience', 'backfill', '--space', spaceOf(destination), '--destination', destination, ...args],
    scene.variables,
  )
}

test('a backfill gives one destination the present values once more, and no other', async () => {
  const [present, left] = [newUser(), newUser()]
  const name = 'Filled Again'
  await change([membership(present, true, { name }), membership(left, true, { name })])
  await change([membership(left, false, { name })])
  const told = [{ filled_again: true }, { filled_again: false }]
  await until('all is told', () => traits(present).length === 1 && traits(left).at(-1) !== undefined)
  await until('the last is told', () => JSON.stringify(traits(left).at(-1)) === JSON.stringify(told[1]))
  const before = traits(left)
  await backfill('crm', ['--audience', `id of ${name}`])
  await until('it is told again', () => traits(present).length === 2)
  await until('all is settled', async () => (await scene.lag()) === 0)
  expect(traits(present)).toEqual([told[0], told[0]])
  expect(new Set(sent(present).map(({ messageId }) => messageId)).size).toBe(1)
  expect(traits(left)).toEqual(before)
})
