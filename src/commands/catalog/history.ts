import { lineOf } from '../../catalog-log/difference.ts'
import type { ListedChange } from '../../catalog-log/history-reading.ts'
import { keyOf, nameOf } from '../../catalog-log/names.ts'
import { changeLines, type OpenedDesk } from '../../roles/operations/catalog-desk.ts'
import {
  changeData,
  differenceLines,
  findChange,
  type UndoAnswer,
  undoChange,
  undoRefusal,
  wholeChangeData,
} from '../../roles/operations/catalog-history.ts'
import { refuseInFile } from '../../roles/catalog/in-file.ts'
import { counted, type Screen } from '../../roles/start/progress.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { atCatalogDesk, type CatalogRun } from '../command/catalog-desk.ts'
import { whoIsThis } from '../command/operator.ts'
import { confirms } from '../command/question.ts'
import { writeLine } from '../command/tools.ts'

const howShown = { showsUrls: true } as const

export type HistoryOrder = {
  /** The object whose changes are listed, such as `destination/crm`. `undefined`: all objects. */
  readonly object: string | undefined
  readonly limit: number
  readonly asJson: boolean
}

/** Lists the latest changes of the catalog, newest first. */
export function listHistory(run: CatalogRun, { object, limit, asJson }: HistoryOrder): Promise<string[]> {
  refuseInFile(run.config, { deed: 'history' })
  const name = object === undefined ? undefined : nameOf(object)
  if (object !== undefined && name === undefined)
    throw new WrongUseError(`${object} names no object: write source/ID or destination/ID.`)
  const key = name && keyOf(name)
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const found: ListedChange[] = []
    let before: number | undefined
    do {
      const page = await desk.history.page({ before, limit: limit - found.length, key })
      found.push(...page.changes)
      before = page.next
    } while (before !== undefined && found.length < limit)
    if (asJson) return found.map((one) => JSON.stringify(changeData(desk.definitions, one, howShown)))
    if (found.length === 0) return ['There is no such change in the history.']
    return found.flatMap((one) => changeText(desk, one))
  })
}

/** Shows a change with all fields that differ. */
export function showChange(run: CatalogRun, revision: number, asJson: boolean): Promise<string[]> {
  refuseInFile(run.config, { deed: 'history' })
  return atCatalogDesk(run, 'catalog', async ({ history, definitions }) => {
    const found = await findChange({ history }, revision)
    if (!found.ok) throw new WrongUseError(found.problem)
    const { change } = found
    if (asJson) return [JSON.stringify(wholeChangeData(definitions, change, change.objects, howShown))]
    return [
      headingOf(change),
      ...change.objects.flatMap((one) =>
        differenceLines(definitions, one, { ofAll: true }).map((line) => `  ${line}`),
      ),
    ]
  })
}

/** The most objects of a change that a list names. */
const mostNamed = 10

function changeText({ definitions }: OpenedDesk, change: ListedChange): readonly string[] {
  const { made, count, difference, isWhole } = change
  const lines =
    difference === undefined
      ? made.slice(0, mostNamed).map(lineOf)
      : differenceLines(definitions, difference, { ofAll: false })
  const left = difference === undefined ? count - lines.length : count - 1
  const others = difference === undefined ? `and ${left} more` : `and ${counted(left, 'other object')}`
  return [
    headingOf(change),
    ...lines.map((line) => `  ${line}`),
    ...(left > 0 ? [`  ${others}`] : []),
    ...(isWhole ? [] : ['  parts of this change are too old, and were deleted']),
  ]
}

function headingOf({
  revision,
  atMs,
  by,
  undoes,
}: Pick<ListedChange, 'revision' | 'atMs' | 'by' | 'undoes'>): string {
  const undone = undoes === undefined ? [] : [`undoes ${undoes}`]
  return [String(revision), new Date(atMs).toISOString(), by, ...undone].join('  ')
}

export type UndoOrder = {
  readonly revision: number
  readonly isDryRun: boolean
  /** True if the question is answered already. */
  readonly isSure: boolean
  readonly by: string | undefined
}

/** Makes the opposite of a change, after a question. */
export function undo(
  run: CatalogRun & { readonly screen: Screen },
  { revision, isDryRun, isSure, by = whoIsThis() }: UndoOrder,
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'undo' })
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const preview = allowed(await undoChange(desk, { revision, by, isDryRun: true }))
    const lines = preview.differences.flatMap((one) =>
      differenceLines(desk.definitions, one, { ofAll: false }),
    )
    if (lines.length === 0) return [`Nothing differs from what was before change ${revision}.`]
    const many = counted(preview.differences.length, 'object')
    if (isDryRun) return [...lines, `${many} would change (+ new, ~ changed, - removed)`]
    for (const line of lines) writeLine(line)
    if (!isSure && !(await confirms(run.screen, `Undo change ${revision}, which changes ${many}?`)))
      return ['Nothing was changed.']
    const answer = allowed(await undoChange(desk, { revision, by, isDryRun: false }))
    return [
      `${counted(changeLines(answer.changed).length, 'object')} changed: change ${answer.revision} undoes ${revision}`,
    ]
  })
}

function allowed(answer: UndoAnswer): Extract<UndoAnswer, { ok: true }> {
  if (answer.ok) return answer
  const problem = undoRefusal(answer)
  throw answer.kind === 'unknown' ? new WrongUseError(problem) : new StartError(problem)
}
