/** Messages a second over time, and what of them goes to a destination that is dead for a while. Times are in seconds. */
export type Load = {
  /** At its lowest. */
  perSecond: number
  /** At its height it is so many times as much. */
  rise: number
  riseAtS: number
  /** How long the rise, and the fall, take. */
  slopeS: number
  fallAtS: number
  untilS: number
  /** Each second is up to so much above or below, as a share. */
  noise: number
  /** A destination that gets this share fails from then until then; its messages are parked, and tried again. */
  dead: { share: number; fromS: number; untilS: number }
}

/** Half an hour is steady at its height, and as long after the fall. */
export const anHour: Omit<Load, 'perSecond'> = {
  rise: 10,
  riseAtS: 600,
  slopeS: 300,
  fallAtS: 3_600,
  untilS: 6_600,
  noise: 0.2,
  dead: { share: 0.1, fromS: 2_100, untilS: 2_700 },
}

/** What comes, before noise. */
export function meanAt(atS: number, load: Load): number {
  const up = clamp((atS - load.riseAtS) / load.slopeS)
  const down = clamp((atS - load.fallAtS) / load.slopeS)
  return load.perSecond * (1 + (load.rise - 1) * (up - down))
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share))
}

/** Numbers from 0 to 1, the same for the same seed. Source: mulberry32, Tommy Ettinger (public domain). */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
