import type { ChangeAnswer, Once } from '../../catalog-log/desk.ts'
import {
  fieldDifferences,
  type FieldDifference,
  lineOf,
  type Made,
  madeOf,
  type ObjectDifference,
} from '../../catalog-log/difference.ts'
import type { Definition, Definitions } from '../../catalog-log/definitions.ts'
import type { HistoryChange } from '../../catalog-log/history.ts'
import type { ListedChange } from '../../catalog-log/history-reading.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import type { CatalogLog } from '../../catalog-log/log.ts'
import { keyOf, type ObjectName } from '../../catalog-log/names.ts'
import { SealError } from '../../catalog-log/seal.ts'
import { type OpenedDesk, refusalText } from './catalog-desk.ts'

export type ChangeLook =
  | { readonly ok: true; readonly change: HistoryChange }
  | { readonly ok: false; readonly kind: 'unknown'; readonly problem: string }

/** Looks a change up in the history. The problem says what to do if it isn't there. */
export async function findChange(desk: Pick<OpenedDesk, 'history'>, revision: number): Promise<ChangeLook> {
  const found = await desk.history.find(revision)
  if (found.ok) return found
  const { firstRevision } = found
  if (found.kind === 'unknown')
    return {
      ok: false,
      kind: 'unknown',
      problem: `There is no change ${revision}: list those that there are.`,
    }
  const begins =
    firstRevision === undefined ? 'The history is empty' : `The history begins with change ${firstRevision}`
  const problem = `${begins}, so change ${revision} is not known, or not all of it: catalog-history keeps what is younger than catalog.historyRetention, and has nothing from before the topic was created.`
  return { ok: false, kind: 'unknown', problem }
}

export type UndoAnswer =
  | ChangeAnswer
  | Extract<ChangeLook, { ok: false }>
  /** An object isn't any more as the change has left it. */
  | { readonly ok: false; readonly kind: 'blocked'; readonly problem: string }

/** Returns why a change was not undone, and what to do. */
export function undoRefusal(answer: Extract<UndoAnswer, { ok: false }>): string {
  return answer.kind === 'unknown' || answer.kind === 'blocked' ? answer.problem : refusalText(answer)
}

/** What an undo needs of the desk. */
type UndoDesk = Pick<OpenedDesk, 'look' | 'change' | 'definitions' | 'history'>

/**
 * Makes the opposite of a change, in one change. Refuses if an object isn't any more as the change has left
 * it. What was sealed is sealed for the same object, so secrets come back too.
 */
export async function undoChange(
  desk: UndoDesk,
  {
    revision,
    by,
    isDryRun,
    once,
  }: { revision: number; by: string; isDryRun: boolean; once?: Once | undefined },
): Promise<UndoAnswer> {
  const found = await findChange(desk, revision)
  if (!found.ok) return found
  const { objects } = found.change
  const log = await desk.look()
  try {
    for (const difference of objects) {
      const problem = await laterProblem(desk, log, revision, difference)
      if (problem !== undefined) return { ok: false, kind: 'blocked', problem }
    }
    const edits = objects.map((difference) => oppositeOf(desk.definitions, log, difference))
    return await desk.change({ edits, by, note: `undoes ${revision}`, undoes: revision, once, isDryRun })
  } catch (error) {
    if (!(error instanceof SealError)) throw error
    const problem = `Change ${revision} can not be undone: ${error.message}.`
    return { ok: false, kind: 'blocked', problem }
  }
}

function oppositeOf(definitions: Definitions, log: CatalogLog, { name, before }: ObjectDifference): Edit {
  const base = log.objects.get(keyOf(name))?.version ?? 'none'
  if (before === undefined) return { name, op: 'remove', base }
  // Throws here if a secret can't be opened, and not while other changes are made too.
  definitions.plain(name, before)
  return { name, op: 'restore', stored: before, base }
}

/**
 * Returns why a change of an object can't be undone. `undefined` if the object is as the change has left it.
 */
async function laterProblem(
  desk: UndoDesk,
  log: CatalogLog,
  revision: number,
  { name, after }: ObjectDifference,
): Promise<string | undefined> {
  const key = keyOf(name)
  const present = log.objects.get(key)
  if (desk.definitions.isSame(name, present?.definition, after)) return undefined
  const { undone, later } = await laterChange(desk, revision, key)
  if (undone !== undefined)
    return `Change ${revision} was undone by change ${undone} already: to make it again, undo that one.`
  const at = later ?? present?.revision
  if (at === undefined) return `${key} was changed since change ${revision}.`
  return `${key} was changed since, by change ${at}: undo that one first (\`sluice catalog undo ${at}\`), or make a new change.`
}

/**
 * Finds the latest change of an object after a revision that wasn't undone. `undone`: the change that has
 * undone the revision itself.
 */
async function laterChange(
  { history }: UndoDesk,
  revision: number,
  key: string,
): Promise<{ readonly later: number | undefined; readonly undone: number | undefined }> {
  const undoneBy = new Map<number, number>()
  for (let before: number | undefined; ;) {
    const { changes, next } = await history.page({ before, limit: pageSize, key })
    for (const change of changes) {
      if (change.revision <= revision) return { later: undefined, undone: undoneBy.get(revision) }
      if (undoneBy.has(change.revision)) continue
      if (change.undoes === undefined) return { later: change.revision, undone: undefined }
      undoneBy.set(change.undoes, change.revision)
    }
    if (next === undefined) return { later: undefined, undone: undoneBy.get(revision) }
    before = next
  }
}

const pageSize = 100

/** A difference as people see it: secrets are shown as `${kept:…}`. */
export function shownFields(
  definitions: Definitions,
  difference: ObjectDifference,
  how: { readonly showsUrls: boolean },
): readonly FieldDifference[] {
  const { name, before, after } = difference
  const shown = (stored: Definition | undefined) => stored && shownAnyway(definitions, name, stored, how)
  return fieldDifferences(shown(before), shown(after))
}

/** Shows a definition as `Definitions` does. If a URL can't be opened, its path isn't shown. */
export function shownAnyway(
  definitions: Definitions,
  name: ObjectName,
  stored: Definition,
  how: { readonly showsUrls: boolean },
): Definition {
  try {
    return definitions.shown(name, stored, how)
  } catch (error) {
    // The path of a URL is sealed with a key that was removed since.
    if (error instanceof SealError) return definitions.shown(name, stored, { showsUrls: false })
    throw error
  }
}

/** Returns a change of the history as the HTTP API and `--json` show it. */
export function changeData(
  definitions: Definitions,
  { revision, atMs, by, undoes, isWhole, count, made, difference }: ListedChange,
  how: { readonly showsUrls: boolean },
) {
  return {
    ...aboutData({ revision, atMs, by, undoes }),
    isWhole,
    count,
    objects: made.map(({ name, what }) => ({ object: keyOf(name), what })),
    fields: difference === undefined ? null : fieldsData(shownFields(definitions, difference, how)),
  }
}

/** Returns a whole change, with the fields of some of its objects. */
export function wholeChangeData(
  definitions: Definitions,
  change: HistoryChange,
  objects: readonly ObjectDifference[],
  how: { readonly showsUrls: boolean },
) {
  return {
    ...aboutData(change),
    count: change.objects.length,
    objects: objects.map((difference) => objectData(definitions, difference, how)),
  }
}

/** Returns what a change makes of an object, with the fields that differ. */
export function objectData(
  definitions: Definitions,
  difference: ObjectDifference,
  how: { readonly showsUrls: boolean },
) {
  return {
    object: keyOf(difference.name),
    what: madeOf(difference),
    fields: fieldsData(shownFields(definitions, difference, how)),
  }
}

function aboutData({
  revision,
  atMs,
  by,
  undoes,
}: Pick<HistoryChange, 'revision' | 'atMs' | 'by' | 'undoes'>) {
  return { revision, at: new Date(atMs).toISOString(), by, undoes: undoes ?? null }
}

function fieldsData(fields: readonly FieldDifference[]) {
  return fields.map(({ field, before = null, after = null }) => ({ field, before, after }))
}

/**
 * Describes what a change has made of an object: a line such as `~ destination/crm`, and the fields that
 * differ. `ofAll`: also the fields of an object that is new or gone.
 */
export function differenceLines(
  definitions: Definitions,
  difference: ObjectDifference,
  { ofAll }: { readonly ofAll: boolean },
): readonly string[] {
  const what = madeOf(difference)
  const line = lineOf({ name: difference.name, what })
  if (what !== 'changed' && !ofAll) return [line]
  const fields = shownFields(definitions, difference, { showsUrls: true })
  return [line, ...fields.map((field) => `    ${fieldText(field, what)}`)]
}

function fieldText({ field, before, after }: FieldDifference, what: Made): string {
  if (what === 'changed') return `${field}: ${valueText(before)} → ${valueText(after)}`
  return `${field}: ${valueText(what === 'created' ? after : before)}`
}

function valueText(value: unknown): string {
  if (value === undefined) return '(none)'
  return JSON.stringify(value)
    .replaceAll(/"\$\{kept:([^}"]*):[0-9a-f]{16}\}"/g, '(secret, set $1)')
    .replaceAll(/\$\{kept:([^}"]*):[0-9a-f]{16}\}/g, '(set $1)')
}
