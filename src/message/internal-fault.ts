/** A bug in Sluice that showed while a record was processed. */
export type InternalFault = { ok: false; reason: 'internal_error'; detail: string }

/**
 * Describes where an error was thrown. It tells nothing of the record: error messages quote the text that
 * they complain about.
 */
export function internalFault(error: unknown): InternalFault {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const place = /^ +at .*$/m.exec(stack)?.[0].trim() ?? 'nowhere'
  const name = error instanceof Error ? error.name : typeof error
  return {
    ok: false,
    reason: 'internal_error',
    detail: `a fault of Sluice: please report it with the record: ${name} ${place}`,
  }
}

/**
 * Calls a function that reads a record. A throw would be a bug in Sluice, and must not stop the reader, so it
 * becomes a refusal.
 */
export function guarded<T>(read: () => T): T | InternalFault {
  try {
    return read()
  } catch (error) {
    return internalFault(error)
  }
}
