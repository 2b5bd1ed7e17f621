import type { IncomingMessage } from 'node:http'
import { answerText } from './answer-text.ts'

/**
 * Reads the body of an answer as text. Rejects if the body is over `maxBytes`, or if the connection ends
 * before the body is complete.
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
  return answerText(Buffer.concat(chunks))
}
