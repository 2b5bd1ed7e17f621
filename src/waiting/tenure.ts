import { randomBytes } from 'node:crypto'

/** One ownership of a unit. The id of its writer in the headers of records and in marks tells its order. */
export type Tenure = {
  /** Grows with each tenure of the unit, unless somebody has reset the commit of `waiting`. */
  readonly epoch: number
  /** The begin, in epoch milliseconds. The clocks of processes may differ. */
  readonly sinceMs: number
}

/** Returns an id for a writer. No other writer has the same. */
export function writerOf({ epoch, sinceMs }: Tenure): string {
  return `${epoch}.${sinceMs.toString(36)}.${randomBytes(6).toString('base64url')}`
}

/** Reads the tenure of a writer. Returns `undefined` if its id tells none. */
export function tenureOf(writer: string): Tenure | undefined {
  const [, epoch = '', since = ''] = /^(\d{1,15})\.([0-9a-z]{1,10})\./.exec(writer) ?? []
  return epoch === '' ? undefined : { epoch: Number(epoch), sinceMs: Number.parseInt(since, 36) }
}

/**
 * Returns true if it is certain that one tenure came before another. Both the epoch and the clock have to say
 * so, because either may have been set back.
 */
export function isEarlier(one: Tenure | undefined, other: Tenure): boolean {
  return one !== undefined && one.epoch < other.epoch && one.sinceMs < other.sinceMs
}

/**
 * Returns true if no tenure between two has committed, unless somebody has reset the commit of `waiting`. The
 * owner of a tenure that never committed leaves its epoch to the next one.
 */
export function hasNoneBetween(one: Tenure, other: Tenure): boolean {
  return one.epoch + 1 === other.epoch || one.epoch === other.epoch
}
