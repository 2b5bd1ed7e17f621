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
    let refusal: Answer | undefined

    const refuse = (answer: Answer): void => {
      refusal = answer
      chunks.length = 0
      this.#bytes -= kept
      kept = 0
    }
    const finish = (isEndless: boolean): void => {
      request.off('data', take).off('end', end).off('error', breakOff).off('close', breakOff)
      this.#bytes -= kept
      if (refusal !== undefined) done(new RefusedBody(refusal, isEndless))
      else done(null, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, kept))
    }
    const end = (): void => finish(false)
    const breakOff = (): void => {
      refuse(refusal ?? incomplete)
      finish(false)
    }
    const take = (chunk: Buffer): void => {
      received += chunk.length
      if (received > maxBatchBytes) {
        // Also where there was no room for it: to send it again would be no use.
        if (refusal !== tooLarge) refuse(tooLarge)
        if (received > maxReadBytes) finish(true)
      } else if (refusal !== undefined) {
        return
      } else if (this.#bytes + chunk.length > this.#maxBytes) {
        refuse(problem('overloaded', 'Too much is being received. Send it again.', soon()))
      } else {
        chunks.push(chunk)
        kept += chunk.length
        this.#bytes += chunk.length
      }
    }
    request.on('data', take).on('end', end).on('error', breakOff).on('close', breakOff)
  }
}

const tooLarge = problem('payload_too_large', `Send at most ${maxBatchBytes} bytes (500 KB).`)
const incomplete = problem('incomplete_body', 'Send the whole body that the head announces.')
