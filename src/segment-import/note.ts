/**
 * What people have to know about a part of a workspace. `left out`: it isn't in the catalog. `differs`: it
 * is, and does something else than at Segment. `to do`: it is, and needs something that the file doesn't
 * have.
 */
export type Note = {
  readonly kind: 'left out' | 'differs' | 'to do'
  /** The part, by its kind and its name at Segment. */
  readonly about: string
  readonly problem: string
  /** What to do instead. */
  readonly way: string
}

/** Formats a note as a line. */
export function noteText({ kind, about, problem, way }: Note): string {
  return `${kind}: ${about}: ${problem}; ${way}`
}

/** Why a part of a workspace can't be in the catalog. It ends the reading of this part alone. */
export class LeftOut extends Error {
  readonly way: string

  constructor(problem: string, way: string) {
    super(problem)
    this.way = way
  }
}
