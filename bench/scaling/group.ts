import { assignSticky } from '../../src/kafka/group/sticky.ts'

/** The capacity of the simulated workers, and the times for which partitions are not read. */
export type Costs = {
  /** The number of records that a process takes a second when it does nothing else. */
  perSecond: number
  /** The time from the request for a pod until its processes join the group. */
  startS: number
  /** The time between a join or a leave and the first record of a partition that has moved. */
  handoverS: number
  /**
   * The time from the stop of a pod until the group gives the pod's partitions to others. It is the session
   * timeout if the pod doesn't leave the group.
   */
  leaveS: number
  /** The number of cores that a process uses when it has nothing to do. */
  idleCores: number
}

type Process = { readonly id: string; readonly pod: number; since: number; units: readonly number[] }

/** The counters of a pod so far, as Prometheus sees them. */
export type Told = { cpuSeconds: number; records: number }

/**
 * Simulates a group of workers that share the partitions as the real members do (`assignSticky`, with their
 * claims). Each process has its own capacity. Nobody reads a partition that moves until its handover is over.
 */
export class Group {
  readonly #costs: Costs
  readonly #processesPerPod: number
  /** The number of records that wait in each partition. */
  readonly waiting: number[]
  readonly #pausedUntilS: number[]
  /** The number of retries that are due. All processes take them, and they don't count as lag. */
  #due = 0
  #processes: Process[] = []
  readonly #starting = new Map<number, number>()
  readonly told = new Map<number, Told>()
  #rebalances = 0
  #owners = new Map<number, string>()

  constructor(costs: Costs, processesPerPod: number, partitions: number) {
    this.#costs = costs
    this.#processesPerPod = processesPerPod
    this.waiting = Array.from({ length: partitions }, () => 0)
    this.#pausedUntilS = this.waiting.map(() => -Infinity)
  }

  get rebalances(): number {
    return this.#rebalances
  }

  get lag(): number {
    return this.waiting.reduce((sum, one) => sum + one, 0)
  }

  /** The number of waiting records in the partition that has the most of them. */
  get mostWaiting(): number {
    return Math.max(...this.waiting)
  }

  /** The number of pods whose processes are in the group. */
  get pods(): number {
    return new Set(this.#processes.map(({ pod }) => pod)).size
  }

  /** Starts and ends pods as a StatefulSet does. The pod with the highest number ends first. */
  scale(nowS: number, pods: number): void {
    for (let pod = 0; pod < pods; pod++)
      if (!this.told.has(pod)) {
        this.told.set(pod, { cpuSeconds: 0, records: 0 })
        this.#starting.set(pod, nowS + this.#costs.startS)
      }
    const leaving = [...this.told.keys()].filter((pod) => pod >= pods)
    if (leaving.length === 0) return
    for (const pod of leaving) {
      this.told.delete(pod)
      this.#starting.delete(pod)
    }
    this.#processes = this.#processes.filter(({ pod }) => pod < pods)
    this.#rebalance(nowS, this.#costs.leaveS)
  }

  /**
   * Simulates one second. `arrived` is the number of new records by partition. `due` is the number of new
   * retries.
   */
  step(nowS: number, arrived: readonly number[], due: number): void {
    const ready = [...this.#starting].filter(([, atS]) => atS <= nowS)
    for (const [pod] of ready) this.#join(pod)
    if (ready.length > 0) this.#rebalance(nowS)
    for (const [unit, count] of arrived.entries()) this.waiting[unit] = (this.waiting[unit] ?? 0) + count
    this.#due += due
    const dueEach = this.#processes.length === 0 ? 0 : this.#due / this.#processes.length
    for (const process of this.#processes) this.#work(nowS, process, dueEach)
  }

  #join(pod: number): void {
    this.#starting.delete(pod)
    for (let index = 0; index < this.#processesPerPod; index++)
      this.#processes.push({ id: `${String(pod).padStart(4, '0')}-${index}`, pod, since: 0, units: [] })
  }

  #work(nowS: number, { pod, units }: Process, dueEach: number): void {
    const { perSecond, idleCores } = this.#costs
    const retried = Math.min(dueEach, perSecond)
    this.#due -= retried
    let left = perSecond - retried
    let taken = 0
    const open = units.filter((unit) => (this.#pausedUntilS[unit] ?? 0) <= nowS)
    // The partition with the fewest records comes first. The others can use the capacity that it leaves.
    for (const [place, unit] of open.toSorted((a, b) => this.#of(a) - this.#of(b)).entries()) {
      const share = Math.min(this.#of(unit), left / (open.length - place))
      this.waiting[unit] = this.#of(unit) - share
      left -= share
      taken += share
    }
    const told = this.told.get(pod)
    if (told === undefined) return
    told.records += taken
    told.cpuSeconds += Math.min(1, idleCores + (1 - idleCores) * ((taken + retried) / perSecond))
  }

  #of(unit: number): number {
    return this.waiting[unit] ?? 0
  }

  /**
   * Assigns the partitions again after a change of the members. `unreadS` is how long the partitions of the
   * members that left have no owner.
   */
  #rebalance(nowS: number, unreadS = 0): void {
    this.#rebalances++
    const claims = this.#processes.map(({ id, since, units }) => ({ memberId: id, sinceMs: since, units }))
    const assigned = assignSticky(this.waiting.length, claims)
    for (const process of this.#processes) {
      process.units = assigned.get(process.id) ?? []
      process.since = nowS * 1_000
      for (const unit of process.units) {
        const before = this.#owners.get(unit)
        if (before !== undefined && before !== process.id)
          this.#pausedUntilS[unit] = nowS + unreadS + this.#costs.handoverS
        this.#owners.set(unit, process.id)
      }
    }
  }
}
