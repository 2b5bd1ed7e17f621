/** Returns the code of an error, such as `ECONNREFUSED`, or its name if it has no code. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
