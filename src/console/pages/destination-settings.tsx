import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import type { Problem } from '../data/answer.ts'
import { useAsk } from '../data/asking.ts'
import { differenceOf } from '../data/difference.ts'
import { localClock } from '../data/format.ts'
import { go, urlOf } from '../data/route.ts'
import { may } from '../data/session.ts'
import type { Destination } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { type DestinationEditor, type Present, useEditor } from '../editor/destination-editor.ts'
import { DestinationForm } from '../editor/destination-form.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { DialogButton } from '../parts/dialog-button.tsx'
import { Difference } from '../parts/difference.tsx'
import { Button, Field } from '../parts/form.tsx'
import { Part } from '../parts/page.tsx'
import { NotYet, ProblemNote } from '../parts/problem.tsx'

/** The settings of a destination. Who may not change them sees them as JSON. */
export function DestinationSettings({ id, hookIds }: { id: string; hookIds: readonly string[] }) {
  const { asked } = useAsk(`settings-${id}`, (reading) => api.readDestination(id, reading))
  const { value, version } = asked.value
  if (value === undefined || version === undefined) return <NotYet asked={asked.value} />
  if (!may('admin', 'edit_url')) return <pre>{JSON.stringify(value.destination, null, 2)}</pre>
  return (
    <>
      <Editor key={id} present={{ loaded: value.destination, version }} hookIds={hookIds} />
      {may('admin') ? <Removal id={id} version={version} /> : null}
    </>
  )
}

function Editor({ present, hookIds }: { present: Present; hookIds: readonly string[] }) {
  const editor = useEditor(present, hookIds)
  const { save, isChecked, savedAtMs, theirs, base } = editor
  return (
    <Part
      title="Settings"
      aside={
        may('admin') ? (
          <Button onClick={editor.turn}>
            {editor.json.value === undefined ? 'Edit as JSON' : 'Edit as a form'}
          </Button>
        ) : undefined
      }
    >
      <EditorFields editor={editor} />
      {theirs.value === undefined ? (
        <ProblemNote problem={isChecked.value ? undefined : save.problem} />
      ) : (
        <Conflict before={base.value.loaded} present={theirs.value} onTake={editor.takeTheirs} />
      )}
      <p role="status">
        {savedAtMs.value === undefined
          ? ''
          : `Saved at ${localClock(new Date(savedAtMs.value))}. Running processes use it within a second.`}
      </p>
      <Button onClick={() => void editor.check()} isBusy={save.isBusy} tone="main">
        Review changes
      </Button>
      {isChecked.value ? (
        <Confirm
          fields={editor.difference()}
          problem={save.problem}
          isBusy={save.isBusy}
          onSave={() => void editor.commit()}
          onClose={() => {
            isChecked.value = false
          }}
        />
      ) : null}
    </Part>
  )
}

function EditorFields({ editor: { draft, json, fault } }: { editor: DestinationEditor }) {
  const { asked: sources } = useAsk('sources', api.listSources)
  if (json.value === undefined)
    return (
      <DestinationForm
        draft={draft.value}
        isNew={false}
        isOnlyUrls={!may('admin')}
        sources={(sources.value.value?.sources ?? []).map(({ id }) => id)}
        onChange={(next) => {
          draft.value = next
        }}
      />
    )
  return (
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
  )
}

type ConflictProps = {
  before: Destination
  present: Present
  onTake: (present: Present) => void
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
  return (
    <Part title="Remove">
      <p>What waits for it becomes dead letters. History can undo the removal.</p>
      <DialogButton label="Remove the destination" tone="danger">
        {(onClose) => <RemoveDialog id={id} version={version} onClose={onClose} />}
      </DialogButton>
    </Part>
  )
}

type RemoveProps = { id: string; version: string; onClose: () => void }

function RemoveDialog({ id, version, onClose }: RemoveProps) {
  const typed = useSignal('')
  const remove = useAct(() => api.removeDestination(id, { version, isDryRun: false }), { isReading: true })
  return (
    <Dialog title={`Remove ${id}?`} onClose={onClose}>
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
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}
