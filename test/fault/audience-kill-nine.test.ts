import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import { type Producer, Partitioners } from 'kafkajs'
import { expect, test } from 'vitest'
import { partitionOf } from '../../src/message/partition.ts'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { otherProgram } from '../support/kafka.ts'
import { Random } from '../support/mutation.ts'
import { type Receiver, type Script, startReceiver } from '../support/receiver.ts'
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
const audiences = ['Big Spenders', 'New Users'] as const
const users = Array.from({ length: 60 }, (_, index) => `user-${index}`)

test('while workers are killed and their customer fails, times out and acts late, it ends with the last value of every user', async () => {
  const customer = createCustomer(new Random(seed))
  const receiver = await startReceiver(customer.script)
  const scene = await setAudienceScene(receiver)
  const folders = Array.from({ length: workers }, () => mkdtempSync(join(tmpdir(), 'sluice-state-')))
  const fleet = new Fleet(scene, folders)
  const upstream = await openUpstream(scene, new Random(seed + 1))
  try {
    await fleet.startAll()
    const untilMs = performance.now() + seconds * 1_000
    await Promise.all([upstream.play(untilMs), fleet.playKills(new Random(seed + 2), untilMs)])
    customer.recover()
    await until('nothing waits', async () => (await scene.lag()) === 0, { timeoutMs: 90_000, everyMs: 500 })
    process.stdout.write(
      `seed ${seed}: ${upstream.written} changes, ${upstream.syncs} syncs, ${fleet.kills} kills; ` +
        `${receiver.requests.length} requests, ${customer.late} of them applied late\n`,
    )
    const wrong = upstream
      .desired()
      .map(([user, property, value]) => ({ user, property, value, has: customer.valueOf(user, property) }))
      .filter(({ value, has }) => has !== value)
    expect(wrong).toEqual([])
    expect(fleet.kills).toBeGreaterThan(0)
    expect(customer.late).toBeGreaterThan(0)
  } finally {
    await fleet.killAll()
    await upstream.close()
    scene.close()
    await receiver.stop()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
})

function setAudienceScene(receiver: Receiver): Promise<Scene> {
  return setScene({
    catalog: {
      sources: [{ id: 'space', kind: 'audiences' }],
      destinations: [{ id: 'crm', sources: ['space'], hooks: [{ url: `${receiver.origin}/crm` }] }],
    },
    variables: {
      ...unhurried,
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
  const values = new Map<string, unknown>()
  let isWell = false
  let late = 0

  const script: Script = ({ body }, response) => {
    const { userId, traits } = JSON.parse(String(body))
    const apply = (): void => {
      for (const [property, value] of Object.entries(Object(traits)))
        values.set(`${userId} ${property}`, value)
    }
    const applyLate = (): void => {
      late++
      setTimeout(apply, random.below(mostLateMs))
    }
    switch (isWell ? 'well' : random.pick(behaviours)) {
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
    /** Who was never told of an audience is not in it. */
    valueOf: (user: string, property: string): unknown => values.get(`${user} ${property}`) ?? false,
  }
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
  kills = 0

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
      this.kills++
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

type Desired = { atMs: number; value: boolean }

/** Changes that come late, twice and out of order, whole syncs and halves of some. */
async function openUpstream({ prefix }: Scene, random: Random) {
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const desired = new Map<string, Desired>()
  let written = 0
  let syncs = 0
  let lastMs = 0

  /** Each time is of one change only, or of one sync. */
  function now(): number {
    lastMs = Math.max(Date.now(), lastMs + 1)
    return lastMs
  }

  function want(user: string, audience: string, next: Desired): void {
    const key = `${user}\n${audience}`
    const held = desired.get(key)
    if (held === undefined || next.atMs > held.atMs) desired.set(key, next)
  }

  async function change(): Promise<void> {
    const changes = Array.from({ length: 1 + random.below(8) }, () => ({
      user: random.pick(users),
      audience: random.pick(audiences),
      value: random.oneIn(2),
      atMs: now(),
    }))
    for (const { user, audience, value, atMs } of changes) want(user, audience, { atMs, value })
    const order = changes.toSorted(() => random.below(3) - 1)
    const repeated = random.oneIn(3) ? order.slice(0, 2) : []
    await send(
      producer,
      `${prefix}audience-changes`,
      [...order, ...repeated].map(({ user, audience, value, atMs }) => ({
        key: user,
        ...(random.oneIn(10) && { partition: random.below(partitions) }),
        value: JSON.stringify({
          type: 'membership',
          audienceId: audience,
          audienceName: audience,
          userId: user,
          member: value,
          changedAt: new Date(atMs).toISOString(),
        }),
      })),
    )
    written += order.length
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
    async play(untilMs: number): Promise<void> {
      while (performance.now() < untilMs) {
        await change()
        if (random.oneIn(30)) await sync(random.pick(audiences), random.below(3) > 0)
        await passTime(random.below(400))
      }
      // Halves that are left over come to their end by a newer one.
      for (const audience of audiences) await sync(audience, true)
    },
    /** What every user's properties are to be. */
    desired: () =>
      [...desired].map(([key, { value }]) => {
        const [user = '', audience = ''] = key.split('\n')
        return [user, audience.toLowerCase().replace(' ', '_'), value] as const
      }),
    close: () => producer.disconnect(),
  }
}

type Sendable = { key: string | null; value: string; partition?: number }

async function send(producer: Producer, topic: string, records: readonly Sendable[]): Promise<void> {
  const messages = records.map((record) => ({ ...record, headers: { 'source-id': 'space' } }))
  await producer.send({ topic, messages, acks: -1 })
}
