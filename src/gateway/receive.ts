import type { IncomingMessage } from 'node:http'
import { type Answer, problem, soon } from './answer.ts'
import { maxBatchBytes } from './limits.ts'

/** A body that wasn't taken, with what its client is told. */
export class RefusedBody extends Error {
  override name = 'RefusedBody'
  readonly answer: Answer
  /** Its client may be sending more of it. */
  readonly isEndless: boolean

  constructor(answer: Answer, isEndless: boolean) {
    super('a body was refused')
    this.answer = answer
    this.isEndless = isEndless
  }
}

/**
 * What is over the limit is read to its end, and thrown away: many a client looks for an answer only when it has sent
 * all. A body of more than this is answered before its end.
 */
const maxReadBytes = 8 * 1_024 * 1_024

/** After so many pieces of a body they are looked at: each costs as much as hundreds of bytes, in time and for a moment in memory. */
const freePieces = 4_096
const leastPieceBytes = 32
const firstBytes = 4 * 1_024

/** What is to become of a body: it is kept, or refused for a reason that is known before it, or nobody needs it. */
export type Reception = 'keep' | 'discard' | Answer

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
   * Calls `done` once: with the whole body (an empty one where it is discarded), or with why there is none. What isn't kept
   * is read to its end all the same.
   */
  receive(
    request: IncomingMessage,
    reception: Reception,
    done: (refusal: RefusedBody | null, body?: Buffer) => void,
  ): void {
    /** Bodies come in pieces of any size: they are copied together at once, and what is held is what is charged. */
    let held: Buffer = nothing
    let length = 0
    let received = 0
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
    const finish = (isEndless: boolean): void => {
      request.off('data', take).off('end', end).off('error', breakOff).off('close', breakOff)
      const body = held.subarray(0, length)
      release()
      if (refusal !== undefined) done(new RefusedBody(refusal, isEndless))
      else done(null, body)
    }
    const end = (): void => finish(false)
    const breakOff = (): void => {
      refuse(refusal ?? incomplete)
      finish(false)
    }
    const keep = (chunk: Buffer): void => {
      const needed = length + chunk.length
      if (needed > held.length) {
        const bytes = Math.min(maxBatchBytes, Math.max(firstBytes, 2 * held.length, needed))
        if (this.#bytes + bytes - held.length > this.#maxBytes) {
          refuse(problem('overloaded', 'Too much is being received. Send it again.', soon()))
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
      received += chunk.length
      pieces++
      if (pieces > freePieces && received < pieces * leastPieceBytes) {
        refuse(tooFine)
        finish(true)
      } else if (received > maxBatchBytes) {
        // Also where there was no room for it: to send it again would be no use.
        if (refusal !== tooLarge && isOwn(reception, refusal)) refuse(tooLarge)
        if (received > maxReadBytes) finish(true)
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
