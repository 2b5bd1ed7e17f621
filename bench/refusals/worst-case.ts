import { cpuMsOf, leastOf } from '../../test/support/cost.ts'
import { Random } from '../../test/support/random.ts'

/** A kind of input that should be expensive. Each call of `make` may return another input. */
export type Hostile = { readonly name: string; readonly make: (random: Random) => Buffer }

/** A kind of input, with the time that its processing takes, in milliseconds. */
export type Cost<T> = { readonly of: T; readonly ms: number }

/** Processes an input. The time that this function takes is measured. */
export type Process<T> = (input: Buffer, of: T) => void

/** The part of the kinds that is measured a second time, because other work may have disturbed the first. */
const partTwice = 1 / 4
/** How many kinds are processed before any is measured. */
const compiling = 300
/** How many of the worst are measured again, and with how many inputs. */
const measuredAgain = 12
const inputs = 64
const rounds = 3

/**
 * Finds the kinds of input that take the most time, the worst first: among `known`, and among `searched`
 * random kinds. The same seed gives the same kinds. The times of the worst are CPU times.
 */
export function findWorst<T extends Hostile>(
  known: readonly T[],
  any: (random: Random) => T,
  work: Process<T>,
  { seed, searched }: { seed: number; searched: number },
): readonly Cost<T>[] {
  const random = new Random(seed)
  // The first kinds would also be charged for the compilation of the code.
  for (const of of known.slice(0, compiling)) measure(of, work, random)
  const kinds = [...known, ...Array.from({ length: searched }, () => any(random))]
  const once = byCost(kinds.map((of) => ({ of, ms: measure(of, work, random) })))
  const twice = once.slice(0, kinds.length * partTwice).map(({ of, ms }) => {
    return { of, ms: Math.min(ms, measure(of, work, random)) }
  })
  return byCost(twice)
    .slice(0, measuredAgain)
    .map(({ of }) => ({ of, ms: cpuOf(of, work, random) }))
    .sort(worstFirst)
}

function byCost<T>(costs: readonly Cost<T>[]): readonly Cost<T>[] {
  return costs.toSorted(worstFirst)
}

function worstFirst(one: Cost<unknown>, other: Cost<unknown>): number {
  return other.ms - one.ms
}

/**
 * Returns the CPU time for an input of a kind, in milliseconds. It is measured over many inputs, because the
 * system counts CPU time in steps of milliseconds, and several times, because other programs disturb it.
 */
function cpuOf<T extends Hostile>(of: T, work: Process<T>, random: Random): number {
  const round = (): number => {
    const all = Array.from({ length: inputs }, () => of.make(random))
    return cpuMsOf(() => all.forEach((input) => work(input, of))) / inputs
  }
  return leastOf(0, round, rounds)
}

/** Returns the time of one input of a kind, in milliseconds. */
function measure<T extends Hostile>(of: T, work: Process<T>, random: Random): number {
  const input = of.make(random)
  const startMs = performance.now()
  work(input, of)
  return performance.now() - startMs
}
