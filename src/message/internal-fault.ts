/** A bug in Sluice that showed while a record was processed. */
export type InternalFault = { ok: false; reason: 'internal_error'; detail: string }

/**
 * Describes where an error was thrown. Leaves out the error's message, because such messages quote the text
 * that they complain about, and so the record.
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
 * Calls a function that reads a record. If the function throws, that is a bug in Sluice. The bug must not
 * stop the reader, so the record is refused with an `InternalFault`.
 */
export function guarded<T>(read: () => T): T | InternalFault {
  try {
    return read()
  } catch (error) {
    return internalFault(error)
  }
}
