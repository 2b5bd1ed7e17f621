import { digestOf, findToken, type KeptToken, readStoredToken, type Token } from './tokens.ts'

export type TokenBookOptions = {
  /** The tokens of the file. */
  readonly ofFile: () => readonly Token[]
  /** The tokens of the topic. Returns another map after each change. */
  readonly ofTopic: () => ReadonlyMap<string, Readonly<Record<string, unknown>>>
  readonly now?: () => number
}

/** The tokens that are in force: those of the file, and those of the catalog's topic that have not ended. */
export class TokenBook {
  readonly #options: TokenBookOptions
  readonly #now: () => number
  /** When each token was used last, in epoch milliseconds, by its hash. */
  readonly #used = new Map<string, number>()
  /** What `#byDigest` was made from. */
  #stored: ReadonlyMap<string, unknown> | undefined
  #byDigest = new Map<string, KeptToken>()
  /** Since when the uses are known, in epoch milliseconds. */
  readonly usesKnownSinceMs: number

  constructor(options: TokenBookOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.usesKnownSinceMs = this.#now()
  }

  /** Finds a token, if it is in force at this moment. */
  find(given: string): Token | undefined {
    const ofFile = findToken(this.#options.ofFile(), given)
    // The hash of a guess says nothing about the hash of a token, so a table may be asked for it.
    const token = ofFile ?? this.#topic().get(digestOf(given).toString('hex'))
    if (token === undefined || this.hasEnded(token)) return undefined
    this.#used.set(token.digest.toString('hex'), this.#now())
    return token
  }

  /** Finds a token by its hash, in hexadecimal digits. It may have ended. */
  withHash(hash: string): Token | undefined {
    const ofFile = this.#options.ofFile().find(({ digest }) => digest.toString('hex') === hash)
    return ofFile ?? this.#topic().get(hash)
  }

  hasEnded({ endsAtMs }: Pick<Token, 'endsAtMs'>): boolean {
    return endsAtMs !== undefined && endsAtMs <= this.#now()
  }

  get ofFile(): readonly Token[] {
    return this.#options.ofFile()
  }

  /** The tokens of the topic, also those that have ended. */
  get ofTopic(): readonly KeptToken[] {
    return [...this.#topic().values()]
  }

  /** Returns when this process saw a token last, in epoch milliseconds. `undefined`: not since it started. */
  lastUsedMs({ digest }: Pick<Token, 'digest'>): number | undefined {
    return this.#used.get(digest.toString('hex'))
  }

  #topic(): ReadonlyMap<string, KeptToken> {
    const stored = this.#options.ofTopic()
    if (stored !== this.#stored) {
      this.#stored = stored
      const tokens = [...stored.values()].flatMap((one) => readStoredToken(one) ?? [])
      this.#byDigest = new Map(tokens.map((token) => [token.digest.toString('hex'), token]))
      this.#forget()
    }
    return this.#byDigest
  }

  #forget(): void {
    const ofFile = new Set(this.#options.ofFile().map(({ digest }) => digest.toString('hex')))
    for (const hex of this.#used.keys())
      if (!this.#byDigest.has(hex) && !ofFile.has(hex)) this.#used.delete(hex)
  }
}
