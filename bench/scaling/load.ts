/**
 * A rate of messages over time, with a share of them for a destination that is dead for a while. Times are in
 * seconds.
 */
export type Load = {
  /** The lowest rate. */
  perSecond: number
  /** The highest rate as a multiple of the lowest rate. */
  rise: number
  riseAtS: number
  /** The duration of the rise, and of the fall. */
  slopeS: number
  fallAtS: number
  untilS: number
  /** The largest deviation of a second from the mean rate, as a share. */
  noise: number
  /**
   * The destination that fails from `fromS` until `untilS`, and its share of all messages. Its messages are
   * parked, and tried again.
   */
  dead: { share: number; fromS: number; untilS: number }
}

/** A load that stays at its height for 45 minutes, and at its lowest rate for 45 minutes after the fall. */
export const anHour: Omit<Load, 'perSecond'> = {
  rise: 10,
  riseAtS: 600,
  slopeS: 300,
  fallAtS: 3_600,
  untilS: 6_600,
  noise: 0.2,
  dead: { share: 0.1, fromS: 2_100, untilS: 2_700 },
}

/** Returns the rate at a time, without noise. */
export function meanAt(atS: number, load: Load): number {
  const up = clamp((atS - load.riseAtS) / load.slopeS)
  const down = clamp((atS - load.fallAtS) / load.slopeS)
  return load.perSecond * (1 + (load.rise - 1) * (up - down))
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share))
}

/**
 * Returns a function that returns random numbers from 0 to 1. The same seed gives the same numbers. Source:
 * mulberry32, Tommy Ettinger (public domain).
 */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
