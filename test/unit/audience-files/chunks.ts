import * as fc from 'fast-check'

/**
 * Yields bytes in pieces, as a file is read. Each piece is as long as the next of `lengths`, and the last
 * piece has the rest.
 */
export async function* inPieces(bytes: Buffer, lengths: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0
  for (const length of lengths) {
    if (at >= bytes.length) return
    yield bytes.subarray(at, at + length)
    at += length
  }
  if (at < bytes.length) yield bytes.subarray(at)
}

/**
 * The lengths of the pieces that a file is cut into. The cuts are often in the middle of a line or of a
 * character.
 */
export const cuts = fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 30 })

/**
 * Ids that a user may have. They have any characters except halves of surrogate pairs, and except U+FFFD,
 * which stands for bytes that can't be read.
 */
export const userId = fc
  .oneof(
    fc.uuid(),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
  )
  .filter((id) => id.isWellFormed() && !id.includes('\ufffd'))
