/** A bug in Sluice that has shown up while a record was processed. */
export type InternalFault = { ok: false; reason: 'internal_error'; detail: string }

/** Describes where an error was thrown. Leaves out the error's message, because it may quote the record. */
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
 * Calls a function that reads a record. If the function throws, there is a bug in Sluice. To keep the bug
 * from stopping the reader, returns an `InternalFault`, with which the record is refused.
 */
export function guarded<T>(read: () => T): T | InternalFault {
  try {
    return read()
  } catch (error) {
    return internalFault(error)
  }
}
