import { type Signal, useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { askAllAgain } from '../data/asking.ts'
import { differenceOf, mergePatchOf } from '../data/difference.ts'
import { readJson } from '../data/json.ts'
import { may } from '../data/session.ts'
import type { Destination, FieldChange } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { patchHooksOf, urlPatchOf } from './draft-hook.ts'
import { destinationOf, type Draft, draftOf } from './draft.ts'
import { maskedOf } from './masked.ts'

/** A destination as the server has it, with its version. */
export type Present = { readonly loaded: Destination; readonly version: string }

export type DestinationEditor = ReturnType<typeof useEditor>

/**
 * Edits a destination in three steps: change the fields, look at the difference (which the server checks by a
 * dry run), and save. If somebody else has changed it meanwhile, `theirs` is what is there now. `hookIds`:
 * the ids of its URLs.
 */
export function useEditor(opened: Present, hookIds: readonly string[]) {
  const slots: Slots = {
    base: useSignal(opened),
    draft: useSignal(draftOf(opened.loaded)),
    json: useSignal<string | undefined>(undefined),
    fault: useSignal<string | undefined>(undefined),
    theirs: useSignal<Present | undefined>(undefined),
  }
  const isChecked = useSignal(false)
  /** When changes were saved, in epoch milliseconds. `undefined` once others are looked at. */
  const savedAtMs = useSignal<number | undefined>(undefined)
  const save = useAct(
    async (destination: Destination, isDryRun: boolean) => {
      const { loaded, version } = slots.base.value
      const patch = may('admin')
        ? patchOf(loaded, destination)
        : urlPatchOf(loaded.hooks, destination.hooks, hookIds)
      const answer = await api.patchDestination(loaded.id, patch, { version, isDryRun })
      if (!answer.ok && answer.problem.status === 412) slots.theirs.value = await presentOf(loaded.id)
      return answer
    },
    { isReading: true },
  )
  const send = async (isDryRun: boolean): Promise<void> => {
    const destination = editedIn(slots)
    savedAtMs.value = undefined
    if (destination === undefined) return
    const answer = await save.run(destination, isDryRun)
    isChecked.value = isDryRun && answer.ok
    if (!answer.ok || isDryRun) return
    savedAtMs.value = Date.now()
    const present = await presentOf(slots.base.value.loaded.id)
    if (present !== undefined) reopen(slots, present)
    askAllAgain()
  }
  return {
    ...slots,
    isChecked,
    savedAtMs,
    save,
    difference: () => differenceIn(slots),
    check: () => send(true),
    commit: () => send(false),
    turn: () => turn(slots),
    takeTheirs: (present: Present) => {
      takeOver(slots, present)
      save.forget()
    },
  }
}

function patchOf(before: Destination, after: Destination): Record<string, unknown> {
  const patch = mergePatchOf({ ...before }, { ...after })
  return 'hooks' in patch ? { ...patch, hooks: patchHooksOf(before.hooks, after.hooks) } : patch
}

type Slots = {
  /** What the changes are changes of. */
  readonly base: Signal<Present>
  readonly draft: Signal<Draft>
  /** The text, while it is edited as JSON. */
  readonly json: Signal<string | undefined>
  /** What is wrong with the text. */
  readonly fault: Signal<string | undefined>
  readonly theirs: Signal<Present | undefined>
}

/** Returns what was edited. `undefined`: the text is no JSON. */
function editedIn({ draft, json, fault }: Slots): Destination | undefined {
  if (json.value === undefined) return destinationOf(draft.value)
  const read = readDestination(json.value)
  fault.value = read === undefined ? 'This is no JSON object.' : undefined
  return read
}

/** Returns what differs. The secrets that somebody has typed aren't in it. */
function differenceIn(slots: Slots): readonly FieldChange[] {
  const edited = editedIn(slots)
  return edited === undefined ? [] : differenceOf(slots.base.value.loaded, maskedOf(edited))
}

/** Turns from the form to the text, or back. */
function turn(slots: Slots): void {
  const { draft, json } = slots
  const present = editedIn(slots)
  if (present === undefined) return
  if (json.value === undefined) {
    json.value = JSON.stringify(present, null, 2)
    return
  }
  draft.value = draftOf(present)
  json.value = undefined
}

/** Shows what was saved. */
function reopen(slots: Slots, present: Present): void {
  slots.base.value = present
  slots.draft.value = draftOf(present.loaded)
  slots.json.value = undefined
}

function takeOver(slots: Slots, present: Present): void {
  const mine = editedIn(slots)
  const before = slots.base.value.loaded
  if (mine !== undefined)
    slots.draft.value = draftOf(mergedOf({ ...before }, { ...mine }, { ...present.loaded }))
  slots.base.value = present
  slots.json.value = undefined
  slots.theirs.value = undefined
}

async function presentOf(id: string): Promise<Present | undefined> {
  const answer = await api.readDestination(id)
  if (!answer.ok || answer.version === undefined) return undefined
  return { loaded: answer.value.destination, version: answer.version }
}

type Fields = Readonly<Record<string, unknown>>

/** Puts the fields that were edited here into what is there now. */
function mergedOf(base: Fields, mine: Fields, present: Fields): Destination {
  const names = [...new Set([...Object.keys(base), ...Object.keys(mine)])]
  const own = names.filter((name) => differenceOf(base[name], mine[name]).length > 0)
  const kept = Object.entries(present).filter(([name]) => !own.includes(name))
  const taken = own.flatMap((name) => (mine[name] === undefined ? [] : [[name, mine[name]] as const]))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its fields are those of two destinations
  return Object.fromEntries([...kept, ...taken]) as Destination
}

function readDestination(text: string): Destination | undefined {
  const value = readJson(text)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server checks it
  return typeof value === 'object' && value !== null ? (value as Destination) : undefined
}
