import { stringify } from 'yaml'
import { formatFaults } from '../../catalog/fault.ts'
import { lossFaults } from '../../catalog/file/lost-entries.ts'
import { recordOf } from '../../catalog/plain-data.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import type { CatalogLog, StoredObject } from '../../catalog-log/log.ts'
import { type EntryKind, keyOf, type ObjectName } from '../../catalog-log/names.ts'
import { catalogVariables } from '../../config/read.ts'
import { changeLines, refusalText } from '../../roles/operations/catalog-desk.ts'
import { refuseInFile } from '../../roles/catalog/in-file.ts'
import { counted } from '../../roles/start/progress.ts'
import { StartError } from '../../roles/start/start-error.ts'
import { atCatalogDesk, type CatalogRun, readBlock } from '../command/catalog-desk.ts'
import { whoIsThis } from '../command/operator.ts'
import { type GivenObjects, objectsOf, putOf } from './fragments.ts'

/** Prints the catalog of the topic as a file, without secrets. Importing it again changes nothing. */
export function exportCatalog(run: CatalogRun, { asJson }: { asJson: boolean }): Promise<string[]> {
  refuseInFile(run.config, { deed: 'export' })
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const log = await desk.look()
    const listOfKind = (kind: EntryKind) =>
      log
        .of(kind)
        .toSorted((one, other) => (one.id < other.id ? -1 : 1))
        .map((object) => desk.shown(object, { showsUrls: true }))
    const catalog = { sources: listOfKind('source'), destinations: listOfKind('destination') }
    return [asJson ? JSON.stringify(catalog, undefined, 2) : stringify(catalog, { lineWidth: 0 }).trimEnd()]
  })
}

export type ImportOptions = {
  /** The file, or `-` for standard input. */
  readonly path: string
  /** True: says what would change, and changes nothing. */
  readonly isDryRun: boolean
  /** True: writes all objects again, because records of the topic were destroyed. */
  readonly isRepair: boolean
  readonly by: string | undefined
}

/** Makes the catalog of the topic equal to a file, in one change. Returns the difference in lines. */
export function importCatalog(
  run: CatalogRun,
  { path, isDryRun, isRepair, by }: ImportOptions,
): Promise<string[]> {
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const value = await readBlock(path, 'is no catalog: write sources: and destinations: into it.')
    const log = await desk.look()
    // A repair also signs the tokens anew, which no file has.
    const edits = [...editsFrom(value, log, path), ...(isRepair ? log.of('token').map(asItIs) : [])]
    const variables = catalogVariables()
    const options = { variables, isDryRun, isRepair, accepts: true }
    const answer = await desk.change({ edits, by: by ?? whoIsThis(), ...options })
    if (!answer.ok) throw new StartError(refusalText(answer))
    const lines = changeLines(answer.changed)
    if (lines.length === 0) return [`Nothing differs from ${path}.`]
    const done = isDryRun ? 'would change' : 'changed'
    return [...lines, `${counted(lines.length, 'object')} ${done} (+ new, ~ changed, - removed)`]
  })
}

/** Returns the edits that make the topic equal to a file. Throws if the file lacks too much of it. */
function editsFrom(value: Readonly<Record<string, unknown>>, log: CatalogLog, path: string): readonly Edit[] {
  const wanted = objectsOf(value, path, ['expect'])
  refuseLoss(wanted, { log, path, expected: recordOf(value['expect']) })
  const gone = [...log.objects.values()].filter((object) => !wanted.has(keyOf(object)))
  return [
    ...[...wanted.values()].map(putOf),
    ...gone.map(({ kind, id }): Edit => ({ name: { kind, id }, op: 'remove' })),
  ]
}

function refuseLoss(
  wanted: GivenObjects,
  { log, path, expected }: { log: CatalogLog; path: string; expected: Readonly<Record<string, unknown>> },
): void {
  const before = [...log.objects.values()]
  const after = [...wanted.values()].map(({ name }) => name)
  const outline = {
    version: '',
    sources: idsOf(before, 'source'),
    destinations: idsOf(before, 'destination'),
  }
  const next = { sources: idsOf(after, 'source'), destinations: idsOf(after, 'destination') }
  const known = { outline, of: 'the catalog in the topic', ifAnother: '' }
  const faults = lossFaults(path, known, next, expected)
  if (faults.length > 0) throw new StartError(formatFaults(faults))
}

function asItIs({ kind, id, definition }: StoredObject): Edit {
  return { name: { kind, id }, op: 'put', given: definition }
}

function idsOf(names: readonly ObjectName[], kind: EntryKind): ReadonlyMap<string, string> {
  return new Map(names.filter((name) => name.kind === kind).map(({ id }) => [id, '']))
}
