import { randomBytes } from 'node:crypto'
import { isString, listOf } from '../../catalog/plain-data.ts'
import { refuseInFile } from '../../roles/catalog/in-file.ts'
import { aligned } from '../../roles/operations/aligned.ts'
import { counted, type Screen } from '../../roles/start/progress.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'
import type { CatalogRun } from '../command/catalog-desk.ts'
import { atDeskOf, makeEdit, objectAt } from '../command/edit-object.ts'
import { confirms } from '../command/question.ts'

/** Lists the sources of the topic. */
export function listSources(run: CatalogRun, { asJson }: { readonly asJson: boolean }): Promise<string[]> {
  refuseInFile(run.config, { deed: 'list-sources' })
  return atDeskOf(run, 'source', async (desk) => {
    const log = await desk.look()
    const destinations = log.of('destination').flatMap(({ definition }) => listOf(definition['sources']))
    const sources = log
      .of('source')
      .toSorted((one, other) => (one.id < other.id ? -1 : 1))
      .map(({ id, version, definition: { name = id, kind = 'events', enabled = true, writeKeys } }) => ({
        id,
        name,
        kind,
        enabled,
        writeKeys: listOf(writeKeys).length,
        destinations: destinations.filter((source) => source === id).length,
        version,
      }))
    if (asJson) return sources.map((source) => JSON.stringify(source))
    if (sources.length === 0) return ['There is no source']
    return aligned([
      ['source', 'name', 'kind', 'enabled', 'write keys', 'destinations'],
      ...sources.map(({ id, name, kind, enabled, writeKeys, destinations: many }) =>
        [id, name, kind, enabled, writeKeys, many].map(String),
      ),
    ])
  })
}

type KeyOrder = { readonly id: string; readonly by: string | undefined }

const keyBytes = 18

/** Adds a write key to a source. The clients that have another one of its keys go on. */
export function addKey(run: CatalogRun, { id, by }: KeyOrder): Promise<string[]> {
  refuseInFile(run.config, { deed: 'add-key', id })
  return atDeskOf(run, 'source', async (desk) => {
    const object = await objectAt(desk, { kind: 'source', id })
    const key = `wk_${randomBytes(keyBytes).toString('base64url')}`
    const shown = desk.shown(object, { showsUrls: true })
    const given = { ...shown, writeKeys: [...listOf(shown['writeKeys']), key] }
    const edit = { name: { kind: 'source', id }, op: 'put', given, base: object.version } as const
    await makeEdit(desk, edit, { by, note: 'a new write key' })
    return [`The new write key of ${id}: ${key}`]
  })
}

/** Removes a write key of a source, after a question. `prefix`: how the key begins. */
export function endKey(
  run: CatalogRun & { readonly screen: Screen },
  { id, by, prefix, isSure }: KeyOrder & { readonly prefix: string; readonly isSure: boolean },
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'end-key', id })
  return atDeskOf(run, 'source', async (desk) => {
    const object = await objectAt(desk, { kind: 'source', id })
    const shown = desk.shown(object, { showsUrls: true })
    const keys = listOf(shown['writeKeys']).filter(isString)
    const meant = keys.filter((key) => key.startsWith(prefix))
    if (meant.length === 0) throw new WrongUseError(`No write key of ${id} begins with ${prefix}.`)
    if (meant.length > 1)
      throw new WrongUseError(
        `${counted(meant.length, 'write key')} of ${id} begin with ${prefix}: write more of the one that you mean.`,
      )
    const rest = keys.filter((key) => key !== meant[0])
    const only = rest.length === 0 ? ' It has no other one.' : ''
    const question = `Remove a write key of ${id}? The gateway refuses messages with it.${only}`
    if (!isSure && !(await confirms(run.screen, question))) return ['Nothing was removed.']
    const given = { ...shown, writeKeys: rest }
    const edit = { name: { kind: 'source', id }, op: 'put', given, base: object.version } as const
    await makeEdit(desk, edit, { by, note: 'a write key was removed' })
    return [`${id}: the write key was removed, and ${counted(rest.length, 'key')} stay valid`]
  })
}
