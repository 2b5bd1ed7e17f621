/** A part of the group's rate, and the time at which the loan is over. */
export type Loan = { readonly part: number; readonly untilMs: number }

/** Loans by destination and by the other member, who lends or borrows. */
export class Loans {
  readonly #of = new Map<string, Map<string, Loan[]>>()

  /**
   * Adds a loan. Earlier loans of the same member stay: until they are over, the largest of them counts,
   * because the member may not know of the later ones yet.
   */
  add(member: string, destinationId: string, loan: Loan): void {
    let members = this.#of.get(destinationId)
    if (members === undefined) {
      members = new Map()
      this.#of.set(destinationId, members)
    }
    // An earlier loan that is not larger ends earlier, so it never counts again.
    const larger = (members.get(member) ?? []).filter(({ part }) => part > loan.part)
    members.set(member, [...larger, loan])
  }

  /** Returns the parts of a destination's rate that are on loan. */
  of(destinationId: string, nowMs: number): number {
    let sum = 0
    for (const loans of this.#of.get(destinationId)?.values() ?? []) sum += largest(loans, nowMs)
    return sum
  }

  /** Returns the part that one member has. */
  ofOne(destinationId: string, member: string, nowMs: number): number {
    return largest(this.#of.get(destinationId)?.get(member) ?? [], nowMs)
  }

  isBorrower(member: string): boolean {
    for (const members of this.#of.values()) if (members.has(member)) return true
    return false
  }

  /** Drops the loans of a member. Returns their destinations. */
  drop(member: string): readonly string[] {
    return this.#keep((one) => one !== member)
  }

  /** Drops the loans that are over. Returns the destinations of these. */
  forget(nowMs: number): readonly string[] {
    return this.#keep((_member, { untilMs }) => untilMs > nowMs)
  }

  /** Drops all loans. Returns their destinations. */
  clear(): readonly string[] {
    const ids = [...this.#of.keys()]
    this.#of.clear()
    return ids
  }

  #keep(isKept: (member: string, loan: Loan) => boolean): readonly string[] {
    const changed: string[] = []
    for (const [destinationId, members] of this.#of) {
      for (const [member, loans] of members) {
        const kept = loans.filter((loan) => isKept(member, loan))
        if (kept.length === loans.length) continue
        changed.push(destinationId)
        if (kept.length > 0) members.set(member, kept)
        else members.delete(member)
      }
      if (members.size === 0) this.#of.delete(destinationId)
    }
    return changed
  }
}

function largest(loans: readonly Loan[], nowMs: number): number {
  let part = 0
  for (const loan of loans) if (loan.untilMs > nowMs) part = Math.max(part, loan.part)
  return part
}
