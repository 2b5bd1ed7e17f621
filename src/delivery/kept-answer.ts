import type { Outcome } from './outcome.ts'

export type Answer = Extract<Outcome, { kind: 'answer' }>

/** Shorter texts are no secrets, and may be anywhere. */
const minSecretCharacters = 6
/** Read beyond what is kept, so that a secret that begins in it is known as a whole. */
const lookAheadBytes = 8 * 1024
/** Of a secret that breaks off at the end of what came, so many characters tell that it is one. */
const minBrokenCharacters = 4
const mask = '[redacted]'

/** The beginning of an answer that is no success, while it comes. */
export class KeptAnswer {
  readonly #maxBytes: number
  readonly #secrets: readonly string[]
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #answer: Answer | undefined

  /** `secrets`: nothing is kept of those that have six characters or more. */
  constructor(maxBytes: number, secrets: readonly string[]) {
    this.#maxBytes = maxBytes
    this.#secrets = secrets
  }

  /** Whether the outcome waits for its body: not that of a success, nor of one that is compressed. */
  begin(answer: Answer, contentEncoding: string | string[] | undefined): boolean {
    const isPlain = contentEncoding === undefined || contentEncoding === 'identity'
    if ((answer.status >= 200 && answer.status < 300) || !isPlain) return false
    this.#answer = answer
    return true
  }

  get hasBegun(): boolean {
    return this.#answer !== undefined
  }

  /** Gives true when it has all that it keeps. */
  take(chunk: Buffer): boolean {
    const left = this.#maxBytes + lookAheadBytes - this.#bytes
    if (this.#answer === undefined || left <= 0) return false
    // A copy: undici goes on using the memory.
    this.#chunks.push(Buffer.from(chunk.subarray(0, left)))
    this.#bytes += chunk.length
    return chunk.length >= left
  }

  /** The answer with what has come of its body; `undefined` where none is kept. */
  outcome(): Answer | undefined {
    if (this.#answer === undefined || this.#bytes === 0) return this.#answer
    const masked = withoutSecrets(Buffer.concat(this.#chunks), this.#secrets)
    // Memory of its own: what it is a part of isn't kept, nor handed to another thread with it.
    return { ...this.#answer, body: new Uint8Array(masked.subarray(0, this.#maxBytes)) }
  }
}

/** A text in UTF-8 with a mask in place of each secret, and of the beginning of one at its end. */
export function withoutSecrets(body: Uint8Array, secrets: readonly string[]): Buffer {
  let text = Buffer.from(body).toString('utf8')
  const known = [...new Set(secrets)].filter(({ length }) => length >= minSecretCharacters)
  for (const secret of known.toSorted((a, b) => b.length - a.length)) text = text.replaceAll(secret, mask)
  const broken = Math.max(0, ...known.map((secret) => brokenOff(text, secret)))
  return Buffer.from(broken === 0 ? text : text.slice(0, -broken) + mask)
}

/** How many characters of the secret the text ends with, where it breaks off in it. */
function brokenOff(text: string, secret: string): number {
  for (let length = secret.length - 1; length >= minBrokenCharacters; length--)
    if (text.endsWith(secret.slice(0, length))) return length
  return 0
}

/**
 * What an answer could repeat of a request: of headers the value, what follows its scheme, and the login in
 * it; of a URL the path and the values of its query.
 */
export function secretsOf(headers: readonly string[], path: string): string[] {
  const ofHeaders = headers.flatMap((value) => {
    const [scheme = '', given] = value.split(' ', 2)
    if (given === undefined) return [value]
    if (scheme.toLowerCase() !== 'basic') return [value, given]
    const login = Buffer.from(given, 'base64').toString('utf8')
    return [value, given, login, login.slice(login.indexOf(':') + 1)]
  })
  // Not `new URL`: the path of a hook that may not be posted to can be of any shape.
  const query = path.indexOf('?')
  if (query === -1) return [...ofHeaders, path]
  const values = new URLSearchParams(path.slice(query)).values()
  return [...ofHeaders, path, path.slice(0, query), path.slice(query), ...values]
}
