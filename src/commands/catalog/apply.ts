import { isSelected, type LabelSelector, readSelector } from '../../catalog/labels.ts'
import type { ChangeAnswer } from '../../catalog-log/desk.ts'
import { madeOf } from '../../catalog-log/difference.ts'
import { keyOf } from '../../catalog-log/names.ts'
import { catalogVariables } from '../../config/read.ts'
import {
  appliedEdits,
  keptStates,
  labelsOf,
  pruneRefusal,
  removalOf,
} from '../../roles/bulk/applied-edits.ts'
import type { OpenedDesk } from '../../roles/operations/catalog-desk.ts'
import { differenceLines } from '../../roles/operations/catalog-history.ts'
import { refuseInFile } from '../../roles/catalog/in-file.ts'
import { counted, type Screen } from '../../roles/start/progress.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { atCatalogDesk, type CatalogRun } from '../command/catalog-desk.ts'
import { whoIsThis } from '../command/operator.ts'
import { confirms } from '../command/question.ts'
import { writeError, writeLine } from '../command/tools.ts'
import { type GivenObjects, putOf, readFragments, refusalOfFiles } from './fragments.ts'

type Accepted = Extract<ChangeAnswer, { ok: true }>

/** Compares files with the topic. Returns the difference in lines, and no lines if there is none. */
export function diffFiles(run: CatalogRun, path: string): Promise<string[]> {
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const objects = await readFragments([path], ['expect']).catch(asFaultOfFile)
    const gone = [...(await desk.look()).objects.values()].filter((object) => !objects.has(keyOf(object)))
    const edits = [...[...objects.values()].map(putOf), ...gone.map(removalOf)]
    const answer = await desk.change({ edits, by: '', variables: catalogVariables(), isDryRun: true })
    if (!answer.ok) throw new WrongUseError(refusalOfFiles(answer, objects))
    return linesOf(desk, answer)
  })
}

/** The exit code 1 says that the file differs. */
function asFaultOfFile(error: unknown): never {
  throw error instanceof StartError ? new WrongUseError(error.message) : error
}

export type ApplyOrder = {
  /** Files and folders, or `-` for standard input. */
  readonly paths: readonly string[]
  /** True: removes the objects that `selector` chooses, and that the files don't name. */
  readonly prunes: boolean
  /** A label, such as `tenant=acme`. */
  readonly selector: string | undefined
  /** True: also if the files have nothing with the label. */
  readonly allowsEmpty: boolean
  readonly isDryRun: boolean
  /** True if the question is answered already. */
  readonly isSure: boolean
  readonly by: string | undefined
}

/** Makes the objects that files name as the files have them, in one change, after a question. */
export function applyFiles(
  run: CatalogRun & { readonly screen: Screen },
  order: ApplyOrder,
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'apply' })
  const { paths, allowsEmpty, isDryRun, isSure, by = whoIsThis() } = order
  const selector = selectorOf(order)
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const objects = await readFragments(paths)
    const edits = appliedEdits(objects, { log: await desk.look(), desk, pruned: selector })
    const empty = pruneRefusal(objects, edits, { pruned: selector, allow: 'give --allow-empty' })
    if (empty !== undefined && !allowsEmpty) throw new StartError(empty)
    for (const line of unlabelled(objects, selector)) writeError(line)
    for (const { key, state } of keptStates(objects, edits))
      writeError(`sluice: ${key} stays ${state}, because the files do not say its state.`)
    const change = { edits, by, note: 'applied', variables: catalogVariables() }
    const preview = allowed(await desk.change({ ...change, isDryRun: true }), objects)
    const { differences } = preview
    if (differences.length === 0) return ['Nothing differs.']
    for (const line of linesOf(desk, preview)) writeLine(line)
    const removed = differences.filter((one) => madeOf(one) === 'removed').length
    const many = counted(differences.length, 'object')
    const ofThem = removed > 0 ? `, of which ${removed} ${removed === 1 ? 'is' : 'are'} removed` : ''
    if (isDryRun) return [`${many} would change${ofThem}`]
    if (!isSure && !(await confirms(run.screen, `Change ${many}${ofThem}?`))) return ['Nothing was changed.']
    const answer = allowed(await desk.change(change), objects)
    return [`${many} changed${ofThem}: change ${answer.revision}`]
  })
}

function selectorOf({ prunes, selector }: ApplyOrder): LabelSelector | undefined {
  if (!prunes && selector === undefined) return undefined
  if (!prunes) throw new WrongUseError('--selector says what --prune may remove: give both, or neither.')
  if (selector === undefined)
    throw new WrongUseError(
      '--prune needs --selector KEY=VALUE, a label: without it, everything that the files do not name would be removed.',
    )
  const read = readSelector(selector)
  if (read === undefined) throw new WrongUseError('--selector is a label such as tenant=acme.')
  return read
}

/** Says which objects of the files a later --prune would not find. */
function unlabelled(objects: GivenObjects, selector: LabelSelector | undefined): string[] {
  if (selector === undefined) return []
  const keys = [...objects].flatMap(([key, { given }]) =>
    isSelected(labelsOf({ definition: given }), selector) ? [] : [key],
  )
  const label = `${selector.key}=${selector.value}`
  return keys.map((key) => `sluice: warning: ${key} lacks the label ${label}, so a later --prune leaves it.`)
}

function linesOf({ definitions }: OpenedDesk, { differences }: Accepted): string[] {
  return differences.flatMap((one) => differenceLines(definitions, one, { ofAll: false }))
}

function allowed(answer: ChangeAnswer, objects: GivenObjects): Accepted {
  if (!answer.ok) throw new StartError(refusalOfFiles(answer, objects))
  return answer
}
