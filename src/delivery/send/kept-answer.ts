import type { Outcome } from '../outcomes/outcome.ts'
import { occurring } from '../../secrets/occurring.ts'
import { withoutSecrets } from '../../secrets/without-secrets.ts'

export type Answer = Extract<Outcome, { kind: 'answer' }>

/**
 * Number of bytes of an answer's body that are read after the kept part. With these bytes, a secret that
 * begins in the kept part and ends after it can be recognized.
 */
const lookAheadBytes = 8 * 1024

/**
 * Limit on the bytes of a user's id. For a longer id, the search could take more than half a millisecond, so
 * nothing of the answer is kept. Ids of people are much shorter.
 */
const maxUserIdBytes = 1_000
/**
 * Limits on the users of a request that may occur in what is kept of its answer, by their number and by the
 * characters of their ids. If there are more, the search could take milliseconds, and nothing is kept.
 */
const mostUsers = 128
const mostUserCharacters = 8 * 1024

/** The secrets of one request. They are masked together with those of its hook. */
export type RequestSecrets = {
  /**
   * The headers that only this request has: name, value, name, value. Of these, signatures and tokens are
   * masked.
   */
  readonly headers: readonly string[]
  readonly userId: Buffer | null
  /** The ids of all users, if the request has several messages. */
  readonly userIds?: readonly (Buffer | null)[] | undefined
}

/** Collects an answer while it arrives. See `KeptAnswer`. */
export type AnswerKeeper = Pick<KeptAnswer, 'begin' | 'hasBegun' | 'take' | 'outcome'>

/** The beginning of an unsuccessful answer, collected while the answer arrives. */
export class KeptAnswer {
  readonly #maxBytes: number
  readonly #ofHook: readonly string[]
  readonly #ofRequest: RequestSecrets
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #answer: Answer | undefined

  /**
   * `ofHook`: texts that are masked in the kept body, if they have six characters or more. It is the same
   * list for all answers of a hook. `ofRequest`: further ones.
   */
  constructor(maxBytes: number, ofHook: readonly string[], ofRequest: RequestSecrets = noSecrets) {
    this.#maxBytes = maxBytes
    this.#ofHook = ofHook
    this.#ofRequest = ofRequest
  }

  /**
   * If the answer is a success, its body is compressed, or the user's id is too long, returns false and keeps
   * nothing. Otherwise starts to keep the answer, and returns true. The caller then has to wait for the kept
   * part of the body before it reports the outcome.
   */
  begin(answer: Answer, contentEncoding: string | string[] | undefined): boolean {
    const isPlain = contentEncoding === undefined || contentEncoding === 'identity'
    const isSearchable = usersOf(this.#ofRequest).every((id) => (id?.length ?? 0) <= maxUserIdBytes)
    if ((answer.status >= 200 && answer.status < 300) || !isPlain || !isSearchable) return false
    this.#answer = answer
    return true
  }

  get hasBegun(): boolean {
    return this.#answer !== undefined
  }

  /** Adds a chunk of the body. Returns true if this chunk completes the kept part. */
  take(chunk: Buffer): boolean {
    const left = this.#maxBytes + lookAheadBytes - this.#bytes
    if (this.#answer === undefined || left <= 0) return false
    // The chunk is copied, because undici reuses its memory.
    this.#chunks.push(Buffer.from(chunk.subarray(0, left)))
    this.#bytes += chunk.length
    return chunk.length >= left
  }

  /** Returns the answer with the part of its body that has come. Returns `undefined` if no answer is kept. */
  outcome(): Answer | undefined {
    if (this.#answer === undefined || this.#bytes === 0) return this.#answer
    const read = Buffer.concat(this.#chunks)
    const limit = endOfKept(read, this.#maxBytes)
    const users = occurring(read, userIdsOf(this.#ofRequest), limit)
    if (users.length > mostUsers || charactersOf(users) > mostUserCharacters) return this.#answer
    const kept = withoutSecrets(read, this.#ofHook, [...headersOf(this.#ofRequest), ...users], limit)
    // The text is cut once more, because a mask may be longer than its secret. The body gets memory of its
    // own. Otherwise the larger buffer would be kept, or passed to another thread, along with the body.
    return { ...this.#answer, body: new Uint8Array(kept.subarray(0, endOfKept(kept, this.#maxBytes))) }
  }
}

/** The headers with signatures, as `signature.ts` writes them. */
const secretHeaders: ReadonlySet<string> = new Set(['X-Signature', 'webhook-signature'])

const noSecrets: RequestSecrets = { headers: [], userId: null }

function usersOf({ userId, userIds = [userId] }: RequestSecrets): readonly (Buffer | null)[] {
  return userIds
}

function userIdsOf(request: RequestSecrets): readonly string[] {
  const ids = usersOf(request).flatMap((userId) => (userId === null ? [] : [userId.toString('utf8')]))
  return [...new Set(ids)]
}

function charactersOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0)
}

/** Returns the secrets in the headers that only a request has. */
function headersOf({ headers }: RequestSecrets): readonly string[] {
  return headers.flatMap((value, at) => {
    const name = at % 2 === 1 ? (headers[at - 1] ?? '') : ''
    if (name === 'Authorization') return [value, value.slice('Bearer '.length)]
    return secretHeaders.has(name) ? [value] : []
  })
}

/** Returns how many bytes of a UTF-8 text are kept, at most `maxBytes`, so that no character is cut. */
function endOfKept(text: Uint8Array, maxBytes: number): number {
  if (text.length <= maxBytes) return text.length
  // A character has at most four bytes. A text that isn't UTF-8 is cut anywhere.
  const places = [0, 1, 2, 3].map((back) => Math.max(0, maxBytes - back))
  return places.find((place) => !isWithinCharacter(text[place] ?? 0)) ?? maxBytes
}

function isWithinCharacter(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}
