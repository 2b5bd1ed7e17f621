/** Traffic to a row of destinations at a fixed rate. */
export type Stream = {
  /** The first destination and how many: their numbers, from 0, name them. */
  first: number
  count: number
  perS: number
  /** Seconds from the start of the run. */
  fromS: number
  untilS: number
  /** `turn`: to one after the other. `random`: evenly, and the same each time. */
  order: 'turn' | 'random'
}

export function messagesOf({ perS, fromS, untilS }: Stream): number {
  return Math.floor(perS * (untilS - fromS))
}

export function messagesOfAll(streams: readonly Stream[]): number {
  return streams.reduce((sum, stream) => sum + messagesOf(stream), 0)
}

/** Where message `index` of a stream goes. */
export function destinationOf({ first, count, order }: Stream, index: number): number {
  return first + ((order === 'turn' ? index : scramble(index)) % count)
}

/** When message `index` of a stream is due, in microseconds from the start of the run. */
export function dueUs({ perS, fromS }: Stream, index: number): number {
  return (fromS + index / perS) * 1_000_000
}

/** 32 bits that look random (the finisher of MurmurHash3). */
function scramble(index: number): number {
  let bits = Math.imul(index + 1, 0x9e3779b1)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** The source of a destination's own. */
export function sourceIdOf(destination: number): string {
  return `source-${destination}`
}

export function destinationIdOf(destination: number): string {
  return `customer-${destination}`
}
