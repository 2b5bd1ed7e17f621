import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Scene, newIds, setScene, unhurried } from '../e2e/scene.ts'
import { createAudienceCustomer, foulBehaviours } from '../support/audience-customer.ts'
import { AudienceFleet, type KafkaUpstream, openAudienceUpstream, tellOf } from '../support/audience-fleet.ts'
import { readAll } from '../support/kafka.ts'
import { Random } from '../support/random.ts'
import { answer, type Receiver, type Script, startReceiver } from '../support/receiver.ts'
import { partitionsOf, type Standing, standingOf } from '../support/stopped-installation.ts'
import { until } from '../support/until.ts'
import { runSluice, runToEnd } from '../support/worker-process.ts'

/** The seed of the changes, the faults and the kills. */
const seed = Number(process.env['SLUICE_TEST_AUDIENCE_SEED'] ?? 1)

const from = 3
const to = 7
const workers = 2
const tiers = { 'retry.2s': 2_000, 'retry.1m': 60_000 } as const
const playSeconds = 20
/**
 * The time in milliseconds by which a message may be late. A worker that has just started takes some time,
 * and the machine also does other things.
 */
const slackMs = 15_000

test('a growth from 3 to 7 partitions that is killed again and again, beside a producer that goes on, loses nothing: every user ends with the last value, and what was parked keeps its times', async () => {
  const random = new Random(seed)
  // No request is answered 429. After a 429, all requests wait for a second, and a delete may then overtake a
  // request that has waited longer.
  const behaviours = foulBehaviours.filter((behaviour) => behaviour !== 'refuses')
  const customer = createAudienceCustomer({ random: new Random(seed + 1), behaviours })
  const shop = { isWell: false }
  const down: Script = (_request, response) => response.writeHead(shop.isWell ? 200 : 503).end()
  const receiver = await startReceiver({ '/crm': customer.script, '/down': down, '/gone': answer(404) })
  const scene = await setGrowingScene(receiver)
  const { prefix } = scene
  const folders = Array.from({ length: workers }, () => mkdtempSync(join(tmpdir(), 'sluice-state-')))
  const layout = { partitions: from }
  const upstream = await openAudienceUpstream({
    prefix,
    customer,
    partitions: () => layout.partitions,
    random: new Random(seed + 2),
  })
  const before = new AudienceFleet(scene, folders)
  const grown: Pick<Scene, 'variables'> = {
    variables: { ...scene.variables, SLUICE_TOPICS_PARTITIONS: `${to}`, SLUICE_TOPICS_GENERATION: '2' },
  }
  const after = new AudienceFleet(grown, folders)
  const live = { isOver: false }
  let living: Promise<void> | undefined
  try {
    const ids = newIds(60)
    await before.startAll()
    await scene.send('shop', ids.slice(0, 30))
    const untilMs = performance.now() + playSeconds * 1_000
    await Promise.all([
      upstream.write(untilMs, { withSyncs: true }),
      before.playKills(new Random(seed + 3), untilMs),
    ])
    await scene.send('shop', ids.slice(30))
    await upstream.sync('Big Spenders', false)
    await until('both tiers have something', async () => (await waitingIn(scene, 'retry.1m')).length >= 40)
    await before.endAll(1)

    // From here on no worker reads, but the producer goes on.
    living = writeOn(upstream, live)
    const grow = (): ReturnType<typeof runToEnd> => runToEnd(['topics', 'grow', `${to}`], scene.variables)
    await until('the killed worker has left the group', async () => {
      const { code, stderr } = await grow()
      expect(code).toBe(1)
      if (stderr.includes('Workers are in the group')) return false
      expect(stderr).toContain('parts of syncs that are not applied')
      return true
    })
    await before.startAll()
    await until(
      'the syncs that nobody completes are refused',
      async () =>
        (await grow()).stderr.includes('Workers are in the group') && (await openParts(scene)) === 0,
      { timeoutMs: 90_000, everyMs: 1_000 },
    )
    await before.endAll(0)
    const endedMs = Date.now()

    const parked = await Promise.all(
      Object.entries(tiers).map(async ([name, waitMs]) =>
        (await waitingIn(scene, name)).map((record) => ({ ...record, dueMs: record.timestamp + waitMs })),
      ),
    )
    const letters = await readAll(`${prefix}dead-letters`)
    const kills = await growKilling(scene, random)
    expect(await partitionsOf(`${prefix}audience-changes`)).toBe(to)

    shop.isWell = true
    layout.partitions = to
    await after.startAll()
    const readyMs = Date.now()
    live.isOver = true
    await living
    const playedMs = performance.now() + playSeconds * 1_000
    await Promise.all([upstream.play(playedMs), after.playKills(new Random(seed + 4), playedMs)])
    customer.recover()
    await runSluice(['topics', 'grow', '--clean'], grown.variables)
    await until('nothing waits', async () => (await scene.lag()) === 0, { timeoutMs: 240_000, everyMs: 500 })

    const wrong = upstream.wrongAt(customer)
    process.stdout.write(
      `seed ${seed}: ${upstream.written} changes, ${upstream.syncs} syncs, ${upstream.deletions} deletions, ${kills} kills of the command, ` +
        `${before.killed.length + after.killed.length} of workers, ${parked.flat().length} parked; ${receiver.requests.length} requests\n`,
    )
    tellOf(
      [...wrong.map(({ user }) => user), ...customer.sentTooLate, ...customer.heldTooLong()],
      customer,
      after,
    )
    expect(wrong).toEqual([])
    expect(customer.sentTooLate).toEqual([])
    expect(customer.heldTooLong()).toEqual([])
    expect(kills).toBeGreaterThanOrEqual(5)
    expectTimes(receiver, parked.flat(), { endedMs, readyMs })
    expect(lost(receiver, ids)).toEqual([])
    const kept = new Set(
      (await readAll(`${prefix}dead-letters`)).map(({ partition, offset }) => `${partition}/${offset}`),
    )
    expect(letters.length).toBeGreaterThanOrEqual(ids.length)
    for (const { partition, offset } of letters) expect(kept).toContain(`${partition}/${offset}`)
  } finally {
    live.isOver = true
    await living?.catch(() => undefined)
    await before.killAll()
    await after.killAll()
    await upstream.close()
    scene.close()
    await receiver.stop()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
})

function setGrowingScene(receiver: Receiver): Promise<Scene> {
  const hooks = (path: string) => [{ url: `${receiver.origin}${path}` }]
  return setScene({
    catalog: {
      sources: [{ id: 'space', kind: 'audiences' }, { id: 'shop' }],
      destinations: [
        { id: 'crm', sources: ['space'], hooks: hooks('/crm') },
        { id: 'down', sources: ['shop'], hooks: hooks('/down') },
        { id: 'gone', sources: ['shop'], hooks: hooks('/gone') },
      ],
    },
    variables: {
      ...unhurried,
      SLUICE_TOPICS_PARTITIONS: `${from}`,
      SLUICE_DELIVERY_TIMEOUT: '500ms',
      SLUICE_RETRY_LADDER: '2s,60s',
      SLUICE_RETRY_THEN: '2s',
      SLUICE_AUDIENCES_SYNC_TIMEOUT: '10s',
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
}

async function writeOn(upstream: KafkaUpstream, live: { readonly isOver: boolean }): Promise<void> {
  while (!live.isOver) await upstream.write(performance.now() + 500, { withSyncs: false })
}

/** Returns the records of a tier that wait for the destination `down`. */
async function waitingIn({ prefix, variables }: Scene, tier: string): Promise<Standing[]> {
  const records = await standingOf(prefix + tier, variables['SLUICE_KAFKA_GROUP_ID'] ?? '')
  return records.filter(({ isSettled, headers }) => !isSettled && headers['destination-id'] === 'down')
}

/** Returns the number of parts of syncs that the group has not settled. */
async function openParts({ prefix, variables }: Scene): Promise<number> {
  const records = await standingOf(`${prefix}audience-changes`, variables['SLUICE_KAFKA_GROUP_ID'] ?? '')
  return records.filter(({ isSettled, value }) => !isSettled && String(value).includes('"type":"sync"'))
    .length
}

/**
 * Runs the growth and kills it, each time a little later, until a run comes to its end. Returns the number of
 * kills.
 */
async function growKilling({ variables }: Scene, random: Random): Promise<number> {
  for (let kills = 0, killAfterMs = 500; ; kills++, killAfterMs += random.below(300)) {
    const { code, stderr } = await runToEnd(['topics', 'grow', `${to}`], variables, { killAfterMs })
    if (code === 0) return kills
    expect([code, stderr]).toEqual([null, expect.not.stringContaining('sluice:')])
  }
}

/**
 * Checks the time at which each parked message came again. It must not come before it was due. It may come at
 * most `slackMs` after it was due, or after the workers were ready if that was later. A worker that was
 * killed before its commit may have parked a message twice. Then the record that is due first counts.
 */
function expectTimes(
  receiver: Receiver,
  parked: readonly (Standing & { dueMs: number })[],
  { endedMs, readyMs }: { endedMs: number; readyMs: number },
): void {
  const came = new Map<string, number>()
  for (const { body, atMs } of receiver.requestsTo('/down')) {
    const { messageId } = JSON.parse(String(body))
    // Earlier requests came from the workers before the growth.
    if (atMs > endedMs && !came.has(messageId)) came.set(messageId, atMs)
  }
  const dueOf = new Map<string, number>()
  for (const { headers, dueMs } of parked) {
    const id = headers['message-id'] ?? ''
    dueOf.set(id, Math.min(dueMs, dueOf.get(id) ?? Infinity))
  }
  expect(dueOf.size).toBeGreaterThan(0)
  const amiss = [...dueOf]
    .map(([id, dueMs]) => ({ id, lateMs: (came.get(id) ?? Infinity) - dueMs, startedMs: readyMs - dueMs }))
    .filter(({ lateMs, startedMs }) => lateMs < 0 || lateMs > Math.max(0, startedMs) + slackMs)
  expect(amiss).toEqual([])
}

function lost(receiver: Receiver, ids: readonly string[]): string[] {
  const came = new Set(
    receiver.requestsTo('/down').map(({ body }) => String(JSON.parse(String(body)).messageId)),
  )
  return ids.filter((id) => !came.has(id))
}
