/**
 * The number of members whom a sync may remove in any case. Small audiences often change as a whole, and
 * little is lost if one of them is wrong.
 */
const fewLeaving = 20

/** Returns true if a sync removes so many members that it was probably not made from the audience. */
export function losesMost({ leaving, staying }: { leaving: number; staying: number }): boolean {
  return leaving >= fewLeaving && leaving > staying
}
