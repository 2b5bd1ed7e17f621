import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { fieldsText } from '../data/difference.ts'
import { count } from '../data/format.ts'
import { may } from '../data/session.ts'
import type { CatalogChange, Undone } from '../data/types.ts'
import { useAct } from './act.tsx'
import { Badge } from './badge.tsx'
import { Difference } from './difference.tsx'
import { Dialog } from './dialog.tsx'
import { DialogButton } from './dialog-button.tsx'
import { Button } from './form.tsx'
import { Link } from './link.tsx'
import { NotYet, ProblemNote } from './problem.tsx'
import { Time } from './time.tsx'

/** Changes of the catalog, newest first. Each can be looked at and undone. */
export function Changes({ changes }: { changes: readonly CatalogChange[] }) {
  return (
    <ul class="rows" aria-label="Changes">
      {changes.map((change) => (
        <ChangeRow key={change.revision} change={change} />
      ))}
    </ul>
  )
}

function ChangeRow({ change }: { change: CatalogChange }) {
  const isOpen = useSignal(false)
  return (
    <li class="block">
      <div class="line">
        <Time at={change.at} />
        <strong>{change.by}</strong>
        <span class="grow">
          {change.objects.slice(0, 5).map(({ object, what }) => (
            <span key={object}>
              {what} <ObjectLink object={object} />{' '}
            </span>
          ))}
          {change.count > 5 ? `and ${count(change.count - 5)} more` : ''}
          <span class="quiet">{change.fields === null ? '' : fieldsText(change.fields)} </span>
          {change.undoes === null ? null : <Badge tone="quiet" word={`undoes ${change.undoes}`} />}
        </span>
        <span class="quiet number">{change.revision}</span>
        <button
          type="button"
          aria-expanded={isOpen.value}
          onClick={() => {
            isOpen.value = !isOpen.value
          }}
        >
          {isOpen.value ? 'Hide' : 'Show'}
        </button>
        {may('admin') ? (
          <DialogButton label="Undo">
            {(onClose) => <UndoDialog change={change} onClose={onClose} />}
          </DialogButton>
        ) : null}
      </div>
      {isOpen.value ? <ChangeFields change={change} /> : null}
    </li>
  )
}

function ObjectLink({ object }: { object: string }) {
  const [kind, id = ''] = object.split('/')
  if (kind === 'destination')
    return (
      <Link to="destination" params={{ id }} isRow>
        {object}
      </Link>
    )
  if (kind === 'source')
    return (
      <Link to="source" params={{ id }} isRow>
        {object}
      </Link>
    )
  return <span>{object}</span>
}

function ChangeFields({ change }: { change: CatalogChange }) {
  const { asked } = useAsk(`change-${change.revision}`, (reading) => api.readChange(change.revision, reading))
  return (
    <>
      <NotYet asked={asked.value} />
      {asked.value.value === undefined ? null : <ObjectFields objects={asked.value.value.objects} />}
    </>
  )
}

type ChangedObject = Undone['objects'][number]

/** What a change makes of each object. */
function ObjectFields({ objects }: { objects: readonly ChangedObject[] }) {
  return (
    <>
      {objects.map(({ object, what, fields }) => (
        <section key={object}>
          <h2>
            {what} {object}
          </h2>
          <Difference fields={fields} />
        </section>
      ))}
    </>
  )
}

/** Shows first what the undo would change now, as the server says it, and then undoes. */
function UndoDialog({ change, onClose }: { change: CatalogChange; onClose: () => void }) {
  const preview = useAct(() => api.undoChange(change.revision, { isDryRun: true }), { isReading: true })
  const undo = useAct(() => api.undoChange(change.revision, { isDryRun: false }))
  useEffect(() => void preview.run(), [])
  const coming = preview.done
  return (
    <Dialog title={`Undo change ${change.revision}`} onClose={onClose} isWide>
      <ProblemNote problem={undo.problem ?? preview.problem} />
      <p role="status">{undoText(undo.done, coming, preview.isBusy)}</p>
      {coming === undefined || undo.done !== undefined ? null : <ObjectFields objects={coming.objects} />}
      <footer>
        {undo.done !== undefined ? null : (
          <Button
            onClick={() => void undo.run()}
            isBusy={undo.isBusy}
            disabled={coming === undefined}
            tone="main"
          >
            Undo it
          </Button>
        )}
        <Button onClick={onClose}>{undo.done === undefined ? 'Cancel' : 'Close'}</Button>
      </footer>
    </Dialog>
  )
}

function undoText(undone: Undone | undefined, coming: Undone | undefined, isLooking: boolean): string {
  if (undone !== undefined) return `Undone by change ${undone.revision}, which can be undone too.`
  if (coming === undefined) return isLooking ? 'Looking what it would change…' : ''
  const others = coming.count - coming.objects.length
  return `This is what the undo changes now${others > 0 ? `, and ${count(others)} more objects` : ''}:`
}
