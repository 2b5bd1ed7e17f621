import { TokenBucket } from '../../../src/async/token-bucket.ts'
import { GroupShare } from '../../../src/delivery/group-share.ts'
import { decodeLending, encodeLending } from '../../../src/lending/lending-record.ts'
import { Lending } from '../../../src/lending/lending.ts'

export const destinationId = 'limited'

/** A part of the group: the fraction of the partitions that a member has. */
export type MemberSettings = {
  readonly share: number
  readonly lookEveryMs?: number
  readonly writeMs?: number
}

/** How often lanes take over their present limits, in milliseconds. */
const renewEveryMs = 250
const stepMs = 25

/** A member of a consumer group with the lane of one destination, on a virtual clock. */
export class SimulatedMember {
  readonly lending: Lending
  readonly #group: SimulatedGroup
  readonly #shares: GroupShare
  readonly #settings: MemberSettings
  readonly #bucket: TokenBucket
  #position = 0
  #lookAtMs = 0
  /** Deliveries that wait. */
  waiting = 0
  started = 0
  /** A member that is dead or suspended does nothing. */
  isAsleep = false

  constructor(group: SimulatedGroup, id: string, settings: MemberSettings) {
    this.#group = group
    this.#settings = settings
    this.#lookAtMs = (settings.lookEveryMs ?? 500) / 2
    this.lending = new Lending({
      id,
      waiting: () => (this.waiting > 0 ? [destinationId] : []),
      needOf: () => (this.waiting > this.#rate.perSecond ? this.waiting : 0),
      isSpare: () => this.waiting === 0 && this.#bucket.isFull(group.nowMs),
      lowered: () => this.#renew(),
    })
    this.#shares = new GroupShare((destination) => this.lending.differenceOf(destination, group.nowMs))
    this.#shares.set(settings.share)
    this.#bucket = new TokenBucket(this.#rate, group.nowMs)
    this.lending.assigned(settings.share, 1)
  }

  /** The member's part of the group's rate. */
  get part(): number {
    return this.#rate.perSecond / this.#group.rateLimit.perSecond
  }

  assign(share: number, generation: number): void {
    this.#shares.set(share)
    this.lending.assigned(share, generation)
    this.#renew()
  }

  step(): void {
    const { nowMs, starts } = this.#group
    if (this.isAsleep) return
    if (nowMs >= this.#lookAtMs) this.#look()
    if (nowMs % renewEveryMs === 0) this.#renew()
    while (this.waiting > 0 && this.#bucket.take(nowMs) === 0) {
      this.waiting--
      this.started++
      starts.push(nowMs)
    }
  }

  get #rate() {
    const rate = this.#shares.rateOf({ id: destinationId, rateLimit: this.#group.rateLimit })
    if (rate === undefined) throw new Error('the member has no part')
    return rate
  }

  #renew(): void {
    this.#bucket.setRate(this.#rate, this.#group.nowMs)
  }

  #look(): void {
    const { nowMs, log } = this.#group
    const { lookEveryMs = 500, writeMs = 20 } = this.#settings
    this.#lookAtMs = nowMs + lookEveryMs
    for (; (log[this.#position]?.visibleMs ?? Infinity) <= nowMs; this.#position++) {
      const record = decodeLending(log[this.#position]?.value ?? null)
      if (record !== undefined) this.lending.take(record, nowMs)
    }
    const record = this.lending.look(nowMs)
    if (record !== undefined) log.push({ value: encodeLending(record), visibleMs: nowMs + writeMs })
  }
}

/** A consumer group whose members exchange records on a virtual clock. */
export class SimulatedGroup {
  nowMs = 0
  readonly rateLimit: { readonly perSecond: number; readonly burst: number }
  /** The records of the topic `lending`. A record can be read once all records before it can. */
  readonly log: { readonly value: Buffer; readonly visibleMs: number }[] = []
  /** When a delivery was started, in milliseconds. */
  readonly starts: number[] = []
  readonly members: readonly SimulatedMember[]

  constructor(rateLimit: { perSecond: number; burst: number }, members: readonly MemberSettings[]) {
    this.rateLimit = rateLimit
    this.members = members.map((settings, index) => new SimulatedMember(this, `member-${index}`, settings))
  }

  /** The sum of the parts of all members, dead ones included. */
  get parts(): number {
    return this.members.reduce((sum, { part }) => sum + part, 0)
  }

  get waiting(): number {
    return this.members.reduce((sum, { waiting }) => sum + waiting, 0)
  }

  /** Lets time pass. `each` is called in each step. */
  run(ms: number, each: () => void = () => undefined): void {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.nowMs += stepMs) {
      each()
      for (const member of this.members) member.step()
    }
  }

  /** The most deliveries that were started within some time beyond what the rate allows in this time. */
  get excess(): number {
    let [most, least] = [0, Infinity]
    for (const [index, atMs] of this.starts.entries()) {
      // `index` minus what the rate allows up to `atMs`. The largest rise of it is the excess.
      const over = index - (this.rateLimit.perSecond * atMs) / 1_000
      least = Math.min(least, over)
      most = Math.max(most, over - least + 1)
    }
    return most
  }
}
