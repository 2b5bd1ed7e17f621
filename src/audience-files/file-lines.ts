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

/** The first bytes of files that aren't UTF-8 text, and what to do. */
const otherKinds: readonly (readonly [start: string, problem: string])[] = [
  ['\x1f\x8b', 'is packed with gzip: unpack the file first (gunzip)'],
  ['BZh', 'is packed with bzip2: unpack the file first (bunzip2)'],
  ['\x28\xb5\x2f\xfd', 'is packed with zstd: unpack the file first (unzstd)'],
  ['\xfd7zX', 'is packed with xz: unpack the file first (unxz)'],
  ['PK\x03\x04', 'is a zip archive or a spreadsheet: unpack it, or save the sheet as CSV in UTF-8'],
  ['\xd0\xcf\x11\xe0', 'is a spreadsheet: save the sheet as CSV in UTF-8'],
  ['PAR1', 'is a Parquet file: write it as CSV or NDJSON'],
  ['Obj\x01', 'is an Avro file: write it as CSV or NDJSON'],
  ['\xff\xfe', 'is UTF-16: save the file as UTF-8'],
  ['\xfe\xff', 'is UTF-16: save the file as UTF-8'],
]
const mostStartBytes = 512
/** Matches the beginning of a page, such as the error page of a server that should have sent a file. */
const page = /^(?:\ufeff)?\s*<(?:!doctype|html|head|body|\?xml)\b/i
const pageProblem = 'is HTML or XML, such as the error page of a server: get the file again'

/** A file whose first bytes may be UTF-8 text. The chunks include these bytes. */
type OpenedText = { ok: true; chunks: AsyncIterable<Buffer> } | { ok: false; problem: string }

/** Looks at the first bytes of a file. Returns a problem if the file is no text, or a page of a server. */
export async function openText(input: AsyncIterable<Buffer>): Promise<OpenedText> {
  const chunks = input[Symbol.asyncIterator]()
  let start = Buffer.alloc(0)
  while (start.length < mostStartBytes) {
    const next = await chunks.next()
    if (next.done === true) break
    start = Buffer.concat([start, next.value])
  }
  const latin1 = start.toString('latin1', 0, mostStartBytes)
  const other = otherKinds.find(([first]) => latin1.startsWith(first))?.[1]
  const problem = other ?? (page.test(start.toString('utf8', 0, mostStartBytes)) ? pageProblem : undefined)
  if (problem !== undefined) {
    await chunks.return?.()
    return { ok: false, problem }
  }
  async function* whole(): AsyncGenerator<Buffer> {
    try {
      if (start.length > 0) yield start
      yield* { [Symbol.asyncIterator]: () => chunks }
    } finally {
      await chunks.return?.()
    }
  }
  return { ok: true, chunks: whole() }
}

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

  const opened = await openText(input)
  if (!opened.ok) return { ok: false, fault: { line: 1, problem: opened.problem } }
  for await (const chunk of opened.chunks) {
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
