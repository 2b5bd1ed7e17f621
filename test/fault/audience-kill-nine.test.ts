import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import { Partitioners } from 'kafkajs'
import { expect, test } from 'vitest'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { type AudienceCustomer, createAudienceCustomer, timeOfDay } from '../support/audience-customer.ts'
import { users } from '../support/audience-names.ts'
import { createAudienceUpstream } from '../support/audience-upstream.ts'
import { otherProgram } from '../support/kafka.ts'
import { Random } from '../support/random.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
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

test('while workers are killed and their customer fails, times out and acts late, it ends with the last value of every user, and of those deleted is sent nothing older', async () => {
  const customer = createAudienceCustomer({ random: new Random(seed) })
  const trust = createTrust('https')
  const receiver = await startReceiver(customer.script, trust.secured)
  const scene = await setAudienceScene(receiver, trust)
  const folders = Array.from({ length: workers }, () => mkdtempSync(join(tmpdir(), 'sluice-state-')))
  const fleet = new Fleet(scene, folders)
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const upstream = createAudienceUpstream({
    partitions,
    random: new Random(seed + 1),
    msSinceDelete: (user, atMs) => customer.msSinceDelete(user, atMs),
    async send(topic, records) {
      const messages = records.map((record) => ({ ...record, headers: { 'source-id': 'space' } }))
      await producer.send({ topic: `${scene.prefix}${topic}`, messages, acks: -1 })
    },
  })
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
    const wrong = upstream.wrongAt(customer)
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
    await producer.disconnect()
    scene.close()
    await receiver.stop()
    trust.remove()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
})

/** For whoever has to find out why: all that came of the users that these lines begin with, and when workers were killed. */
function tellOf(lines: readonly string[], customer: AudienceCustomer, { killed }: Fleet): void {
  const amiss = users.filter((user) => lines.some((line) => line.split(' ')[0] === user))
  if (amiss.length > 0) process.stdout.write(`workers were killed at ${killed.join(', ')}\n`)
  for (const user of amiss) process.stdout.write(`${user}:\n${customer.historyOf(user).join('\n')}\n`)
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
