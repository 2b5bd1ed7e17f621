/**
 * The original place of a copied record, and the time when the record was appended there. The copy has both
 * in a header.
 */
export type Place = { readonly partition: number; readonly offset: number; readonly timestampMs: number }

export const placeHeader = 'grown-from'

export function encodePlace({ partition, offset, timestampMs }: Place): string {
  return `${partition}/${offset}/${timestampMs}`
}

export function decodePlace(text: string | undefined): Place | undefined {
  const match = /^(\d{1,10})\/(\d{1,15})\/(-?\d{1,15})$/.exec(text ?? '')
  if (match === null) return undefined
  return { partition: Number(match[1]), offset: Number(match[2]), timestampMs: Number(match[3]) }
}
