import type { IncomingMessage } from 'node:http'
import { type Answer, problem, soon } from './answer.ts'
import { maxBatchBytes } from './limits.ts'

/** A body that wasn't taken, with what its client is told. */
export class RefusedBody extends Error {
  override name = 'RefusedBody'
  readonly answer: Answer

  constructor(answer: Answer) {
    super('a body was refused')
    this.answer = answer
  }
}

/**
 * What is over the limit is read to its end, and thrown away, so that the client reads the answer and not a reset;
 * but no more than this.
 */
const maxReadBytes = 8 * 1_024 * 1_024

/** Receives bodies, of all requests together no more than `maxBytes` at a time. */
export class Receiver {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of bodies that aren't complete yet. */
  get bytes(): number {
    return this.#bytes
  }

  /** Calls `done` once: with the whole body, or with why there is none. */
  receive(request: IncomingMessage, done: (refusal: RefusedBody | null, body?: Buffer) => void): void {
    const chunks: Buffer[] = []
    /** Of what is kept, and of all that came. */
    let kept = 0
    let received = 0
    let refusal: RefusedBody | undefined

    const refuse = (answer: Answer): void => {
      refusal ??= new RefusedBody(answer)
      chunks.length = 0
      this.#bytes -= kept
      kept = 0
    }
    const finish = (): void => {
      request.off('data', take).off('end', finish).off('error', breakOff).off('close', breakOff)
      this.#bytes -= kept
      if (refusal === undefined) done(null, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, kept))
      else done(refusal)
    }
    const breakOff = (): void => {
      refuse(incomplete)
      finish()
    }
    const take = (chunk: Buffer): void => {
      received += chunk.length
      if (received > maxReadBytes) {
        refuse(tooLarge)
        finish()
      } else if (refusal === undefined && received > maxBatchBytes) {
        refuse(tooLarge)
      } else if (refusal === undefined && this.#bytes + chunk.length > this.#maxBytes) {
        refuse(problem('overloaded', 'Too much is being received. Send it again.', soon()))
      } else if (refusal === undefined) {
        chunks.push(chunk)
        kept += chunk.length
        this.#bytes += chunk.length
      }
    }
    request.on('data', take).on('end', finish).on('error', breakOff).on('close', breakOff)
  }
}

const tooLarge = problem('payload_too_large', `Send at most ${maxBatchBytes} bytes (500 KB).`)
const incomplete = problem('incomplete_body', 'Send the whole body that the head announces.')
