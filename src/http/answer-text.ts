const decoder = new TextDecoder()

/**
 * Returns the text of the body of an answer, as `fetch` does: without a byte order mark. Some servers write
 * one before their JSON, and JSON.parse refuses it.
 */
export function answerText(body: Uint8Array): string {
  return decoder.decode(body)
}
