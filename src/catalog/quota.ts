import { labelKeyPattern } from './labels.ts'

/** How many destinations may have the same value of a label. */
export type Quota = { readonly label: string; readonly most: number }

const quota = new RegExp(`^(${labelKeyPattern.slice(1, -1)}):([1-9][0-9]{0,6})$`)

/** Reads a quota such as `tenant:100`. Returns `undefined` if the text isn't one. */
export function readQuota(text: string): Quota | undefined {
  const [, label, most] = quota.exec(text) ?? []
  return label === undefined ? undefined : { label, most: Number(most) }
}
