type FileStats = { dev: bigint; ino: bigint; size: bigint; mtimeNs: bigint; ctimeNs: bigint }

/**
 * Returns a text that changes with every edit of a file. An edit may replace the file (an editor), replace a
 * link (a ConfigMap) or replace the content (`cp`).
 */
export function signatureFrom({ dev, ino, size, mtimeNs, ctimeNs }: FileStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}

/**
 * Returns the code of an error of the file system, such as `ENOENT`. Returns `undefined` for other errors.
 */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
