import { headerValue, type ReceivedHeaders } from '../message/record-headers.ts'

/**
 * The value of a header as text, the first one where it is repeated; `undefined` where there is none, or it
 * is empty.
 */
export function filledHeader(headers: ReceivedHeaders, name: string): string | undefined {
  const first = headerValue(headers, name)
  const text = typeof first === 'string' ? first : textOf(first)
  return text === '' ? undefined : text
}

/** Records one after the other are mostly of one source: its id is not made anew for each. */
let last = { bytes: Buffer.alloc(0), text: '' }

function textOf(bytes: Buffer | undefined): string | undefined {
  if (bytes === undefined) return undefined
  // A slice of a whole fetch: it is copied.
  if (!isSame(bytes, last.bytes)) last = { bytes: Buffer.from(bytes), text: bytes.toString() }
  return last.text
}

function isSame(a: Buffer, b: Buffer): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false
  return true
}
