import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { count, counted } from '../data/format.ts'
import type { BulkDone, BulkOrder } from '../data/types.ts'
import { useAct } from './act.tsx'
import { Dialog } from './dialog.tsx'
import { Button, Check, Field } from './form.tsx'
import { DestinationLink, Link } from './link.tsx'
import { ProblemNote } from './problem.tsx'

export type Deed = BulkOrder['do']

export const deedTitles: Readonly<Record<Deed, string>> = {
  pause: 'Pause',
  resume: 'Resume',
  'retry-now': 'Try now',
  label: 'Label',
}
/** The most destinations that a preview names. */
const mostNamed = 20

type Props = { deed: Deed; selection: BulkOrder['selection']; onClose: () => void }

/**
 * Does the same to many destinations: first a preview, in which the server says to which, and then all at
 * once.
 */
export function BulkDialog({ deed, selection, onClose }: Props) {
  const label = useSignal<Label>({ key: '', value: '', isRemoved: false })
  const order = (dryRun: boolean): BulkOrder => ({
    selection,
    do: deed,
    ...(deed === 'label' ? { labels: labelsOf(label.value) } : {}),
    dryRun,
  })
  const preview = useAct(() => api.changeMany(order(true)), { isReading: true })
  const make = useAct(() => api.changeMany(order(false)))
  const isReady = deed !== 'label' || isWhole(label.value)
  if (make.done !== undefined)
    return (
      <Dialog title={deedTitles[deed]} onClose={onClose}>
        <MadeText deed={deed} made={make.done} />
        <footer>
          <Button onClick={onClose}>Close</Button>
        </footer>
      </Dialog>
    )
  return (
    <Dialog title={deedTitles[deed]} onClose={onClose}>
      <p>{selectionText(selection)}</p>
      {deed === 'label' ? (
        <LabelFields
          label={label.value}
          onChange={(next) => {
            label.value = next
            preview.forget()
          }}
        />
      ) : null}
      <ProblemNote problem={make.problem ?? preview.problem} />
      <div role="status">{preview.done === undefined ? null : <PreviewText preview={preview.done} />}</div>
      <footer>
        {preview.done === undefined ? (
          <Button onClick={() => void preview.run()} isBusy={preview.isBusy} disabled={!isReady} tone="main">
            Preview
          </Button>
        ) : (
          <Button
            onClick={() => void make.run()}
            isBusy={make.isBusy}
            disabled={preview.done.destinations.length === 0}
            tone="main"
          >
            {`${deedTitles[deed]} ${count(preview.done.destinations.length)}`}
          </Button>
        )}
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}

type Label = { readonly key: string; readonly value: string; readonly isRemoved: boolean }

function labelsOf({ key, value, isRemoved }: Label): Record<string, string | null> {
  return { [key.trim()]: isRemoved ? null : value.trim() }
}

function isWhole({ key, value, isRemoved }: Label): boolean {
  return key.trim() !== '' && (isRemoved || value.trim() !== '')
}

function LabelFields({ label, onChange }: { label: Label; onChange: (next: Label) => void }) {
  return (
    <>
      <Field
        label="Key"
        value={label.key}
        isMono
        placeholder="tier"
        onInput={(key) => onChange({ ...label, key })}
      />
      {label.isRemoved ? null : (
        <Field
          label="Value"
          value={label.value}
          isMono
          placeholder="gold"
          onInput={(value) => onChange({ ...label, value })}
        />
      )}
      <Check
        label="Remove this label"
        value={label.isRemoved}
        onChange={(isRemoved) => onChange({ ...label, isRemoved })}
      />
    </>
  )
}

function PreviewText({ preview: { selected, destinations, skipped, unknown } }: { preview: BulkDone }) {
  return (
    <>
      <p>
        <strong>{count(destinations.length)}</strong> of {counted(selected, 'selected destination')} would
        change.
      </p>
      <Named ids={destinations} />
      {skipped.length === 0 ? null : (
        <details>
          <summary>
            {count(skipped.length)} {skipped.length === 1 ? 'is' : 'are'} left out
          </summary>
          <ul class="rows">
            {skipped.slice(0, mostNamed).map(({ destination, why }) => (
              <li key={destination}>
                <span class="mono">{destination}</span> <span class="grow">{why}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {unknown.length === 0 ? null : <p>No longer there: {unknown.slice(0, mostNamed).join(', ')}.</p>}
    </>
  )
}

function Named({ ids }: { ids: readonly string[] }) {
  if (ids.length === 0) return null
  return (
    <p class="mono">
      {ids.slice(0, mostNamed).join(', ')}
      {ids.length > mostNamed ? ` and ${count(ids.length - mostNamed)} more` : ''}
    </p>
  )
}

function MadeText({ deed, made: { destinations, skipped, revision } }: { deed: Deed; made: BulkDone }) {
  return (
    <div role="status">
      <p>
        {deedTitles[deed]}: done for {counted(destinations.length, 'destination')}
        {skipped.length === 0
          ? '.'
          : `; ${count(skipped.length)} ${skipped.length === 1 ? 'was' : 'were'} left out.`}
      </p>
      {revision === null ? null : (
        <p>
          It is change {revision}, which <Link to="history">History</Link> undoes.
        </p>
      )}
      {destinations.length === 1 && destinations[0] !== undefined ? (
        <p>
          <DestinationLink id={destinations[0]} />
        </p>
      ) : null}
    </div>
  )
}

/** Says what a selection takes. */
function selectionText({ destinations, label, state, search, source }: BulkOrder['selection']): string {
  if (destinations !== undefined)
    return `${counted(destinations.length, 'destination')} that you have chosen.`
  const parts = [
    search === undefined ? undefined : `with “${search}” in the id, the name or the host`,
    state === undefined ? undefined : `that are ${state.replaceAll('_', ' ')}`,
    label === undefined ? undefined : `with the label ${label}`,
    source === undefined ? undefined : `of source ${source}`,
  ]
  return `All destinations ${parts.filter((part) => part !== undefined).join(', ')}.`
}
