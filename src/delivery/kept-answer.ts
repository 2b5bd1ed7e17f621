import type { Outcome } from './outcome.ts'

export type Answer = Extract<Outcome, { kind: 'answer' }>

/** Shortest text that counts as a secret. Shorter texts may occur anywhere. */
const minSecretCharacters = 6
/**
 * Number of bytes that are read beyond the kept part, so that a secret which begins in the kept part is
 * recognized as a whole.
 */
const lookAheadBytes = 8 * 1024
/**
 * If the end of the body cuts a secret off, at least this many characters of the secret must be there for the
 * secret to be recognized.
 */
const minBrokenCharacters = 4
const mask = '[redacted]'

/** The beginning of an answer that is no success, while it arrives. */
export class KeptAnswer {
  readonly #maxBytes: number
  readonly #secrets: readonly string[]
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #answer: Answer | undefined

  /** `secrets`: texts that are never kept, if they have six characters or more. */
  constructor(maxBytes: number, secrets: readonly string[]) {
    this.#maxBytes = maxBytes
    this.#secrets = secrets
  }

  /**
   * Starts to keep an answer, and returns true: the outcome then waits for the body. Returns false for a
   * success or a compressed body, of which nothing is kept.
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

  /** Adds a chunk of the body. Returns true when this chunk completes the part that is kept. */
  take(chunk: Buffer): boolean {
    const left = this.#maxBytes + lookAheadBytes - this.#bytes
    if (this.#answer === undefined || left <= 0) return false
    // undici reuses the memory, so this is a copy.
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
 * Replaces each secret in a UTF-8 text with a mask. If the end of the text cuts a secret off, the beginning
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
 * Returns how many characters of the secret the text ends with, if the end of the text cuts the secret off.
 */
function brokenOff(text: string, secret: string): number {
  for (let length = secret.length - 1; length >= minBrokenCharacters; length--)
    if (text.endsWith(secret.slice(0, length))) return length
  return 0
}

/**
 * Returns the secrets of a request that an answer could repeat. From a header: its value, the part after the
 * scheme, and the login in it. From a URL: the path, and the values of the query.
 */
export function secretsOf(headers: readonly string[], path: string): string[] {
  const ofHeaders = headers.flatMap((value) => {
    const [scheme = '', given] = value.split(' ', 2)
    if (given === undefined) return [value]
    if (scheme.toLowerCase() !== 'basic') return [value, given]
    const login = Buffer.from(given, 'base64').toString('utf8')
    return [value, given, login, login.slice(login.indexOf(':') + 1)]
  })
  // `new URL` doesn't work here: a hook that may not be posted to can have any text as its path.
  const query = path.indexOf('?')
  if (query === -1) return [...ofHeaders, path]
  const values = new URLSearchParams(path.slice(query)).values()
  return [...ofHeaders, path, path.slice(0, query), path.slice(query), ...values]
}
