import type { IncomingMessage } from 'node:http'
import { type Answer, problem } from '../calls/answer.ts'
import { tooMuchReceived } from '../calls/service-unavailable.ts'
import { maxBatchBytes } from '../messages/request-limits.ts'

/**
 * The error for a body that was refused before its end was read. The client gets `answer`, and the connection
 * can't be used for another request.
 */
export class RefusedBody extends Error {
  override name = 'RefusedBody'
  readonly answer: Answer
  /** True if the client may be sending more of the body. */
  readonly isEndless: boolean

  constructor(answer: Answer, isEndless: boolean) {
    super('a body was refused before its end')
    this.answer = answer
    this.isEndless = isEndless
  }
}

/**
 * The limit on the bytes that are read of a refused body. Many clients read an answer only after they have
 * sent everything. So if a body is over `maxBatchBytes`, it is read to its end and discarded. But once a body
 * exceeds `maxReadBytes`, its request is answered at once.
 */
const maxReadBytes = 8 * 1_024 * 1_024

/**
 * After this number of pieces of a body, the average size of the pieces is checked, because even a tiny piece
 * takes as much time, and for a moment as much memory, as hundreds of bytes.
 */
const freePieces = 4_096
const leastPieceBytes = 32
const firstBytes = 4 * 1_024
/**
 * The fraction of a body that must have come before memory is allocated for the whole length that the head of
 * the request announces. Otherwise a client could make the gateway allocate much memory, by announcing a
 * large body without sending it.
 */
const leastShare = 1 / 4

/**
 * The treatment of a body. `keep`: the body is kept. `discard`: nobody needs the body. If it is an answer,
 * the body is refused with this answer because of the head of its request.
 */
export type Reception = 'keep' | 'discard' | Answer

/**
 * A whole body, or the answer that refuses it. A refused body was read to its end too, so the connection can
 * be used for the next request.
 */
export type Received = Buffer | Answer

/** Receives bodies. Holds at most `maxBytes` for all requests together. */
export class Receiver {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The bytes that are held for bodies that aren't complete yet. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Receives a body, and calls `done` once. If the body was read to its end, `done` gets the whole body, or
   * the answer that refuses the body. If the body is to be discarded, `done` gets an empty body. If the end
   * of the body will not come, or if the receiver doesn't wait for it, `done` gets a `RefusedBody`.
   */
  receive(request: IncomingMessage, reception: Reception, done: Done): void {
    const announced = Number(request.headers['content-length'] ?? 0)
    const body = new IncomingBody(reception, announced, (bytes) => this.#charge(bytes))
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
   * Adds a number of bytes to the bytes that are held. A negative number is subtracted. If there is no room,
   * adds nothing and returns false.
   */
  #charge(bytes: number): boolean {
    if (bytes > 0 && this.#bytes + bytes > this.#maxBytes) return false
    this.#bytes += bytes
    return true
  }
}

type Done = (refusal: RefusedBody | null, received?: Received) => void

/**
 * Holds one body while it arrives, in pieces of any size. The pieces are copied into one buffer, so that the
 * body takes exactly the memory that is counted for it.
 */
class IncomingBody {
  readonly #reception: Reception
  /** The length that the head announces; 0 if it announces none. */
  readonly #announced: number
  /** Adds to the number of bytes that are held for all bodies. Returns false if there is no room. */
  readonly #charge: (bytes: number) => boolean
  #held: Buffer = nothing
  #length = 0
  #seenBytes = 0
  #pieces = 0
  #isKept: boolean
  #refusal: Answer | undefined

  constructor(reception: Reception, announced: number, charge: (bytes: number) => boolean) {
    this.#reception = reception
    this.#announced = announced
    this.#charge = charge
    this.#isKept = reception === 'keep'
    this.#refusal = typeof reception === 'string' ? undefined : reception
  }

  get refusal(): Answer | undefined {
    return this.#refusal
  }

  /**
   * Accepts the next piece of the body. Returns a refusal if the receiver shouldn't wait for the rest of the
   * body.
   */
  take(chunk: Buffer): RefusedBody | undefined {
    this.#seenBytes += chunk.length
    this.#pieces++
    if (this.#pieces > freePieces && this.#seenBytes < this.#pieces * leastPieceBytes)
      return new RefusedBody(tooFine, true)
    if (this.#seenBytes > maxBatchBytes) {
      // Even if the body was already refused because there was no room, the answer is now `tooLarge`, which
      // tells the client not to send it again.
      if (!this.#isRefusedBefore) this.#refuse(tooLarge)
      if (this.#seenBytes > maxReadBytes) return new RefusedBody(this.#refusal ?? tooLarge, true)
    } else if (this.#isKept) this.#keep(chunk)
    return undefined
  }

  /** Ends the body. Returns the whole body, or the answer that refuses it. */
  end(): Received {
    const received = this.#refusal ?? this.#held.subarray(0, this.#length)
    this.release()
    return received
  }

  /** Releases the held bytes. No further piece is kept. */
  release(): void {
    this.#charge(-this.#held.length)
    this.#held = nothing
    this.#length = 0
    this.#isKept = false
  }

  /**
   * True if the body was refused because of the request's head, and not because of its own content or size.
   */
  get #isRefusedBefore(): boolean {
    return this.#refusal !== undefined && this.#refusal === this.#reception
  }

  #refuse(answer: Answer): void {
    this.#refusal = answer
    this.release()
  }

  #keep(chunk: Buffer): void {
    const needed = this.#length + chunk.length
    // A body that came in one piece isn't copied, because Node allocates separate memory for each piece.
    if (needed === this.#announced && this.#length === 0 && this.#charge(needed)) {
      this.#held = chunk
      this.#length = needed
      return
    }
    if (needed > this.#held.length && !this.#grow(needed)) {
      this.#refuse(tooMuchReceived())
      return
    }
    chunk.copy(this.#held, this.#length)
    this.#length = needed
  }

  #grow(needed: number): boolean {
    const isNear = needed >= this.#announced * leastShare
    const wanted = isNear && needed <= this.#announced ? this.#announced : 2 * this.#held.length
    const bytes = Math.min(maxBatchBytes, Math.max(firstBytes, wanted, needed))
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
