import { Breath } from './breath.ts'

/** A long work that can pause at each `yield`. What it changes is seen only once it is over. */
export type Pieces<T> = Generator<undefined, T, undefined>

/** How many cheap steps a work makes between two `yield`: far less than a millisecond. */
export const cheapSteps = 64

/** Does a work without a pause. */
export function atOnce<T>(work: Pieces<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Does a work in pieces. Between two pieces, the event loop does what else waits. */
export async function inPieces<T>(work: Pieces<T>, breath = new Breath()): Promise<T> {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await breath.take()
  }
}
