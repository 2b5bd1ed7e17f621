/** A breach of a rule, as in `hook-rules.ts`. */
export type FeatureBreach = {
  readonly problem: string
  readonly advice: string
  /** True if the value of the variable has to be a certificate or a key in PEM. */
  readonly isPem?: boolean
}

/** A hook that is checked: what the rules of its features need from the rules of the catalog. */
export type HookCheck = {
  /** False if the URL of the hook begins with `http:`. `undefined`: the URL isn't known. */
  readonly isSecure: boolean | undefined
  /** Reports a fault of the value to which `keys` lead from the hook. */
  add(keys: readonly string[], breach: FeatureBreach): void
  /**
   * Fills in the variables of a text, and checks it by a rule. Returns the text if it has no fault.
   * `undefined`: there is no text, or it has a fault, which was reported.
   */
  text(
    keys: readonly string[],
    value: unknown,
    rule: (text: string) => FeatureBreach | undefined,
    options?: { readonly isPem?: boolean },
  ): string | undefined
  /** Checks a URL, which has no variables, by the rules for those of hooks. */
  url(keys: readonly string[], value: unknown): void
}

/** A part of a catalog that isn't checked by the schema yet. */
export type Unchecked = Readonly<Record<string, unknown>>
