import { rmSync } from 'node:fs'
import { setTimeout as passTime } from 'node:timers/promises'
import { Partitioners } from 'kafkajs'
import type { Scene } from '../e2e/scene.ts'
import { type AudienceCustomer, timeOfDay } from './audience-customer.ts'
import { users } from './audience-names.ts'
import { createAudienceUpstream, type UpstreamOptions } from './audience-upstream.ts'
import { otherProgram } from './kafka.ts'
import type { Random } from './random.ts'
import { type SluiceProcess, startSluice } from './worker-process.ts'

/** Worker processes, each with its own folder for states (its volume). */
export class AudienceFleet {
  readonly #variables: Readonly<Record<string, string>>
  readonly #folders: readonly string[]
  readonly #running: SluiceProcess[] = []
  /** The time of day of each kill by `playKills`. */
  readonly killed: string[] = []

  constructor({ variables }: Pick<Scene, 'variables'>, folders: readonly string[]) {
    this.#variables = variables
    this.#folders = folders
  }

  async startAll(): Promise<void> {
    this.#running.push(...(await Promise.all(this.#folders.map((folder) => this.#start(folder)))))
  }

  async playKills(random: Random, untilMs: number): Promise<void> {
    while (performance.now() < untilMs) {
      await passTime(2_000 + random.below(5_000))
      const at = random.below(this.#folders.length)
      const folder = this.#folders[at]
      if (folder === undefined) continue
      await this.#running[at]?.kill()
      this.killed.push(timeOfDay())
      await passTime(random.below(3_000))
      // One kill in four also loses the worker's volume.
      if (random.oneIn(4)) rmSync(folder, { recursive: true })
      this.#running[at] = await this.#start(folder)
    }
  }

  /** Kills the first `kills` workers, and ends the others with SIGTERM. */
  async endAll(kills: number): Promise<void> {
    const ended = this.#running.splice(0)
    await Promise.all(ended.map((worker, index) => (index < kills ? worker.kill() : worker.terminate())))
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#running.map((worker) => worker.kill()))
  }

  #start(folder: string): Promise<SluiceProcess> {
    return startSluice({ ...this.#variables, SLUICE_STATE_FOLDER: folder }, { readyMs: 60_000 })
  }
}

export type KafkaUpstream = Awaited<ReturnType<typeof openAudienceUpstream>>

/**
 * Opens an upstream that writes to the topics with this prefix. The upstream learns from `customer` when a
 * `delete` has arrived. The caller has to call `close` at the end.
 */
export async function openAudienceUpstream({
  prefix,
  customer,
  ...rest
}: Omit<UpstreamOptions, 'send' | 'msSinceDelete'> & { prefix: string; customer: AudienceCustomer }) {
  const producer = otherProgram().producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    // The producer silently drops records for partitions that it doesn't know yet. So it asks for the
    // partitions each second.
    metadataMaxAge: 1_000,
  })
  await producer.connect()
  const upstream = createAudienceUpstream({
    ...rest,
    msSinceDelete: (user, atMs) => customer.msSinceDelete(user, atMs),
    async send(topic, records) {
      const messages = records.map((record) => ({ ...record, headers: { 'source-id': 'space' } }))
      await producer.send({ topic: `${prefix}${topic}`, messages, acks: -1 })
    },
  })
  return Object.assign(upstream, { close: () => producer.disconnect() })
}

/**
 * Prints what is needed to find the cause of a failure. Each of `lines` begins with a user id. Prints all
 * requests of these users, and the times at which workers were killed.
 */
export function tellOf(
  lines: readonly string[],
  customer: AudienceCustomer,
  { killed }: AudienceFleet,
): void {
  const amiss = users.filter((user) => lines.some((line) => line.split(' ')[0] === user))
  if (amiss.length > 0) process.stdout.write(`workers were killed at ${killed.join(', ')}\n`)
  for (const user of amiss) process.stdout.write(`${user}:\n${customer.historyOf(user).join('\n')}\n`)
}
