/** Traffic to consecutive destinations at a fixed rate. */
export type Stream = {
  /** The number of the first destination. Destinations are numbered from 0. */
  first: number
  count: number
  perS: number
  /** The start of the traffic, in seconds from the start of the run. */
  fromS: number
  /** The end of the traffic, in seconds from the start of the run. */
  untilS: number
  /**
   * The order of the destinations. With `turn`, they take turns. With `random`, the order looks random and is
   * the same each time.
   */
  order: 'turn' | 'random'
}

export function messagesOf({ perS, fromS, untilS }: Stream): number {
  return Math.floor(perS * (untilS - fromS))
}

export function messagesOfAll(streams: readonly Stream[]): number {
  return streams.reduce((sum, stream) => sum + messagesOf(stream), 0)
}

/** Returns the destination of message `index` of a stream. */
export function destinationOf({ first, count, order }: Stream, index: number): number {
  return first + ((order === 'turn' ? index : scramble(index)) % count)
}

/** Returns when message `index` of a stream is due, in microseconds from the start of the run. */
export function dueUs({ perS, fromS }: Stream, index: number): number {
  return (fromS + index / perS) * 1_000_000
}

/** Returns 32 bits that look random (the finisher of MurmurHash3). */
function scramble(index: number): number {
  let bits = Math.imul(index + 1, 0x9e3779b1)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** Returns the id of the source whose messages go only to this destination. */
export function sourceIdOf(destination: number): string {
  return `source-${destination}`
}

export function destinationIdOf(destination: number): string {
  return `customer-${destination}`
}
