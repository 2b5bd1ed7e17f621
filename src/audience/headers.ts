import type { RecordContent } from './ports.ts'

/** The value of a header as text, the first one where it is repeated; `undefined` where there is none, or it is empty. */
export function headerText(headers: RecordContent['headers'], name: string): string | undefined {
  const value = headers?.[name]
  const first = Array.isArray(value) ? value[0] : value
  const text = first?.toString()
  return text === '' ? undefined : text
}

/** Reads a header `origin`: topic, partition and offset of the record that another one was made of. */
export function parseOrigin(text: string | undefined): { partition: number; offset: number } | undefined {
  const match = /^.+\/(\d{1,10})\/(\d{1,15})$/.exec(text ?? '')
  return match === null ? undefined : { partition: Number(match[1]), offset: Number(match[2]) }
}
