/** Words by which sources and destinations are chosen, such as `tenant: acme`. */
export type Labels = Readonly<Record<string, string>>

export const maxLabels = 20
export const labelKeyPattern = '^[a-z][a-z0-9._-]{0,62}$'
/** Describes what `labelKeyPattern` requires. */
export const labelKeyExpected = '1 to 63 of the characters a-z 0-9 . _ - and begins with a letter'
export const labelValuePattern = '^[A-Za-z0-9][A-Za-z0-9 ._@:/+-]{0,99}$'
/** Describes what `labelValuePattern` requires. */
export const labelValueExpected =
  '1 to 100 of the characters A-Z a-z 0-9 . _ @ : / + - and spaces, and begins with a letter or a digit'

/** One label that entries must have to be chosen. */
export type LabelSelector = { readonly key: string; readonly value: string }

const selector = new RegExp(`^(${labelKeyPattern.slice(1, -1)})=(${labelValuePattern.slice(1, -1)})$`)

/** Reads a selector such as `tenant=acme`. Returns `undefined` if the text isn't one. */
export function readSelector(text: string): LabelSelector | undefined {
  const [, key, value] = selector.exec(text) ?? []
  return key === undefined || value === undefined ? undefined : { key, value }
}

export function isSelected(labels: Labels | undefined, { key, value }: LabelSelector): boolean {
  return labels !== undefined && Object.hasOwn(labels, key) && labels[key] === value
}
