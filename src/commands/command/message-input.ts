import { parseJson } from '../../message/json/json.ts'
import { StartError } from '../../roles/start/start-error.ts'
import { openInput } from './upstream-input.ts'

/**
 * Reads messages as texts of JSON from a file, or with `-` from standard input: one on each line, or a list.
 */
export async function readMessages(file: string): Promise<readonly string[]> {
  const { name, chunks } = await openInput(file)
  const read: Buffer[] = []
  for await (const chunk of chunks) read.push(chunk)
  const text = Buffer.concat(read).toString()
  const whole = parseJson(text)
  if (whole.ok) return Array.isArray(whole.value) ? whole.value.map((one) => JSON.stringify(one)) : [text]
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 0) throw new StartError(`${name} has no messages: write one JSON object a line.`)
  return lines
}
