import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Producer, Partitioners } from 'kafkajs'
import { expect, test } from 'vitest'
import { partitionOf } from '../../src/message/partition.ts'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { otherProgram } from '../support/kafka.ts'
import { Random } from '../support/mutation.ts'
import { type Receiver, type Script, startReceiver } from '../support/receiver.ts'
import { createTrust, type Trust } from '../support/trust.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

/** For so long everything goes wrong; then nothing does. */
const seconds = Number(process.env['SLUICE_TEST_AUDIENCE_SECONDS'] ?? 70)
/** Of the changes, the faults and the kills. The same seed makes the same choices, though not at the same moments. */
const seed = Number(process.env['SLUICE_TEST_AUDIENCE_SEED'] ?? 1)

const partitions = 6
const workers = 3
const timeoutMs = 500
const rungMs = 2_000
/** What is applied late lands before the next try of the same delivery is due. */
const mostLateMs = 1_500
/** What was begun before a `delete` came has come by then. */
const mostBehindMs = 1_000
const audiences = ['Big Spenders', 'New Users'] as const
const traits = ['LTV', 'Plan'] as const
/** The same again, with its fields in another order, is no news. */
const traitValues: readonly unknown[] = [
  'null',
  '0',
  '-1.5',
  '1e21',
  '""',
  '"gold"',
  'true',
  'false',
  '[]',
  '{}',
  '[1,[null,"é"]]',
  '{"a":1,"b":{"c":[]}}',
  '{"b":{"c":[]},"a":1}',
  '{"__proto__":{"x":1}}',
].map((text): unknown => JSON.parse(text))
const users = Array.from({ length: 60 }, (_, index) => `user-${index}`)

test('while workers are killed and their customer fails, times out and acts late, it ends with the last value of every user, and of those deleted is sent nothing older', async () => {
  const customer = createCustomer(new Random(seed))
  const trust = createTrust('https')
  const receiver = await startReceiver(customer.script, trust.secured)
  const scene = await setAudienceScene(receiver, trust)
  const folders = Array.from({ length: workers }, () => mkdtempSync(join(tmpdir(), 'sluice-state-')))
  const fleet = new Fleet(scene, folders)
  const upstream = await openUpstream(scene, customer, new Random(seed + 1))
  try {
    await fleet.startAll()
    const untilMs = performance.now() + seconds * 1_000
    await Promise.all([upstream.play(untilMs), fleet.playKills(new Random(seed + 2), untilMs)])
    customer.recover()
    await until('nothing waits', async () => (await scene.lag()) === 0, { timeoutMs: 90_000, everyMs: 500 })
    process.stdout.write(
      `seed ${seed}: ${upstream.written} changes, ${upstream.syncs} syncs, ${upstream.deletions} deletions, ${fleet.killed.length} kills; ` +
        `${receiver.requests.length} requests, ${customer.late} of them applied late\n`,
    )
    const wrong = upstream
      .desired()
      .map(([user, property, value]) => ({ user, property, value, has: customer.valueOf(user, property) }))
      .filter(({ value, has }) => !isDeepStrictEqual(has, value))
    tellOf(
      [...wrong.map(({ user }) => user), ...customer.sentTooLate, ...customer.heldTooLong()],
      customer,
      fleet,
    )
    expect(wrong).toEqual([])
    expect(customer.sentTooLate).toEqual([])
    expect(customer.heldTooLong()).toEqual([])
    expect(upstream.deletions).toBeGreaterThan(0)
    expect(fleet.killed.length).toBeGreaterThan(0)
    expect(customer.late).toBeGreaterThan(0)
  } finally {
    await fleet.killAll()
    await upstream.close()
    scene.close()
    await receiver.stop()
    trust.remove()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
})

/** For whoever has to find out why: all that came of the users that these lines begin with, and when workers were killed. */
function tellOf(lines: readonly string[], customer: Customer, { killed }: Fleet): void {
  const amiss = users.filter((user) => lines.some((line) => line.split(' ')[0] === user))
  if (amiss.length > 0) process.stdout.write(`workers were killed at ${killed.join(', ')}\n`)
  for (const user of amiss) process.stdout.write(`${user}:\n${customer.historyOf(user).join('\n')}\n`)
}

function timeOfDay(): string {
  return new Date().toISOString().slice('yyyy-mm-ddT'.length)
}

function setAudienceScene(receiver: Receiver, trust: Trust): Promise<Scene> {
  return setScene({
    catalog: {
      sources: [{ id: 'space', kind: 'audiences' }],
      destinations: [{ id: 'crm', sources: ['space'], hooks: [{ url: `${receiver.origin}/crm` }] }],
    },
    variables: {
      ...unhurried,
      ...trust.variables,
      SLUICE_DELIVERY_TIMEOUT: `${timeoutMs}ms`,
      SLUICE_RETRY_LADDER: `${rungMs / 1_000}s`,
      SLUICE_RETRY_THEN: `${rungMs / 1_000}s`,
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
}

/** A server with one hook, which does what it is told, though it doesn't always say so, nor at once. */
function createCustomer(random: Random) {
  const values = new Map<string, Map<string, Held>>()
  const deletes = new Map<string, { upToMs: number; sinceMs: number }>()
  const sentTooLate: string[] = []
  const history = new Map<string, string[]>()
  let isWell = false
  let late = 0

  function note(userId: string, line: string): void {
    const lines = history.get(userId) ?? []
    history.set(userId, lines)
    lines.push(`${timeOfDay()} ${line}`)
  }

  function take({ type, userId, timestamp, traits: given }: Body): void {
    note(userId, `applied: ${type} of ${timestamp} ${JSON.stringify(given ?? {})}`)
    const atMs = Date.parse(timestamp)
    const held = values.get(userId) ?? new Map<string, Held>()
    values.set(userId, held)
    if (type === 'delete') {
      for (const [property, { atMs: since }] of held) if (since <= atMs) held.delete(property)
      return
    }
    for (const [property, value] of Object.entries(given ?? {})) held.set(property, { value, atMs })
  }

  function hear({ type, userId, timestamp }: Body): void {
    const atMs = Date.parse(timestamp)
    const before = deletes.get(userId)
    if (type === 'delete') {
      if (before === undefined || before.upToMs < atMs)
        deletes.set(userId, { upToMs: atMs, sinceMs: performance.now() })
    } else if (before !== undefined && atMs <= before.upToMs) {
      const behindMs = performance.now() - before.sinceMs
      if (behindMs > mostBehindMs)
        sentTooLate.push(
          `${userId} of ${before.upToMs - atMs} ms before its deletion, ${behindMs} ms after its delete`,
        )
    }
  }

  const script: Script = ({ body: bytes }, response) => {
    const body: Body = JSON.parse(String(bytes))
    hear(body)
    const apply = (): void => take(body)
    const applyLate = (): void => {
      late++
      setTimeout(apply, random.below(mostLateMs))
    }
    const behaviour = isWell ? 'well' : random.pick(behaviours)
    note(body.userId, `${body.type} of ${body.timestamp} ${JSON.stringify(body.traits ?? {})}: ${behaviour}`)
    switch (behaviour) {
      case 'refuses':
        response.writeHead(429).end()
        return
      case 'fails':
        response.writeHead(503).end()
        return
      case 'fails but acts':
        apply()
        response.writeHead(500).end()
        return
      case 'fails and acts late':
        applyLate()
        response.writeHead(500).end()
        return
      case 'resets and acts late':
        applyLate()
        response.destroy()
        return
      case 'hangs':
        return
      case 'hangs and acts late':
        applyLate()
        return
      case 'well':
        apply()
        response.writeHead(200).end()
    }
  }

  return {
    script,
    get late() {
      return late
    },
    recover() {
      isWell = true
    },
    /** What was sent of a user though the `delete` that is newer had come before. */
    sentTooLate,
    /** What it holds of users though it is older than their deletion. */
    heldTooLong: () =>
      [...values].flatMap(([user, held]) =>
        [...held]
          .filter(([, { atMs }]) => atMs <= (deletes.get(user)?.upToMs ?? -1))
          .map(([property]) => `${user} ${property}`),
      ),
    historyOf: (user: string): readonly string[] => history.get(user) ?? [],
    /** How long it is since the first `delete` of that time came; `undefined`: none has. */
    msSinceDelete(user: string, atMs: number): number | undefined {
      const seen = deletes.get(user)
      return seen === undefined || seen.upToMs < atMs ? undefined : performance.now() - seen.sinceMs
    },
    /** Who was never told of an audience is not in it. */
    valueOf(user: string, property: string): unknown {
      const held = values.get(user)?.get(property)
      return held === undefined && isAudience(property) ? false : held?.value
    },
  }
}

type Customer = ReturnType<typeof createCustomer>
type Held = { value: unknown; atMs: number }
type Body = { type: string; userId: string; timestamp: string; traits?: object }

function propertyOf(name: string): string {
  return name.toLowerCase().replace(' ', '_')
}

function isAudience(property: string): boolean {
  return audiences.some((name) => propertyOf(name) === property)
}

const behaviours = [
  'well',
  'well',
  'well',
  'well',
  'well',
  'refuses',
  'fails',
  'fails but acts',
  'fails and acts late',
  'resets and acts late',
  'hangs',
  'hangs and acts late',
] as const

/** Workers with a volume each. */
class Fleet {
  readonly #scene: Scene
  readonly #folders: readonly string[]
  readonly #running: SluiceProcess[] = []
  /** When each kill was. */
  readonly killed: string[] = []

  constructor(scene: Scene, folders: readonly string[]) {
    this.#scene = scene
    this.#folders = folders
  }

  async startAll(): Promise<void> {
    this.#running.push(...(await Promise.all(this.#folders.map((folder) => this.#start(folder)))))
  }

  async playKills(random: Random, untilMs: number): Promise<void> {
    while (performance.now() < untilMs) {
      await passTime(2_000 + random.below(5_000))
      const at = random.below(workers)
      const folder = this.#folders[at]
      if (folder === undefined) continue
      await this.#running[at]?.kill()
      this.killed.push(timeOfDay())
      await passTime(random.below(3_000))
      // Now and then its volume is lost, too.
      if (random.oneIn(4)) rmSync(folder, { recursive: true })
      this.#running[at] = await this.#start(folder)
    }
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#running.map((worker) => worker.kill()))
  }

  #start(folder: string): Promise<SluiceProcess> {
    return startSluice({ ...this.#scene.variables, SLUICE_STATE_FOLDER: folder }, { readyMs: 60_000 })
  }
}

type Desired = { atMs: number; value: unknown }
type Change = { user: string; name: string; value: unknown; atMs: number }

/**
 * Changes that come late, twice and out of order, whole syncs and halves of some, and deletions. From the request to the
 * `delete`, and until all that the customer was sent before has been done, nothing new is said of that user; then also
 * changes come that are older than the request.
 */
async function openUpstream({ prefix }: Scene, customer: Customer, random: Random) {
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const desired = new Map<string, Desired>()
  /** Since when, of users whose `delete` has not come yet. */
  const deleting = new Map<string, number>()
  let written = 0
  let syncs = 0
  let deletions = 0
  let lastMs = 0

  /** Each time is of one change only, or of one sync. */
  function now(): number {
    lastMs = Math.max(Date.now(), lastMs + 1)
    return lastMs
  }

  function want(user: string, name: string, next: Desired): void {
    const key = `${user}\n${name}`
    const held = desired.get(key)
    if (held === undefined || next.atMs > held.atMs) desired.set(key, next)
  }

  function newChange(user: string, atMs: number): Change {
    return random.oneIn(3)
      ? { user, name: random.pick(traits), value: random.pick(traitValues), atMs }
      : { user, name: random.pick(audiences), value: random.oneIn(2), atMs }
  }

  async function change(): Promise<void> {
    const changes = Array.from({ length: 1 + random.below(8) }, () => newChange(random.pick(users), now()))
    for (const { user, name, value, atMs } of changes) want(user, name, { atMs, value })
    const order = changes.toSorted(() => random.below(3) - 1)
    const repeated = random.oneIn(3) ? order.slice(0, 2) : []
    await sendChanges([...order, ...repeated])
    written += order.length
  }

  async function sendChanges(changes: readonly Change[]): Promise<void> {
    await send(
      producer,
      `${prefix}audience-changes`,
      changes.map(({ user, name, value, atMs }) => ({
        key: user,
        ...(random.oneIn(10) && { partition: random.below(partitions) }),
        value: JSON.stringify({
          ...(traits.some((trait) => trait === name)
            ? { type: 'trait', traitId: name, traitName: name, value }
            : { type: 'membership', audienceId: name, audienceName: name, audienceKey: null, member: value }),
          userId: user,
          changedAt: new Date(atMs).toISOString(),
        }),
      })),
    )
  }

  async function requestDeletion(): Promise<void> {
    const user = random.pick(users)
    if (deleting.has(user)) return
    const atMs = now()
    deleting.set(user, atMs)
    for (const name of [...audiences, ...traits]) desired.delete(`${user}\n${name}`)
    const requestedAt = new Date(atMs).toISOString()
    const request = { requestId: `request-${atMs}`, userId: user, sources: ['space'], requestedAt }
    await send(producer, `${prefix}deletions`, [{ key: user, value: JSON.stringify(request) }])
    deletions++
  }

  /** Of users whose `delete` has come, late changes are sent that are older. */
  async function endDeletions(): Promise<void> {
    for (const [user, atMs] of deleting) {
      const sinceMs = customer.msSinceDelete(user, atMs)
      if (sinceMs === undefined) continue
      deleting.delete(user)
      const late = Array.from({ length: 1 + random.below(4) }, () =>
        newChange(user, atMs - random.below(10_000)),
      )
      await sendChanges(late)
    }
  }

  async function sync(audience: string, isWhole: boolean): Promise<void> {
    const atMs = now()
    const members = new Set(users.filter(() => random.oneIn(2)))
    const parts = isWhole ? 1 : 2
    await send(
      producer,
      `${prefix}audience-changes`,
      Array.from({ length: partitions }, (_, partition) => ({
        key: null,
        partition,
        value: JSON.stringify({
          type: 'sync',
          audienceId: audience,
          audienceName: audience,
          syncId: `sync-${atMs}`,
          snapshotAt: new Date(atMs).toISOString(),
          part: 1,
          parts,
          userIds: [...members].filter((user) => partitionOf(user, partitions) === partition),
        }),
      })),
    )
    if (!isWhole) return
    syncs++
    for (const user of users) {
      const isKnown = desired.has(`${user}\n${audience}`)
      // It depends on which of the two is read first.
      if (deleting.has(user)) {
        desired.delete(`${user}\n${audience}`)
        continue
      }
      if (isKnown || members.has(user)) want(user, audience, { atMs, value: members.has(user) })
    }
  }

  return {
    get written() {
      return written
    },
    get syncs() {
      return syncs
    },
    get deletions() {
      return deletions
    },
    async play(untilMs: number): Promise<void> {
      while (performance.now() < untilMs) {
        await change()
        if (random.oneIn(30)) await sync(random.pick(audiences), random.below(3) > 0)
        if (random.oneIn(15)) await requestDeletion()
        await endDeletions()
        await passTime(random.below(400))
      }
      await until(
        'every delete has come',
        async () => {
          await endDeletions()
          return deleting.size === 0
        },
        { timeoutMs: 60_000, everyMs: 200 },
      )
      // Halves that are left over come to their end by a newer one.
      for (const audience of audiences) await sync(audience, true)
    },
    /** What every user's properties are to be. */
    desired: () =>
      [...desired].map(([key, { value }]) => {
        const [user = '', name = ''] = key.split('\n')
        return [user, propertyOf(name), value] as const
      }),
    close: () => producer.disconnect(),
  }
}

type Sendable = { key: string | null; value: string; partition?: number }

async function send(producer: Producer, topic: string, records: readonly Sendable[]): Promise<void> {
  const messages = records.map((record) => ({ ...record, headers: { 'source-id': 'space' } }))
  await producer.send({ topic, messages, acks: -1 })
}
