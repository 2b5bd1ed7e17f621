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
  receive(request: IncomingMessage, reception: Reception, done: Done): void {
    const body = new IncomingBody(reception, (bytes) => this.#charge(bytes))
    const leave = (): void => {
      request.off('data', take).off('end', end).off('error', breakOff).off('close', breakOff)
    }
    const end = (): void => {
      leave()
      done(null, body.end())
    }
    const stop = (refusal: RefusedBody): void => {
      leave()
      body.release()
      done(refusal)
    }
    const breakOff = (): void => stop(new RefusedBody(body.refusal ?? incomplete, false))
    const take = (chunk: Buffer): void => {
      const refusal = body.take(chunk)
      if (refusal !== undefined) stop(refusal)
    }
    request.on('data', take).on('end', end).on('error', breakOff).on('close', breakOff)
  }

  /**
   * Counts bytes as held, or given back where negative. Returns false, and counts nothing, where there is no
   * room.
   */
  #charge(bytes: number): boolean {
    if (bytes > 0 && this.#bytes + bytes > this.#maxBytes) return false
    this.#bytes += bytes
    return true
  }
}

type Done = (refusal: RefusedBody | null, received?: Received) => void

/**
 * Holds one body while it comes. Bodies come in pieces of any size: these are copied together at once, and
 * what is held is what is charged.
 */
class IncomingBody {
  readonly #reception: Reception
  /** Takes the number of bytes that are held from now on; negative where they are given back. */
  readonly #charge: (bytes: number) => boolean
  #held: Buffer = nothing
  #length = 0
  #seenBytes = 0
  #pieces = 0
  #isKept: boolean
  #refusal: Answer | undefined

  constructor(reception: Reception, charge: (bytes: number) => boolean) {
    this.#reception = reception
    this.#charge = charge
    this.#isKept = reception === 'keep'
    this.#refusal = typeof reception === 'string' ? undefined : reception
  }

  get refusal(): Answer | undefined {
    return this.#refusal
  }

  /** Takes the next piece. Returns a refusal where the rest of the body isn't waited for. */
  take(chunk: Buffer): RefusedBody | undefined {
    this.#seenBytes += chunk.length
    this.#pieces++
    if (this.#pieces > freePieces && this.#seenBytes < this.#pieces * leastPieceBytes)
      return new RefusedBody(tooFine, true)
    if (this.#seenBytes > maxBatchBytes) {
      // Also where there was no room for it: to send it again would be no use.
      if (!this.#isRefusedBefore) this.#refuse(tooLarge)
      if (this.#seenBytes > maxReadBytes) return new RefusedBody(this.#refusal ?? tooLarge, true)
    } else if (this.#isKept) this.#keep(chunk)
    return undefined
  }

  /** Ends the body: returns all of it, or why it isn't taken. */
  end(): Received {
    const received = this.#refusal ?? this.#held.subarray(0, this.#length)
    this.release()
    return received
  }

  /** Gives back what is held; nothing more is kept. */
  release(): void {
    this.#charge(-this.#held.length)
    this.#held = nothing
    this.#length = 0
    this.#isKept = false
  }

  /** It was refused for a reason that was known before it, and not for what it is. */
  get #isRefusedBefore(): boolean {
    return this.#refusal !== undefined && this.#refusal === this.#reception
  }

  #refuse(answer: Answer): void {
    this.#refusal = answer
    this.release()
  }

  #keep(chunk: Buffer): void {
    const needed = this.#length + chunk.length
    if (needed > this.#held.length && !this.#grow(needed)) {
      this.#refuse(tooMuchReceived())
      return
    }
    chunk.copy(this.#held, this.#length)
    this.#length = needed
  }

  #grow(needed: number): boolean {
    const bytes = Math.min(maxBatchBytes, Math.max(firstBytes, 2 * this.#held.length, needed))
    if (!this.#charge(bytes - this.#held.length)) return false
    const larger = Buffer.allocUnsafeSlow(bytes)
    this.#held.copy(larger, 0, 0, this.#length)
    this.#held = larger
    return true
  }
}

const nothing = Buffer.alloc(0)

const tooLarge = problem('payload_too_large', `Send at most ${maxBatchBytes} bytes (500 KB).`)
const tooFine = problem('payload_too_large', 'Send the body in larger chunks.')
const incomplete = problem('incomplete_body', 'Send the whole body that the head announces.')
