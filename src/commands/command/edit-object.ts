import { stringify } from 'yaml'
import { mergedDefinition } from '../../catalog/hook-patch.ts'
import type { ChangeAnswer, ChangedObject } from '../../catalog-log/desk.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import type { StoredObject } from '../../catalog-log/log.ts'
import { keyOf, type ObjectKind, type ObjectName } from '../../catalog-log/names.ts'
import { catalogVariables } from '../../config/read.ts'
import { refuseInFile } from '../../roles/catalog/in-file.ts'
import { type OpenedDesk, refusalText } from '../../roles/operations/catalog-desk.ts'
import { differenceLines } from '../../roles/operations/catalog-history.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { atCatalogDesk, type CatalogRun, readBlock } from './catalog-desk.ts'
import { whoIsThis } from './operator.ts'

type By = { readonly by: string | undefined }
type Fields = Readonly<Record<string, unknown>>

/** Opens the desk with the rights of the command that changes objects of this kind. */
export function atDeskOf<T>(
  run: CatalogRun,
  kind: ObjectKind,
  work: (desk: OpenedDesk) => Promise<T>,
): Promise<T> {
  return atCatalogDesk(run, kind === 'destination' ? 'destinations' : 'catalog', work)
}

/** Returns an object. Throws if there is none. */
export async function objectAt(desk: OpenedDesk, name: ObjectName): Promise<StoredObject> {
  const object = (await desk.look()).objects.get(keyOf(name))
  if (object === undefined) throw new WrongUseError(`There is no ${name.kind} ${JSON.stringify(name.id)}.`)
  return object
}

/** Prints an object of the catalog's topic, without its secrets. */
export function getObject(
  run: CatalogRun,
  name: ObjectName,
  { asJson }: { readonly asJson: boolean },
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'look', ...name })
  return atDeskOf(run, name.kind, async (desk) => {
    const object = await objectAt(desk, name)
    const shown = desk.shown(object, { showsUrls: true })
    if (asJson) return [JSON.stringify({ version: object.version, [name.kind]: shown })]
    const more = name.kind === 'destination' ? [`# how it is: sluice destinations status ${name.id}`] : []
    return [`# version ${object.version}`, ...more, stringify(shown, { lineWidth: 0 }).trimEnd()]
  })
}

type SetOrder = ObjectName &
  By & {
    readonly path: string
    /** What the object has beside what the file says. */
    readonly fields?: Fields
    readonly version: number | undefined
  }

/** Makes or replaces an object, as a file has it. `path`: `-` for standard input. */
export async function setObject(
  run: CatalogRun,
  { kind, id, path, fields = {}, version, by }: SetOrder,
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'replace', kind, id })
  const given = mergedDefinition(await readObject({ kind, id }, path), fields)
  const edit: Edit = { name: { kind, id }, op: 'put', given, ...(version !== undefined && { base: version }) }
  return change(run, edit, { by })
}

/**
 * Changes fields of an object, and leaves all else as it is. `null` removes a field. Says what has changed.
 */
export function patchObject(
  run: CatalogRun,
  { kind, id, fields, version, by }: Omit<SetOrder, 'path'> & { readonly fields: Fields },
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'change', id, fields })
  return atDeskOf(run, kind, async (desk) => {
    const object = await objectAt(desk, { kind, id })
    const given = mergedDefinition(desk.shown(object, { showsUrls: true }), fields)
    const edit: Edit = { name: { kind, id }, op: 'put', given, base: version ?? object.version }
    const { changed, differences } = await madeEdit(desk, edit, { by })
    const lines = differences.flatMap((one) => differenceLines(desk.definitions, one, { ofAll: false }))
    return [...changed.map(changedText), ...lines.filter((line) => line.startsWith(' '))]
  })
}

/**
 * Makes an object that doesn't exist yet, as a file has it. `fields`: what it has beside that, or all of it
 * without a file.
 */
export async function createObject(
  run: CatalogRun,
  { kind, id, path, fields, by }: ObjectName & { path: string | undefined; fields: Fields } & By,
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'make', kind, id })
  const read = path === undefined ? { id } : await readObject({ kind, id }, path)
  const given = mergedDefinition(read, fields)
  return change(run, { name: { kind, id }, op: 'put', given, base: 'none' }, { by })
}

async function readObject(
  { kind, id }: ObjectName,
  path: string,
): Promise<Readonly<Record<string, unknown>>> {
  const block = await readBlock(path, `is no ${kind}: write its fields into it (docs/catalog.md).`)
  return { id, ...block }
}

export function removeObject(run: CatalogRun, { kind, id, by }: ObjectName & By): Promise<string[]> {
  refuseInFile(run.config, { deed: 'remove', kind, id })
  return change(run, { name: { kind, id }, op: 'remove' }, { by })
}

/** Pauses a destination, and leaves all else as it is. */
export async function pause(run: CatalogRun, { id, by }: { id: string } & By): Promise<string[]> {
  refuseInFile(run.config, { deed: 'pause', id })
  const lines = await setState(run, { id, state: 'paused', by })
  if (lines === undefined) throw new WrongUseError(`There is no destination ${JSON.stringify(id)}.`)
  return lines
}

/** Sets the state of a destination to `on` if it is `paused` in the catalog. Returns no lines if it isn't. */
export async function turnOn(run: CatalogRun, { id, by }: { id: string } & By): Promise<string[]> {
  return (await setState(run, { id, state: 'on', by }, 'paused')) ?? []
}

/** Returns `undefined` if there is no such destination, or none in the state `only`. */
function setState(
  run: CatalogRun,
  { id, state, by }: { id: string; state: 'on' | 'paused' } & By,
  only?: 'paused',
): Promise<string[] | undefined> {
  return atDeskOf(run, 'destination', async (desk) => {
    const name = { kind: 'destination', id } as const
    const object = (await desk.look()).objects.get(keyOf(name))
    if (object === undefined || (only !== undefined && object.definition['state'] !== only)) return undefined
    const given = { ...desk.shown(object, { showsUrls: true }), state }
    return makeEdit(desk, { name, op: 'put', given, base: object.version }, { by })
  })
}

function change(run: CatalogRun, edit: Edit, by: By): Promise<string[]> {
  return atDeskOf(run, edit.name.kind, (desk) => makeEdit(desk, edit, by))
}

/** Makes an edit, and says what it made. Throws if it is refused. */
export async function makeEdit(
  desk: OpenedDesk,
  edit: Edit,
  how: By & { readonly note?: string },
): Promise<string[]> {
  return (await madeEdit(desk, edit, how)).changed.map(changedText)
}

function changedText({ name, what, version }: ChangedObject): string {
  return version === undefined ? `${keyOf(name)}: ${what}` : `${keyOf(name)}: ${what}, version ${version}`
}

async function madeEdit(
  desk: OpenedDesk,
  edit: Edit,
  { by, note }: By & { readonly note?: string },
): Promise<Extract<ChangeAnswer, { ok: true }>> {
  const answer = await desk.change({
    edits: [edit],
    by: by ?? whoIsThis(),
    note,
    variables: catalogVariables(),
  })
  if (!answer.ok) {
    if (answer.kind === 'outdated' && edit.base === 'none')
      throw new StartError(
        `There is a ${edit.name.kind} ${JSON.stringify(edit.name.id)} already: \`set\` replaces it.`,
      )
    const problem = refusalText(answer)
    throw answer.kind === 'missing' ? new WrongUseError(problem) : new StartError(problem)
  }
  return answer
}
