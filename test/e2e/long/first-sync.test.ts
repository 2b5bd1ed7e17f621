import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeTokens } from '../../support/admin.ts'
import { produce } from '../../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { now } from '../../support/strict-clock.ts'
import { until } from '../../support/until.ts'
import { type CatalogData, runSluice, type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { type Scene, setScene, unhurried } from '../scene.ts'

/** Tests of a destination that is connected to an audience space when the space already has members. */

let receiver: Receiver
let scene: Scene
let stateFolder: string
let workers: SluiceProcess[]

beforeEach(async () => {
  stateFolder = mkdtempSync(join(tmpdir(), 'sluice-state-'))
  receiver = await startReceiver({ '/crm': answer(200), '/late': answer(200) })
  workers = []
  scene = await setScene({
    catalog: catalogWith('disconnected'),
    variables: {
      ...unhurried,
      SLUICE_STATE_FOLDER: stateFolder,
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_METRICS_PER_DESTINATION: 'true',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
})

afterEach(async () => {
  for (const worker of workers) await worker.kill()
  scene.close()
  await receiver.stop()
  rmSync(stateFolder, { recursive: true, force: true })
})

/**
 * The state of the destination `late` in the catalog. `disconnected`: `late` is on, but it is not connected
 * to the space.
 */
type Late = 'disconnected' | 'on' | 'off' | 'paused'

function catalogWith(late: Late): CatalogData {
  return {
    sources: [{ id: 'space', kind: 'audiences' }, { id: 'shop' }],
    destinations: [
      { id: 'crm', sources: ['space'], hooks: [{ url: `${receiver.origin}/crm` }] },
      {
        id: 'late',
        state: late === 'disconnected' ? 'on' : late,
        sources: late === 'disconnected' ? ['shop'] : ['space', 'shop'],
        hooks: [{ url: `${receiver.origin}/late` }],
      },
    ],
  }
}

async function start(variables: Record<string, string> = {}): Promise<SluiceProcess> {
  const worker = await startSluice({ ...scene.variables, ...variables })
  workers.push(worker)
  return worker
}

/** Puts `late` into a state in the catalog. Waits until each running worker has read the new catalog. */
async function connect(late: Late): Promise<void> {
  const running = workers.filter(({ isRunning }) => isRunning)
  const before = await Promise.all(running.map(async (worker) => (await worker.wholeLog()).length))
  scene.catalog.rewrite(catalogWith(late))
  for (const [index, { log }] of running.entries()) {
    await until('the catalog is read', () =>
      log.slice(before[index]).some(({ msg }) => msg === 'the catalog has changed'),
    )
  }
}

async function change(userIds: readonly string[], member: boolean): Promise<void> {
  const records = userIds.map((userId) => ({
    key: userId,
    value: JSON.stringify({
      type: 'membership',
      audienceId: 'aud_1',
      audienceName: 'VIP',
      userId,
      member,
      changedAt: now(),
    }),
    headers: { 'source-id': 'space' },
  }))
  await produce(`${scene.prefix}audience-changes`, records)
}

type Body = { type: string; messageId: string; userId: string; traits: { vip: boolean } }

function requestsOf(destination: 'crm' | 'late'): Body[] {
  return receiver.requestsTo(`/${destination}`).map(({ body }): Body => JSON.parse(String(body)))
}

function bodiesOf(destination: 'crm' | 'late'): Body[] {
  return requestsOf(destination).filter(({ type }) => type === 'identify')
}

/** Returns the values that a destination received for each user, in order of arrival. */
function told(destination: 'crm' | 'late'): Map<string, boolean[]> {
  const values = new Map<string, boolean[]>()
  for (const { userId, traits } of bodiesOf(destination))
    values.set(userId, [...(values.get(userId) ?? []), traits.vip])
  return values
}

function named(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`)
}

/** Puts users into the space. Waits until `crm`, which was always connected, has received all of them. */
async function fill(userIds: readonly string[]): Promise<void> {
  await change(userIds, true)
  await until('crm knows them', () => told('crm').size === userIds.length, { timeoutMs: 30_000 })
  await until('all is settled', async () => (await scene.lag()) === 0)
}

async function lateKnows(userIds: readonly string[]): Promise<void> {
  await until(
    'late knows them',
    () => {
      const known = told('late')
      return userIds.every((userId) => known.get(userId)?.at(-1) === true)
    },
    { timeoutMs: 60_000 },
  )
}

function lineOf(worker: SluiceProcess, text: string) {
  return worker.log.find(({ msg }) => msg.includes(text))
}

function sentBy(worker: SluiceProcess): Promise<number> {
  return worker.metric('sluice_first_sync_sent_total', { destination: 'late' })
}

async function isMarked(worker: SluiceProcess): Promise<boolean> {
  return (await worker.metric('sluice_destination_needs_backfill', { destination: 'late' })) === 1
}

describe('a destination that is connected later', () => {
  test('is told once who is in the space, and then what changes', async () => {
    const worker = await start()
    const [members, left] = [named('member', 40), named('left', 5)]
    await fill([...members, ...left])
    await change(left, false)
    await produce(`${scene.prefix}deletions`, [
      {
        key: 'member-0',
        value: JSON.stringify({
          requestId: 'r',
          userId: 'member-0',
          sources: ['space'],
          requestedAt: now(),
        }),
      },
    ])
    await until('the delete has come', () => requestsOf('crm').some(({ type }) => type === 'delete'))
    await until('all have left', () => left.every((userId) => told('crm').get(userId)?.length === 2))
    await until('all is settled', async () => (await scene.lag()) === 0)
    await connect('on')
    const present = members.slice(1)
    await lateKnows(present)
    await until('all is settled', async () => (await scene.lag()) === 0)
    expect(told('late')).toEqual(new Map(present.map((userId) => [userId, [true]])))
    const idsOf = (destination: 'crm' | 'late') =>
      new Map(
        bodiesOf(destination).map(({ userId, messageId, traits }) => [`${userId} ${traits.vip}`, messageId]),
      )
    for (const userId of present)
      expect(idsOf('late').get(`${userId} true`)).toBe(idsOf('crm').get(`${userId} true`))

    expect(await worker.metric('sluice_first_sync_sent_total', { destination: 'late' })).toBe(present.length)
    await until('it is over', async () => (await worker.metric('sluice_first_syncs')) === 0)
    expect(await worker.metric('sluice_first_sync_left')).toBe(0)
    expect(await isMarked(worker)).toBe(false)
    expect(lineOf(worker, 'it is getting the present members')).toMatchObject({
      destination: 'late',
      space: 'space',
      units: 6,
      left: present.length,
    })
    const ended = await until('it says so', () =>
      lineOf(worker, 'has queued all of its members of the space'),
    )
    expect(ended).toMatchObject({
      destination: 'late',
      sent: present.length,
      isComplete: true,
    })

    await change(['member-1'], false)
    await until('it is told what changes', () => told('late').get('member-1')?.length === 2)
    await worker.terminate()
    await start()
    await change(['member-2'], false)
    await until('it is told what changes', () => told('late').get('member-2')?.length === 2)
    await until('all is settled', async () => (await scene.lag()) === 0)
    expect(bodiesOf('late')).toHaveLength(present.length + 2)
  })

  test('is told of all by the next worker where the first was killed, which goes on where that one was', async () => {
    const members = named('member', 400)
    const slowly = { SLUICE_AUDIENCES_FIRST_SYNC_RATE: '100' }
    const worker = await start(slowly)
    await fill(members)
    await connect('on')
    await until('it knows many', () => told('late').size >= 200, { timeoutMs: 60_000 })
    expect(await worker.metric('sluice_first_sync_left', { destination: 'late' })).toBeGreaterThan(0)
    await worker.kill()
    const known = told('late')
    const gone = members.find((userId) => !known.has(userId)) ?? ''
    const [toldBefore = ''] = known.keys()
    await change([gone, toldBefore], false)
    await start(slowly)
    await lateKnows(members.filter((userId) => userId !== gone && userId !== toldBefore))
    await until('all is settled', async () => (await scene.lag()) === 0)
    expect(told('late').get(gone)?.at(-1)).toBe(false)
    expect(told('late').get(toldBefore)?.at(-1)).toBe(false)
    // The next worker sends again what the killed worker had sent since its last saved position, and what was
    // in flight.
    expect(bodiesOf('late').length).toBeLessThan(members.length + 250)
  })

  test('is shown by the admin API, with how many users the audiences have', async () => {
    const members = named('member', 20)
    const worker = await start()
    await fill(members)
    await change(['member-0'], false)
    await until('one has left', () => told('crm').get('member-0')?.length === 2)
    await worker.terminate()
    await connect('paused')
    const tokens = await makeTokens()
    const variables = { ...scene.variables, SLUICE_ADMIN_TOKENS_FILE: tokens.file }
    const admin = await startSluice(variables, { role: 'admin' })
    workers.push(admin)
    await start()
    const headers = { authorization: `Bearer ${tokens.read}` }
    const shown = await until(
      'all is counted',
      async () => {
        const response = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/audiences`, { headers })
        const { spaces, isComplete } = Object(await response.json())
        return isComplete === true && spaces[0].values !== null && spaces
      },
      { timeoutMs: 60_000 },
    )
    expect(shown).toMatchObject([
      {
        id: 'space',
        values: members.length - 1,
        audiences: [{ key: 'vip', values: members.length - 1 }],
        connected: 2,
        destinations: [
          { destination: 'late', state: 'waiting' },
          { destination: 'crm', state: 'complete' },
        ],
      },
    ])
    tokens.remove()
  })

  test('while no worker ran is told by the next one', async () => {
    const members = named('member', 20)
    const worker = await start()
    await fill(members)
    await worker.terminate()
    await connect('on')
    await start()
    await lateKnows(members)
    await until('all is settled', async () => (await scene.lag()) === 0)
    expect(told('late')).toEqual(new Map(members.map((userId) => [userId, [true]])))
  })

  test('is told by two workers, each of its own units, and by the other where one leaves', async () => {
    const members = named('member', 400)
    const slowly = { SLUICE_AUDIENCES_FIRST_SYNC_RATE: '100' }
    const first = await start(slowly)
    const second = await start({ ...slowly, SLUICE_STATE_FOLDER: join(stateFolder, 'second') })
    await fill(members)
    await connect('on')
    await until('both tell it', async () => (await sentBy(first)) > 0 && (await sentBy(second)) > 0)
    await until('it knows some', () => told('late').size >= 100, { timeoutMs: 60_000 })
    expect((await second.terminate()).code).toBe(0)
    await lateKnows(members)
    await until('all is settled', async () => (await scene.lag()) === 0)
    // A worker that stops in good order saves its position, so nothing is sent twice.
    expect(told('late')).toEqual(new Map(members.map((userId) => [userId, [true]])))
  })

  test('that is off is told once it is on, also what it missed meanwhile', async () => {
    const members = named('member', 20)
    const worker = await start()
    await fill(members)
    await connect('off')
    await until(
      'it waits',
      async () => (await worker.metric('sluice_first_syncs', { state: 'waiting' })) === 1,
    )
    await change(['newcomer'], true)
    await until('it has missed one', () => isMarked(worker))
    expect(bodiesOf('late')).toEqual([])
    await connect('on')
    await lateKnows([...members, 'newcomer'])
    await until('it needs no backfill', async () => !(await isMarked(worker)))
  })

  test('and is disconnected before it knows all begins anew when it is back, and is told who has left', async () => {
    const members = named('member', 300)
    const worker = await start({ SLUICE_AUDIENCES_FIRST_SYNC_RATE: '50' })
    await fill(members)
    await connect('on')
    await until('it knows some', () => told('late').size >= 20, { timeoutMs: 60_000 })
    await connect('disconnected')
    await until('that is said', () => lineOf(worker, 'the first sync begins anew when it is back'))
    const [gone = ''] = told('late').keys()
    await change([gone], false)
    await until('crm knows', () => told('crm').get(gone)?.at(-1) === false)
    await worker.terminate()
    expect(told('late').size).toBeLessThan(members.length)
    await start()
    await connect('on')
    await lateKnows(members.filter((userId) => userId !== gone))
    await until('it knows who has left', () => told('late').get(gone)?.at(-1) === false)
  })

  test('is only marked where that is set', async () => {
    const members = named('member', 20)
    const variables = { SLUICE_AUDIENCES_FIRST_SYNC: 'false' }
    const worker = await start(variables)
    await fill(members)
    await connect('on')
    await until('it is marked', () => isMarked(worker))
    expect(lineOf(worker, 'audiences.firstSync (SLUICE_AUDIENCES_FIRST_SYNC) is off')).toMatchObject({
      destination: 'late',
      space: 'space',
    })
    await change(['member-0'], false)
    await until('it is told what changes', () => told('late').size === 1)
    await worker.terminate()
    const next = await start(variables)
    await until('it is still marked', () => isMarked(next))
    await runSluice(
      ['audience', 'backfill', '--space', 'space', '--destination', 'late', '--with-left'],
      scene.variables,
    )
    await lateKnows(members.slice(1))
    await until('it is marked no more', async () => !(await isMarked(next)))
    await next.terminate()
    const last = await start()
    await until('all is settled', async () => (await scene.lag()) === 0)
    expect(await isMarked(last)).toBe(false)
  })
})
