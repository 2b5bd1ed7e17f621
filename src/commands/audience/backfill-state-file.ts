import { readFile, rm, writeFile } from 'node:fs/promises'
import { type BackfillPosition, type BackfillScope, decodePosition } from '../../backfill/position.ts'
import { StartError } from '../../roles/start/start-error.ts'

/** `stateFile` is the file that says where the next run of a backfill continues. */
type StateOptions = { readonly stateFile: string | undefined; readonly isDryRun: boolean }

/** Reads the position from which a backfill continues. Returns `undefined` if it starts at the beginning. */
export async function readPosition(
  { stateFile, isDryRun }: StateOptions,
  scope: BackfillScope,
): Promise<BackfillPosition | undefined> {
  if (stateFile === undefined || isDryRun) return undefined
  let text: string
  try {
    text = await readFile(stateFile, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new StartError(`${stateFile} can not be read: name another file with --state, or remove it.`, {
      cause: error,
    })
  }
  const decoded = decodePosition(text, scope)
  if (decoded.ok) return decoded.position
  throw new StartError(`${stateFile} ${faults[decoded.fault]}`)
}

/** What is wrong with a state file, after its name, and what to do. */
export const faults = {
  other: 'is of another backfill: name another file with --state, or remove it to begin anew.',
  other_log:
    'is of a backfill that read other topics: they are of another cluster, or were deleted and created again since. Name another file with --state, or remove it to begin anew.',
  unreadable: 'does not say how far a backfill is: name another file with --state, or remove it.',
} as const

/** Throws if the state file can't be written. Call this before anything is sent. */
export async function refuseUnwritable({ stateFile, isDryRun }: StateOptions): Promise<void> {
  if (stateFile !== undefined && !isDryRun) await rm(await writePart(stateFile, ''))
}

/** Writes `text` to the file that will replace the state file. Returns the name of the written file. */
export async function writePart(stateFile: string, text: string): Promise<string> {
  const part = `${stateFile}.part`
  try {
    await writeFile(part, text)
    return part
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
    throw new StartError(`${stateFile} can not be written (${code}): name another file with --state.`, {
      cause,
    })
  }
}
