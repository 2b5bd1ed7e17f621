import type { IncomingMessage } from 'node:http'

/**
 * The body of an answer as text. Rejects when it is over `maxBytes`, or when the connection ends before it
 * does.
 */
export async function readAnswer(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    const part = Buffer.from(chunk)
    bytes += part.length
    if (bytes > maxBytes) throw new Error(`its answer is over ${maxBytes} bytes`)
    chunks.push(part)
  }
  return Buffer.concat(chunks).toString()
}
