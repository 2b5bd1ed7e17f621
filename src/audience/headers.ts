import { headerValue, type ReceivedHeaders } from '../message/record-headers.ts'

/**
 * Returns the value of a header as text. Returns the first value if the header is repeated, and `undefined`
 * if the header is missing or empty.
 */
export function filledHeader(headers: ReceivedHeaders, name: string): string | undefined {
  const first = headerValue(headers, name)
  const text = typeof first === 'string' ? first : textOf(first)
  return text === '' ? undefined : text
}

/**
 * The header value that was decoded last. Consecutive records mostly have the same source, so the source's id
 * doesn't have to be decoded for each record.
 */
let last = { bytes: Buffer.alloc(0), text: '' }

function textOf(bytes: Buffer | undefined): string | undefined {
  if (bytes === undefined) return undefined
  // The bytes are part of a buffer that holds a whole fetch. They are copied, so that the buffer can be
  // freed.
  if (!isSame(bytes, last.bytes)) last = { bytes: Buffer.from(bytes), text: bytes.toString() }
  return last.text
}

function isSame(a: Buffer, b: Buffer): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false
  return true
}
