import { iso, partitions, SimulatedLog, SimulatedOwner, topics } from './simulated-log.ts'

const spaceId = 'space'

/** A user who enters or leaves an audience. */
type Change = {
  readonly user: string
  readonly audience: string
  readonly member: boolean
  readonly agoMs: number
  readonly partition: number
}

/** A sync of an audience, which is sent to one unit. */
type Sync = {
  readonly audience: string
  readonly members: readonly string[]
  readonly parts: number
  readonly agoMs: number
  readonly unit: number
}

/**
 * A program that holds the units, perhaps a former one that doesn't know that it lost them, and everything
 * that survives both.
 */
export class UnitWorld {
  readonly log = new SimulatedLog()
  owner = new SimulatedOwner(this.log)
  zombie: SimulatedOwner | undefined
  machine = 1
  syncs = 0
  requests = 0
  /** The latest time up to which each user was deleted, in epoch milliseconds. */
  readonly deletedUpToMs = new Map<string, number>()
  /** Parts of syncs that weren't sent yet. */
  readonly unsent: (() => void)[] = []

  change({ user, audience, member, agoMs, partition }: Change): void {
    this.log.append(topics.changes, partition, {
      key: Buffer.from(user),
      value: json({
        type: 'membership',
        audienceId: audience,
        audienceName: audience,
        userId: user,
        member,
        changedAt: iso(this.log.nowMs - agoMs),
      }),
      headers: { 'source-id': spaceId },
    })
  }

  /**
   * Prepares the parts of one sync, in the order in which they are to be sent. Some parts may stay unsent.
   */
  sync({ audience, members, parts, agoMs, unit }: Sync): void {
    const syncId = `sync-${++this.syncs}`
    // No two syncs have the same `snapshotAt`. After the loss of a disk, a repeat of one of them would be
    // taken for newer than the other.
    this.log.nowMs++
    const snapshotAt = iso(this.log.nowMs - agoMs)
    for (let part = 1; part <= parts; part++) {
      this.unsent.push(() =>
        this.log.append(topics.changes, unit, {
          value: json({
            type: 'sync',
            audienceId: audience,
            audienceName: audience,
            syncId,
            snapshotAt,
            part,
            parts,
            userIds: members.filter((_, index) => index % parts === part - 1),
          }),
          headers: { 'source-id': spaceId },
        }),
      )
    }
  }

  remove(user: string, agoMs: number, partition: number): void {
    const requestedAtMs = this.log.nowMs - agoMs
    this.log.append(topics.deletions, partition, {
      value: json({
        requestId: `request-${++this.requests}`,
        userId: user,
        sources: [spaceId],
        requestedAt: iso(requestedAtMs),
      }),
    })
    this.deletedUpToMs.set(user, Math.max(requestedAtMs, this.deletedUpToMs.get(user) ?? -Infinity))
  }

  async begin(machine: number): Promise<void> {
    this.machine = machine
    this.owner = new SimulatedOwner(this.log, { machine })
    await this.owner.begin()
  }

  /** Kills the program, and starts a new one on the same machine. The disk stays, or is lost. */
  async crash(written: number, isDiskLost: boolean): Promise<void> {
    this.owner.kill((index) => ((written >> (index % 16)) & 1) === 1)
    if (isDiskLost) this.log.disks.clear()
    await this.begin(this.machine)
  }

  /**
   * Lets another program on another machine take over. The former program goes on, and may not know that it
   * lost the units.
   */
  async handOver(isDiskLost: boolean, isUnaware: boolean): Promise<void> {
    this.zombie?.kill(() => false)
    this.zombie = this.owner
    this.zombie.isZombie = true
    this.zombie.isUnaware = isUnaware
    const next = this.machine === 1 ? 2 : 1
    if (isDiskLost)
      for (const name of this.log.disks.keys())
        if (name.startsWith(`machine-${next}/`)) this.log.disks.delete(name)
    await this.begin(next)
  }

  /** Stops the program cleanly, and starts a new one on the same machine. */
  async restart(): Promise<void> {
    const { owner } = this
    const stopping = owner.units.stop()
    await owner.landAll()
    await stopping
    if (owner.out.size > 0) throw new Error(`a clean stop leaves behind ${[...owner.out].join()}`)
    await this.begin(this.machine)
  }

  async readAll(): Promise<void> {
    const { owner } = this
    for (let quiet = 0; quiet < 2;) {
      let left = 0
      for (let unit = 0; unit < partitions; unit++) {
        for (const topic of Object.values(topics)) {
          left += owner.left(topic, unit)
          owner.deliver(topic, unit)
        }
      }
      await owner.landAll()
      quiet = left === 0 ? quiet + 1 : 0
    }
  }

  /**
   * Reads, writes and acknowledges everything. Then lets so much time pass that everything that still waits
   * reaches its time limit.
   */
  async finish(): Promise<void> {
    const { owner, log } = this
    await this.readAll()
    await this.zombie?.landAll()
    this.zombie?.kill(() => true)
    await this.readAll()
    log.nowMs += 700_000
    owner.endSeenMs = log.nowMs
    const deadline = performance.now() + 1_000
    while (owner.out.size > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      await owner.landAll()
    }
    for (let unit = 0; unit < partitions; unit++) owner.deliver(topics.states, unit)
    await owner.landAll()
  }
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}
