import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import type { Problem } from '../data/answer.ts'
import { askAllAgain, useAsk } from '../data/asking.ts'
import { differenceOf } from '../data/difference.ts'
import { destinationOf, draftOf } from '../data/draft.ts'
import { go, urlOf } from '../data/route.ts'
import { may } from '../data/session.ts'
import type { Destination } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { DestinationForm } from '../parts/destination-form.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Difference } from '../parts/difference.tsx'
import { Button, Field } from '../parts/form.tsx'
import { Part } from '../parts/page.tsx'
import { NotYet, ProblemNote } from '../parts/problem.tsx'

/** The settings of a destination. Who may not change them sees them as JSON. */
export function DestinationSettings({ id }: { id: string }) {
  const { asked } = useAsk(`settings-${id}`, (reading) => api.readDestination(id, reading))
  const { value, version } = asked.value
  if (value === undefined || version === undefined) return <NotYet asked={asked.value} />
  if (!may('admin')) return <pre>{JSON.stringify(value.destination, null, 2)}</pre>
  return (
    <>
      <Editor key={version} loaded={value.destination} version={version} />
      <Removal id={id} version={version} />
    </>
  )
}

type EditorProps = { loaded: Destination; version: string }

/**
 * Edits a destination in three steps: change the fields, look at the difference (which the server checks by a
 * dry run), and save. If somebody else has changed it meanwhile, shows what is there now, and keeps both.
 */
function Editor({ loaded, version }: EditorProps) {
  const base = useSignal({ destination: loaded, version })
  const draft = useSignal(draftOf(loaded))
  const json = useSignal<string | undefined>(undefined)
  const isChecked = useSignal(false)
  const theirs = useSignal<EditorProps | undefined>(undefined)
  const fault = useSignal<string | undefined>(undefined)
  const { asked: sources } = useAsk('sources', api.listSources)
  const save = useAct(
    async (destination: Destination, isDryRun: boolean) => {
      const answer = await api.putDestination(destination, { version: base.value.version, isDryRun })
      if (!answer.ok && answer.problem.status === 412) theirs.value = await presentOf(destination.id)
      return answer
    },
    { isReading: true },
  )
  const edited = (): Destination | undefined => {
    if (json.value === undefined) return destinationOf(draft.value)
    const read = readJson(json.value)
    fault.value = read === undefined ? 'This is no JSON object.' : undefined
    return read
  }
  const check = async (): Promise<void> => {
    const destination = edited()
    if (destination === undefined) return
    const answer = await save.run(destination, true)
    isChecked.value = answer.ok
  }
  const commit = async (): Promise<void> => {
    const destination = edited()
    if (destination === undefined) return
    const answer = await save.run(destination, false)
    isChecked.value = false
    if (answer.ok) askAllAgain()
  }
  const takeTheirs = (present: EditorProps): void => {
    const mine = edited()
    base.value = { destination: present.loaded, version: present.version }
    if (mine !== undefined) draft.value = draftOf(mergedOf({ ...loaded }, { ...mine }, { ...present.loaded }))
    json.value = undefined
    theirs.value = undefined
    save.forget()
  }
  const changed = isChecked.value ? differenceOf(base.value.destination, edited()) : []
  return (
    <Part
      title="Settings"
      aside={
        <Button
          onClick={() => {
            const present = edited()
            if (present === undefined) return
            if (json.value === undefined) json.value = JSON.stringify(present, null, 2)
            else {
              draft.value = draftOf(present)
              json.value = undefined
            }
          }}
        >
          {json.value === undefined ? 'Edit as JSON' : 'Edit as a form'}
        </Button>
      }
    >
      {json.value === undefined ? (
        <DestinationForm
          draft={draft.value}
          isNew={false}
          sources={(sources.value.value?.sources ?? []).map(({ id }) => id)}
          onChange={(next) => {
            draft.value = next
          }}
        />
      ) : (
        <Field
          label="JSON"
          value={json.value}
          fault={fault.value}
          rows={24}
          isMono
          onInput={(text) => {
            json.value = text
          }}
        />
      )}
      {theirs.value === undefined ? (
        <ProblemNote problem={isChecked.value ? undefined : save.problem} />
      ) : (
        <Conflict before={base.value.destination} present={theirs.value} onTake={takeTheirs} />
      )}
      <Button onClick={() => void check()} isBusy={save.isBusy} tone="main">
        Look at the difference
      </Button>
      {isChecked.value ? (
        <Confirm
          fields={changed}
          problem={save.problem}
          isBusy={save.isBusy}
          onSave={() => void commit()}
          onClose={() => {
            isChecked.value = false
          }}
        />
      ) : null}
    </Part>
  )
}

async function presentOf(id: string): Promise<EditorProps | undefined> {
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

function readJson(text: string): Destination | undefined {
  try {
    const value: unknown = JSON.parse(text)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server checks it
    return typeof value === 'object' && value !== null ? (value as Destination) : undefined
  } catch {
    return undefined
  }
}

type ConflictProps = {
  before: Destination
  present: EditorProps
  onTake: (present: EditorProps) => void
}

function Conflict({ before, present, onTake }: ConflictProps) {
  return (
    <div class="note" data-tone="bad" role="alert">
      <strong>Somebody has changed it since you opened it. Nothing of yours was saved.</strong>
      <p>This is what they changed:</p>
      <Difference fields={differenceOf(before, present.loaded)} />
      <Button onClick={() => onTake(present)} tone="main">
        Take it over, and keep my changes
      </Button>
    </div>
  )
}

type ConfirmProps = {
  fields: ReturnType<typeof differenceOf>
  problem: Problem | undefined
  isBusy: boolean
  onSave: () => void
  onClose: () => void
}

function Confirm({ fields, problem, isBusy, onSave, onClose }: ConfirmProps) {
  return (
    <Dialog title="Save these changes?" onClose={onClose} isWide>
      <Difference fields={fields} />
      <p class="quiet">The server has checked them. Running processes use them within a second.</p>
      <ProblemNote problem={problem} />
      <footer>
        <Button onClick={onSave} isBusy={isBusy} disabled={fields.length === 0} tone="main">
          Save
        </Button>
        <Button onClick={onClose}>Back</Button>
      </footer>
    </Dialog>
  )
}

function Removal({ id, version }: { id: string; version: string }) {
  const isOpen = useSignal(false)
  const typed = useSignal('')
  const remove = useAct(() => api.removeDestination(id, { version, isDryRun: false }), { isReading: true })
  const close = (): void => {
    isOpen.value = false
  }
  return (
    <Part title="Remove">
      <p>What waits for it becomes dead letters. History can undo the removal.</p>
      <Button
        tone="danger"
        onClick={() => {
          isOpen.value = true
        }}
      >
        Remove the destination
      </Button>
      {isOpen.value ? (
        <Dialog title={`Remove ${id}?`} onClose={close}>
          <Field
            label={`Type ${id} to confirm`}
            value={typed.value}
            isMono
            onInput={(value) => {
              typed.value = value
            }}
          />
          <ProblemNote problem={remove.problem} />
          <footer>
            <Button
              tone="danger"
              isBusy={remove.isBusy}
              disabled={typed.value !== id}
              onClick={() =>
                void remove.run().then((answer) => {
                  if (answer.ok) go(urlOf('destinations'))
                })
              }
            >
              Remove
            </Button>
            <Button onClick={close}>Cancel</Button>
          </footer>
        </Dialog>
      ) : null}
    </Part>
  )
}
