import { isUtf8 } from 'node:buffer'

/**
 * A fault of a file. `line` counts from 1. `problem` says what is wrong and what to do. It quotes nothing
 * from the file.
 */
export type LineFault = { readonly line: number; readonly problem: string }

export type LinesRead = { ok: true } | { ok: false; fault: LineFault }

/**
 * The longest line that is read, in bytes. A line may be a message, and `message.maxBytes` may be up to 16
 * MiB. A file with a longer line most likely has no line ends.
 */
const maxLineBytes = 16 * 1024 ** 2
const lineEnd = 0x0a
const replacement = '\ufffd'

/**
 * Passes the lines of a UTF-8 text to `take` one by one, without the line feeds and without a byte order
 * mark. Empty lines are left out. Only one chunk and one line are in memory. Stops at the first fault, or
 * when `take` returns a problem.
 */
export async function eachLine(
  input: AsyncIterable<Buffer>,
  take: (text: string, line: number) => string | undefined,
): Promise<LinesRead> {
  let line = 0
  let begun: Buffer[] = []
  let begunBytes = 0

  function takeBytes(bytes: Buffer): string | undefined {
    line++
    const text = bytes.toString()
    // Invalid UTF-8 is read as the replacement character, but the file may also contain this character
    // itself.
    if (text.includes(replacement) && !isUtf8(bytes)) return 'is not UTF-8: save the file as UTF-8'
    const body = line === 1 && text.startsWith('\ufeff') ? text.slice(1) : text
    return body.trim() === '' ? undefined : take(body, line)
  }

  function end(rest: Buffer): string | undefined {
    if (begun.length === 0) return takeBytes(rest)
    const whole = Buffer.concat([...begun, rest])
    begun = []
    begunBytes = 0
    return takeBytes(whole)
  }

  for await (const chunk of input) {
    let from = 0
    for (let to = chunk.indexOf(lineEnd); to !== -1; to = chunk.indexOf(lineEnd, from)) {
      const problem = end(chunk.subarray(from, to))
      if (problem !== undefined) return { ok: false, fault: { line, problem } }
      from = to + 1
    }
    if (from === chunk.length) continue
    begun.push(chunk.subarray(from))
    begunBytes += chunk.length - from
    if (begunBytes > maxLineBytes) {
      const problem = `is longer than ${maxLineBytes / 1024 ** 2} MiB: end each line with a line feed`
      return { ok: false, fault: { line: line + 1, problem } }
    }
  }
  const problem = begun.length === 0 ? undefined : end(Buffer.alloc(0))
  return problem === undefined ? { ok: true } : { ok: false, fault: { line, problem } }
}
