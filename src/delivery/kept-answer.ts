import type { Outcome } from './outcome.ts'

export type Answer = Extract<Outcome, { kind: 'answer' }>

/**
 * A text with fewer characters than this number doesn't count as a secret, because it could occur in an
 * answer by chance.
 */
const minSecretCharacters = 6
/**
 * Number of bytes of an answer's body that are read after the kept part. With these bytes, a secret that
 * begins in the kept part and ends after it can be recognized.
 */
const lookAheadBytes = 8 * 1024
/**
 * A body can end in the middle of a secret. Such a secret is recognized only if the body contains at least
 * this number of its characters.
 */
const minBrokenCharacters = 4
const mask = '[redacted]'

/** The beginning of an unsuccessful answer, collected while the answer arrives. */
export class KeptAnswer {
  readonly #maxBytes: number
  readonly #secrets: readonly string[]
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #answer: Answer | undefined

  /** `secrets`: texts that are masked in the kept body, if they have six characters or more. */
  constructor(maxBytes: number, secrets: readonly string[]) {
    this.#maxBytes = maxBytes
    this.#secrets = secrets
  }

  /**
   * If the answer is a success, or its body is compressed, returns false and keeps nothing. Otherwise starts
   * to keep the answer, and returns true. The caller then has to wait for the kept part of the body before it
   * reports the outcome.
   */
  begin(answer: Answer, contentEncoding: string | string[] | undefined): boolean {
    const isPlain = contentEncoding === undefined || contentEncoding === 'identity'
    if ((answer.status >= 200 && answer.status < 300) || !isPlain) return false
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
    const masked = withoutSecrets(Buffer.concat(this.#chunks), this.#secrets)
    // The body gets memory of its own. Otherwise the larger buffer would be kept, or passed to another
    // thread, along with the body.
    return { ...this.#answer, body: new Uint8Array(masked.subarray(0, this.#maxBytes)) }
  }
}

/**
 * Replaces each secret in a UTF-8 text with a mask. If the text ends in the middle of a secret, the beginning
 * of that secret is replaced too.
 */
export function withoutSecrets(body: Uint8Array, secrets: readonly string[]): Buffer {
  let text = Buffer.from(body).toString('utf8')
  const known = [...new Set(secrets)].filter(({ length }) => length >= minSecretCharacters)
  for (const secret of known.toSorted((a, b) => b.length - a.length)) text = text.replaceAll(secret, mask)
  const broken = Math.max(0, ...known.map((secret) => brokenOff(text, secret)))
  return Buffer.from(broken === 0 ? text : text.slice(0, -broken) + mask)
}

/**
 * If a text ends in the middle of a secret, returns how many characters of the secret it contains. Returns 0
 * if these are fewer than `minBrokenCharacters`.
 */
function brokenOff(text: string, secret: string): number {
  // A secret may be a record key of a megabyte, and the text short.
  const most = Math.min(secret.length - 1, text.length)
  for (let length = most; length >= minBrokenCharacters; length--)
    if (text.endsWith(secret.slice(0, length))) return length
  return 0
}

/**
 * Returns the secrets of a request that an answer could repeat. From each header, takes the value, the part
 * of the value after the authentication scheme, and for Basic authentication the login (`user:password`) and
 * the password. From the URL, takes the path, the query, and the values of the query.
 */
export function secretsOf(headers: readonly string[], path: string): string[] {
  const ofHeaders = headers.flatMap((value) => {
    const [scheme = '', given] = value.split(' ', 2)
    if (given === undefined) return [value]
    if (scheme.toLowerCase() !== 'basic') return [value, given]
    const login = Buffer.from(given, 'base64').toString('utf8')
    return [value, given, login, login.slice(login.indexOf(':') + 1)]
  })
  // `new URL` could throw here, because the path of a refused hook can be any text.
  const query = path.indexOf('?')
  if (query === -1) return [...ofHeaders, path]
  const values = new URLSearchParams(path.slice(query)).values()
  return [...ofHeaders, path, path.slice(0, query), path.slice(query), ...values]
}
