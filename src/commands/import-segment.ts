import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { parseJson } from '../message/json/json.ts'
import { counted } from '../roles/start/progress.ts'
import { StartError } from '../roles/start/start-error.ts'
import { type Imported, importWorkspace } from '../segment-import/import.ts'
import { noteText } from '../segment-import/note.ts'
import { workspaceOf } from '../segment-import/workspace.ts'
import { writeError } from './command/tools.ts'
import { openInput } from './command/upstream-input.ts'

export type SegmentImport = {
  /** The files with answers of the Public API, or `-` for standard input. */
  readonly files: readonly string[]
  /** The folder that gets a file for each secret. `undefined`: secrets are written nowhere. */
  readonly folder: string | undefined
  readonly asJson: boolean
}

/** Returns the catalog of a Segment workspace. Tells on standard error what isn't in it. */
export async function importSegment({ files, folder, asJson }: SegmentImport): Promise<string[]> {
  const answers = (await Promise.all(files.map(answersIn))).flat()
  const workspace = workspaceOf(answers)
  if (workspace.sources.length === 0 && workspace.destinations.length === 0)
    throw new StartError(
      `${files.join(', ')}: there are no sources and no destinations of Segment's Public API in it: give the answers of GET /sources and GET /destinations.`,
    )
  const imported = importWorkspace(workspace)
  if (folder !== undefined) await writeVariables(folder, imported.variables)
  if (asJson) {
    const { catalog, variables, notes } = imported
    return [JSON.stringify({ catalog, variables: [...variables.keys()], notes }, undefined, 2)]
  }
  for (const line of summaryOf(imported, folder)) writeError(line)
  return [stringify(imported.catalog, { lineWidth: 0 }).trimEnd()]
}

function summaryOf({ catalog, variables, notes }: Imported, folder: string | undefined): string[] {
  const { sources, destinations } = catalog
  const lines = notes.map(noteText)
  const names = [...variables.keys()]
  if (names.length > 0 && folder === undefined)
    lines.push(`to do: set ${names.join(', ')}; --variables FOLDER writes what the file has of them`)
  return [
    ...lines,
    `${counted(sources.length, 'source')} and ${counted(destinations.length, 'destination')}, all off: set them on one by one`,
  ]
}

/** Reads the answers in a file: one, a list of them, or one on each line. */
async function answersIn(file: string): Promise<readonly unknown[]> {
  const { name, chunks } = await openInput(file)
  const read: Buffer[] = []
  for await (const chunk of chunks) read.push(chunk)
  const text = Buffer.concat(read).toString()
  const whole = parseJson(text)
  if (whole.ok) return Array.isArray(whole.value) ? whole.value : [whole.value]
  return text.split('\n').flatMap((line, index): readonly unknown[] => {
    if (line.trim() === '') return []
    const answer = parseJson(line)
    if (answer.ok) return [answer.value]
    throw new StartError(
      `${name}, line ${index + 1}: this is not JSON: write one answer, a list of them, or one a line (jq -c . FILE does that).`,
    )
  })
}

/** Writes each secret into a file that only its owner may read. No file is written over. */
async function writeVariables(
  folder: string,
  variables: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const [name, value] of variables)
      if (value !== undefined) await writeFile(join(folder, name), value, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new StartError(`${folder} can not be written (${reason}): name a new folder.`, { cause: error })
  }
}
