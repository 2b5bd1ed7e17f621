import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listOf, recordOf } from '../../catalog/plain-data.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import { type EntryKind, entryKinds, keyOf, type ObjectName } from '../../catalog-log/names.ts'
import type { ChangeAnswer } from '../../catalog-log/desk.ts'
import { refusalText } from '../../roles/operations/catalog-desk.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { readBlock } from '../command/catalog-desk.ts'

const lists = { source: 'sources', destination: 'destinations' } as const satisfies Record<EntryKind, string>

/** An object as a file has it. */
export type GivenObject = {
  readonly name: ObjectName
  readonly given: Readonly<Record<string, unknown>>
  readonly file: string
}

/** The objects of files, by key. */
export type GivenObjects = ReadonlyMap<string, GivenObject>

/**
 * Reads files, and all YAML and JSON files that are directly in folders. Each has a part of a catalog, or one
 * destination. `others`: keys that a part may have beside its lists. Throws if an object is in two of them.
 * Sources come first.
 */
export async function readFragments(
  paths: readonly string[],
  others: readonly string[] = [],
): Promise<GivenObjects> {
  const files = (await Promise.all(paths.map(filesOf))).flat()
  const found = new Map<string, GivenObject>()
  for (const file of files) {
    const value = await readBlock(file, 'is no part of a catalog: write sources: or destinations: into it.')
    const objects =
      value['hooks'] === undefined ? objectsIn(value, file, others) : [objectOf(value, 'destination', file)]
    addAll(found, objects)
  }
  const inOrder = entryKinds.flatMap((kind) => [...found].filter(([, { name }]) => name.kind === kind))
  return new Map(inOrder)
}

/** Returns the objects of a catalog, or of a part of one. `others`: keys that it may have beside them. */
export function objectsOf(
  value: Readonly<Record<string, unknown>>,
  file: string,
  others: readonly string[] = [],
): GivenObjects {
  const found = new Map<string, GivenObject>()
  addAll(found, objectsIn(value, file, others))
  return found
}

function objectsIn(
  value: Readonly<Record<string, unknown>>,
  file: string,
  others: readonly string[] = [],
): readonly GivenObject[] {
  const keys = [...Object.values(lists), ...others]
  const unknown = Object.keys(value).find((key) => !keys.includes(key))
  if (unknown !== undefined)
    throw new StartError(
      `${file} has the unknown key ${JSON.stringify(unknown)}: the keys are ${keys.join(', ')}.`,
    )
  return entryKinds.flatMap((kind) => {
    const list = value[lists[kind]]
    if (list !== undefined && !Array.isArray(list))
      throw new StartError(`${file}: ${lists[kind]} is no list.`)
    return listOf(list).map((entry, index) => objectOf(entry, kind, file, `${lists[kind]}[${index}] `))
  })
}

function objectOf(entry: unknown, kind: EntryKind, file: string, place = ''): GivenObject {
  const given = recordOf(entry)
  const { id } = given
  if (typeof id !== 'string') throw new StartError(`${file}: ${place}has no id: add one.`)
  return { name: { kind, id }, given, file }
}

function addAll(found: Map<string, GivenObject>, objects: readonly GivenObject[]): void {
  for (const object of objects) {
    const key = keyOf(object.name)
    const earlier = found.get(key)
    if (earlier !== undefined)
      throw new StartError(
        `${object.file} has ${key}, and so has ${earlier.file === object.file ? 'an earlier entry of it' : earlier.file}.`,
      )
    found.set(key, object)
  }
}

async function filesOf(path: string): Promise<readonly string[]> {
  if (path === '-' || !(await stat(path).catch(() => undefined))?.isDirectory()) return [path]
  const names = (await readdir(path)).filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name)).toSorted()
  // Without this, an empty folder would remove everything that --prune may remove.
  if (names.length === 0) throw new WrongUseError(`${path} has no file that ends with .yaml, .yml or .json.`)
  return names.map((name) => join(path, name))
}

/** Returns the edit that makes an object as a file has it. */
export function putOf({ name, given }: GivenObject): Edit {
  return { name, op: 'put', given }
}

/** Returns why a change was refused. Names the files that have the faults. */
export function refusalOfFiles(answer: Extract<ChangeAnswer, { ok: false }>, objects: GivenObjects): string {
  if (answer.kind !== 'faulty') return refusalText(answer)
  const faults = answer.faults.map((fault) => {
    const file = objects.get(fault.file)?.file
    return file === undefined ? fault : { ...fault, file: `${file}: ${fault.file}` }
  })
  return refusalText({ ...answer, faults })
}
