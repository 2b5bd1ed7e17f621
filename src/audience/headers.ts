import type { RecordContent } from './ports.ts'

/** The value of a header as text, the first one where it is repeated; `undefined` where there is none, or it is empty. */
export function headerText(headers: RecordContent['headers'], name: string): string | undefined {
  const value = headers?.[name]
  const first = Array.isArray(value) ? value[0] : value
  const text = typeof first === 'string' ? first : textOf(first)
  return text === '' ? undefined : text
}

/** Records one after the other are mostly of one source: its id is not made anew for each. */
let last = { bytes: Buffer.alloc(0), text: '' }

function textOf(bytes: Buffer | null | undefined): string | undefined {
  if (bytes === null || bytes === undefined) return undefined
  // A slice of a whole fetch: it is copied.
  if (!isSame(bytes, last.bytes)) last = { bytes: Buffer.from(bytes), text: bytes.toString() }
  return last.text
}

function isSame(a: Buffer, b: Buffer): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false
  return true
}

/** Reads a header `origin`: topic, partition and offset of the record that another one was made of. */
export function parseOrigin(text: string | undefined): { partition: number; offset: number } | undefined {
  if (text === undefined) return undefined
  const match = /^.+\/(\d{1,10})\/(\d{1,15})$/.exec(text)
  return match === null ? undefined : { partition: Number(match[1]), offset: Number(match[2]) }
}
