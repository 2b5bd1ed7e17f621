import type { IncomingMessage } from 'node:http'
import { type Answer, problem } from './answer.ts'
import { tooMuchReceived } from './service-unavailable.ts'
import { maxBatchBytes } from './request-limits.ts'

/**
 * A body that wasn't taken and wasn't read to its end, with what its client is told: nothing can follow on
 * its connection.
 */
export class RefusedBody extends Error {
  override name = 'RefusedBody'
  readonly answer: Answer
  /** Its client may be sending more of it. */
  readonly isEndless: boolean

  constructor(answer: Answer, isEndless: boolean) {
    super('a body was refused before its end')
    this.answer = answer
    this.isEndless = isEndless
  }
}

/**
 * What is over the limit is read to its end, and thrown away: many a client looks for an answer only when it
 * has sent all. A body of more than this is answered before its end.
 */
const maxReadBytes = 8 * 1_024 * 1_024

/**
 * After so many pieces of a body they are looked at: each costs as much as hundreds of bytes, in time and for
 * a moment in memory.
 */
const freePieces = 4_096
const leastPieceBytes = 32
const firstBytes = 4 * 1_024

/**
 * What is to become of a body: it is kept, or refused for a reason that is known before it, or nobody needs
 * it.
 */
export type Reception = 'keep' | 'discard' | Answer

/**
 * A whole body, or why it wasn't taken: it was read to its end all the same, so that the next request can
 * follow.
 */
export type Received = Buffer | Answer

/** Receives bodies, and holds of all requests together no more than `maxBytes` at a time. */
export class Receiver {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes that are held for bodies that aren't complete yet. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Calls `done` once, when the body has been read to its end: with all of it (an empty one where it is
   * discarded), or with why it isn't taken. With a `RefusedBody` where its end isn't waited for, or won't
   * come.
   */
  receive(
    request: IncomingMessage,
    reception: Reception,
    done: (refusal: RefusedBody | null, received?: Received) => void,
  ): void {
    /**
     * Bodies come in pieces of any size: they are copied together at once, and what is held is what is
     * charged.
     */
    let held: Buffer = nothing
    let length = 0
    let seen = 0
    let pieces = 0
    let isKept = reception === 'keep'
    let refusal = typeof reception === 'string' ? undefined : reception

    const release = (): void => {
      this.#bytes -= held.length
      held = nothing
      length = 0
      isKept = false
    }
    const refuse = (answer: Answer): void => {
      refusal = answer
      release()
    }
    const leave = (): void => {
      request.off('data', take).off('end', end).off('error', breakOff).off('close', breakOff)
    }
    const end = (): void => {
      leave()
      const received = refusal ?? held.subarray(0, length)
      release()
      done(null, received)
    }
    const stop = (answer: Answer, isEndless: boolean): void => {
      leave()
      release()
      done(new RefusedBody(answer, isEndless))
    }
    const breakOff = (): void => stop(refusal ?? incomplete, false)
    const keep = (chunk: Buffer): void => {
      const needed = length + chunk.length
      if (needed > held.length) {
        const bytes = Math.min(maxBatchBytes, Math.max(firstBytes, 2 * held.length, needed))
        if (this.#bytes + bytes - held.length > this.#maxBytes) {
          refuse(tooMuchReceived())
          return
        }
        const larger = Buffer.allocUnsafeSlow(bytes)
        held.copy(larger, 0, 0, length)
        this.#bytes += bytes - held.length
        held = larger
      }
      chunk.copy(held, length)
      length = needed
    }
    const take = (chunk: Buffer): void => {
      seen += chunk.length
      pieces++
      if (pieces > freePieces && seen < pieces * leastPieceBytes) {
        stop(tooFine, true)
      } else if (seen > maxBatchBytes) {
        // Also where there was no room for it: to send it again would be no use.
        if (refusal !== tooLarge && isOwn(reception, refusal)) refuse(tooLarge)
        if (seen > maxReadBytes) stop(refusal ?? tooLarge, true)
      } else if (isKept) {
        keep(chunk)
      }
    }
    request.on('data', take).on('end', end).on('error', breakOff).on('close', breakOff)
  }
}

const nothing = Buffer.alloc(0)

/** Whether what is refused is so by the body, and not by what was known before it. */
function isOwn(reception: Reception, refusal: Answer | undefined): boolean {
  return refusal === undefined || refusal !== reception
}

const tooLarge = problem('payload_too_large', `Send at most ${maxBatchBytes} bytes (500 KB).`)
const tooFine = problem('payload_too_large', 'Send the body in larger chunks.')
const incomplete = problem('incomplete_body', 'Send the whole body that the head announces.')
