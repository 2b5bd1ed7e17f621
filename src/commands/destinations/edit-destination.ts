import { readFile } from 'node:fs/promises'
import { text as textOfStream } from 'node:stream/consumers'
import type { Logger } from 'pino'
import { stringify } from 'yaml'
import { formatFaults } from '../../catalog/fault.ts'
import { readUncheckedCatalog } from '../../catalog/parse.ts'
import { isRecord } from '../../catalog/plain-data.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import { keyOf, type ObjectKind } from '../../catalog-log/names.ts'
import { catalogVariables } from '../../config/read.ts'
import type { Config } from '../../config/schema.ts'
import { openCatalogDesk, type OpenedDesk, refusalText } from '../../roles/operations/catalog-desk.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { whoIsThis } from '../command/operator.ts'

type Run = { readonly config: Config; readonly log: Logger }
type By = { readonly by: string | undefined }

async function atDesk<T>({ config, log }: Run, work: (desk: OpenedDesk) => Promise<T>): Promise<T> {
  const desk = await openCatalogDesk(config, log, 'destinations')
  try {
    return await work(desk)
  } finally {
    await desk.close()
  }
}

/** Prints an object of the catalog's topic, without its secrets. */
export function getObject(
  run: Run,
  name: { readonly kind: ObjectKind; readonly id: string },
  { asJson }: { readonly asJson: boolean },
): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const object = (await desk.look()).objects.get(keyOf(name))
    if (object === undefined) throw new WrongUseError(`There is no ${name.kind} ${JSON.stringify(name.id)}.`)
    const shown = desk.shown(object, { showsUrls: true })
    if (asJson) return [JSON.stringify({ version: object.version, [name.kind]: shown })]
    return [`# version ${object.version}`, stringify(shown, { lineWidth: 0 }).trimEnd()]
  })
}

/** Makes or replaces an object, as a file has it. `path`: `-` for standard input. */
export async function setObject(
  run: Run,
  {
    kind,
    id,
    path,
    version,
    by,
  }: { kind: ObjectKind; id: string; path: string; version: number | undefined } & By,
): Promise<string[]> {
  const text =
    path === '-' ? await textOfStream(process.stdin) : await readFile(path, 'utf8').catch(unreadable(path))
  const read = readUncheckedCatalog(text, path)
  if (!read.ok) throw new StartError(formatFaults(read.faults))
  if (!isRecord(read.value))
    throw new StartError(`${path} is no ${kind}: write its fields into it (docs/catalog.md).`)
  const given = { id, ...read.value }
  const edit: Edit = { name: { kind, id }, op: 'put', given, ...(version !== undefined && { base: version }) }
  return change(run, edit, { by })
}

export function removeObject(
  run: Run,
  { kind, id, by }: { kind: ObjectKind; id: string } & By,
): Promise<string[]> {
  return change(run, { name: { kind, id }, op: 'remove' }, { by })
}

/** Sets the state of a destination, and leaves all else as it is. */
export function setState(
  run: Run,
  { id, state, by }: { id: string; state: 'on' | 'off' | 'paused' } & By,
): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const name = { kind: 'destination', id } as const
    const object = (await desk.look()).objects.get(keyOf(name))
    if (object === undefined) throw new WrongUseError(`There is no destination ${JSON.stringify(id)}.`)
    const given = { ...desk.shown(object, { showsUrls: true }), state }
    return make(desk, { name, op: 'put', given, base: object.version }, { by })
  })
}

/** Sets the state of a destination to `on` if it is `paused` in the catalog. Returns no lines if it isn't. */
export function turnOn(run: Run, { id, by }: { id: string } & By): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const name = { kind: 'destination', id } as const
    const object = (await desk.look()).objects.get(keyOf(name))
    if (object?.definition['state'] !== 'paused') return []
    const given = { ...desk.shown(object, { showsUrls: true }), state: 'on' }
    return make(desk, { name, op: 'put', given, base: object.version }, { by })
  })
}

function change(run: Run, edit: Edit, by: By): Promise<string[]> {
  return atDesk(run, (desk) => make(desk, edit, by))
}

async function make(desk: OpenedDesk, edit: Edit, { by }: By): Promise<string[]> {
  const answer = await desk.change({ edits: [edit], by: by ?? whoIsThis(), variables: catalogVariables() })
  if (!answer.ok) {
    const problem = refusalText(answer)
    throw answer.kind === 'missing' ? new WrongUseError(problem) : new StartError(problem)
  }
  return answer.changed.map(({ name, what, version }) =>
    version === undefined ? `${keyOf(name)}: ${what}` : `${keyOf(name)}: ${what}, version ${version}`,
  )
}

function unreadable(path: string): (cause: unknown) => never {
  return (cause) => {
    throw new WrongUseError(
      `${path} can not be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
}
