/** Where a copied record was before, and when it was appended there: a header of the copy. */
export type Place = { readonly partition: number; readonly offset: number; readonly timestampMs: number }

export const placeHeader = 'grown-from'

export function encodePlace({ partition, offset, timestampMs }: Place): string {
  return `${partition}/${offset}/${timestampMs}`
}

/** `undefined` for what `encodePlace` has not written. */
export function decodePlace(text: string | undefined): Place | undefined {
  const match = /^(\d{1,10})\/(\d{1,15})\/(-?\d{1,15})$/.exec(text ?? '')
  if (match === null) return undefined
  return { partition: Number(match[1]), offset: Number(match[2]), timestampMs: Number(match[3]) }
}
