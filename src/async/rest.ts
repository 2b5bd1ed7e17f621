/**
 * Returns how long a work rests after it took `tookMs`, so that it takes no more than a part of the time. All
 * times are in milliseconds. It never rests for longer than `mostMs`: a process may have stood still during
 * the work, and would then rest for twenty times as long as that.
 */
export function restAfter(
  tookMs: number,
  { share, leastMs, mostMs }: { readonly share: number; readonly leastMs: number; readonly mostMs: number },
): number {
  return Math.min(mostMs, Math.max(leastMs, tookMs * (1 / share - 1)))
}
