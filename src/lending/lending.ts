import type { Answer, LendingRecord } from './lending-record.ts'
import { Loans } from './loans.ts'

// A rate limit holds for the whole consumer group. Each member may use its part: the fraction of the
// partitions that it has. A member whose messages wait for the rate of a destination (the borrower) asks the
// others each second, by a record that all read. A member that has nothing for this destination (the lender)
// answers with a record that lends most of its part. A loan is short, so it must be asked for again.
//
// The parts in use never add up to more than the whole:
//
// - The lender takes a loan off its part before it writes the answer. It has the part back once the loan is
//   over by its own clock, or later.
// - A loan lasts `loanMs` from the moment at which the borrower asked for it, by the borrower's clock. The
//   lender counts the same time from its answer, which is later, and adds `slackMs`. So the clocks needn't
//   agree, and it doesn't matter how long the records were under way.
// - A question is answered only within the generation of the group in which it was asked, and a borrower
//   gives up all loans when it gets another assignment. So no part is lent that by now belongs to another
//   member.

/** How long a loan lasts after it was asked for, in milliseconds. */
const loanMs = 4_000
/** Loans are asked for again after this time, in milliseconds. */
const askEveryMs = 1_000
/** A member that has not asked again for this time, in milliseconds, has no need any more. */
const wantsForMs = 2_500
/** A borrower lowers its rate at most this time after the end of a loan, in milliseconds. */
const slackMs = 500
/** The time after which a lender has its part back, in milliseconds. */
export const lentForMs = loanMs + slackMs
/** A member always keeps this fraction of its part, so that nothing starves. */
const keptOfPart = 0.02
/** The most destinations that a member asks for at a time. They take turns. */
const mostWants = 200
/** The most loans of one record. */
const mostLoans = 400
/** Parts are rounded down to multiples of this. */
const leastPart = 1e-5

export type LendingPorts = {
  /** The destinations with a rate limit of which deliveries wait in this member. */
  waiting(): Iterable<string>
  /**
   * Returns the number of a destination's deliveries that wait. Returns 0 if this member's rate is enough for
   * them.
   */
  needOf(destinationId: string): number
  /** Returns true if this member has nothing for a destination, and has not used its rate lately. */
  isSpare(destinationId: string): boolean
  /** Called when this member's part of a destination's rate has become smaller. */
  lowered(destinationId: string): void
}

export type LendingOptions = LendingPorts & {
  /** A name that no other member has, and no former process of this member. */
  readonly id: string
  /**
   * The time until which this member uses only what it always keeps, because a former process of it may have
   * lent the rest. 0 if there was none.
   */
  readonly lentUntilMs?: number
}

type Asked = {
  readonly generation: number
  readonly number: number
  readonly readMs: number
  readonly wants: ReadonlyMap<string, number>
  isAnswered: boolean
}

/** What this member borrows and lends. All times are milliseconds of one monotonic clock of this process. */
export class Lending {
  readonly #options: LendingOptions
  #share = 0
  #generation: number | undefined
  #number = 0
  /** When this member asked, by the numbers of its records. */
  readonly #askedMs = new Map<number, number>()
  #askAtMs = 0
  #turn = 0
  /** The latest questions of the others, by member. */
  readonly #asked = new Map<string, Asked>()
  readonly #borrowed = new Loans()
  readonly #lent = new Loans()

  constructor(options: LendingOptions) {
    this.#options = options
  }

  /** True if there can be other members, and this member has a part. */
  get isPossible(): boolean {
    return this.#generation !== undefined && this.#share > 0 && this.#share < 1
  }

  /** True while this member or another one asks. */
  get isBusy(): boolean {
    return this.#askedMs.size > 0 || this.#asked.size > 0
  }

  /** Call this when the member has got its partitions, which are the fraction `share` of all. */
  assigned(share: number, generation: number | undefined): void {
    this.#share = share
    this.#generation = generation
    this.#askedMs.clear()
    this.#askAtMs = 0
    for (const id of this.#borrowed.clear()) this.#options.lowered(id)
  }

  /**
   * Returns by how much this member's part of a destination's rate is larger than its fraction of the
   * partitions. Negative if it is smaller.
   */
  differenceOf(destinationId: string, nowMs: number): number {
    const lentAll = nowMs < (this.#options.lentUntilMs ?? 0) ? 1 : 0
    const lent = Math.max(lentAll, this.#lent.of(destinationId, nowMs))
    const borrowed = this.#borrowed.of(destinationId, nowMs)
    return borrowed - Math.min(lent, this.#lendable)
  }

  /** Takes a record of another member, or one of its own. */
  take({ from, generation, number, wants, answers }: LendingRecord, nowMs: number): void {
    const { id } = this.#options
    if (from === id || generation !== this.#generation) return
    if (wants.size > 0) this.#asked.set(from, { generation, number, readMs: nowMs, wants, isAnswered: false })
    const answer = answers.get(id)
    const askedMs = answer && this.#askedMs.get(answer.number)
    if (answer === undefined || askedMs === undefined) return
    const untilMs = askedMs + loanMs
    const before = this.#borrowed.drop(from)
    for (const [destinationId, part] of answer.parts)
      this.#borrowed.add(from, destinationId, { part, untilMs })
    for (const destinationId of before) this.#options.lowered(destinationId)
  }

  /** Call this a few times a second. Returns the record that is to be written, if any. */
  look(nowMs: number): LendingRecord | undefined {
    this.#forget(nowMs)
    const { id } = this.#options
    const generation = this.#generation
    if (generation === undefined || !this.isPossible) return undefined
    const wants = this.#wants(nowMs)
    const answers = this.#answers(nowMs)
    if (wants.size === 0 && answers.size === 0) return undefined
    const number = ++this.#number
    if (wants.size > 0) this.#askedMs.set(number, nowMs)
    return { from: id, generation, number, wants, answers }
  }

  get #lendable(): number {
    return (1 - keptOfPart) * this.#share
  }

  #forget(nowMs: number): void {
    for (const [number, askedMs] of this.#askedMs) if (nowMs - askedMs > loanMs) this.#askedMs.delete(number)
    for (const [member, { readMs, generation }] of this.#asked)
      if (nowMs - readMs > wantsForMs || generation !== this.#generation) this.#asked.delete(member)
    this.#lent.forget(nowMs)
    for (const id of this.#borrowed.forget(nowMs)) this.#options.lowered(id)
  }

  /** Returns what this member asks for now. */
  #wants(nowMs: number): Map<string, number> {
    const wants = new Map<string, number>()
    if (nowMs < this.#askAtMs) return wants
    this.#askAtMs = nowMs + askEveryMs
    const ids = [...this.#options.waiting()]
    const count = Math.min(ids.length, mostWants)
    for (let index = 0; index < count; index++) {
      const destinationId = ids[(this.#turn + index) % ids.length] ?? ''
      const need = this.#options.needOf(destinationId)
      if (need > 0) wants.set(destinationId, need)
    }
    this.#turn = ids.length > mostWants ? (this.#turn + mostWants) % ids.length : 0
    return wants
  }

  /** Lends to those that have asked since they were last answered. */
  #answers(nowMs: number): Map<string, Answer> {
    const answers = new Map<string, Answer>()
    let room = mostLoans
    for (const [borrower, asked] of this.#asked) {
      if (asked.isAnswered || room <= 0) continue
      asked.isAnswered = true
      const parts = new Map<string, number>()
      for (const [destinationId, need] of asked.wants) {
        if (room <= 0) break
        const part = this.#lend(borrower, { destinationId, need }, nowMs)
        if (part === 0) continue
        parts.set(destinationId, part)
        room--
      }
      // An answer without a part ends what was lent before.
      if (parts.size > 0 || this.#lent.isBorrower(borrower))
        answers.set(borrower, { number: asked.number, parts })
    }
    return answers
  }

  /** Lends a part to one of those that ask for it, by their need. Returns 0 if there is nothing to lend. */
  #lend(
    borrower: string,
    { destinationId, need }: { readonly destinationId: string; readonly need: number },
    nowMs: number,
  ): number {
    if (nowMs < (this.#options.lentUntilMs ?? 0) || !this.#options.isSpare(destinationId)) return 0
    let needs = 0
    for (const { wants } of this.#asked.values()) needs += wants.get(destinationId) ?? 0
    const free = this.#lendable - this.#lent.of(destinationId, nowMs)
    const most = this.#lent.ofOne(destinationId, borrower, nowMs) + Math.max(0, free)
    const fair = (this.#lendable * need) / Math.max(need, needs)
    const part = Math.floor(Math.min(fair, most) / leastPart) * leastPart
    if (part <= 0) return 0
    this.#lent.add(borrower, destinationId, { part, untilMs: nowMs + lentForMs })
    this.#options.lowered(destinationId)
    return part
  }
}
