/** A fault of ours, met in the middle of a record. */
export type InternalFault = { ok: false; reason: 'internal_error'; detail: string }

/** Tells where an error was thrown, and nothing of the record: error messages quote what they complain of. */
export function internalFault(error: unknown): InternalFault {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const place = /^ +at .*$/m.exec(stack)?.[0].trim() ?? 'nowhere'
  const name = error instanceof Error ? error.name : typeof error
  return {
    ok: false,
    reason: 'internal_error',
    detail: `a fault of Sluice, please report it with the record: ${name} ${place}`,
  }
}

/** Reads a record. A throw would be a fault of ours, and must not stop what reads: it becomes a refusal. */
export function guarded<T>(read: () => T): T | InternalFault {
  try {
    return read()
  } catch (error) {
    return internalFault(error)
  }
}
