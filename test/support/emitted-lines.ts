/** The messages of the log lines that a test file's processes have written so far. */
const emitted = new Set<string>()

export function noteLine(message: string): void {
  emitted.add(message)
}

/** Notes the message of each line of an output that is a line of the log. */
export function noteOutput(output: string): void {
  for (const line of output.split('\n')) {
    const message = line.startsWith('{"level"') ? messageOf(line) : undefined
    if (message !== undefined) noteLine(message)
  }
}

/** Returns the messages since the last call, and forgets them. */
export function takeLines(): ReadonlySet<string> {
  const taken = new Set(emitted)
  emitted.clear()
  return taken
}

/** A log for code in the process of a test that doesn't look at it. */
export const quietLog = { debug: note, info: note, warn: note, error: note, flush: () => undefined }

function note(_fields: object, message = ''): void {
  noteLine(message)
}

function messageOf(line: string): string | undefined {
  try {
    const { msg }: { msg?: unknown } = Object(JSON.parse(line))
    return typeof msg === 'string' ? msg : undefined
  } catch {
    return undefined
  }
}
