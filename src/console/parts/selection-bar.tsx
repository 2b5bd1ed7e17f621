import { useSignal } from '@preact/signals'
import { count } from '../data/format.ts'
import { may } from '../data/session.ts'
import type { BulkOrder } from '../data/types.ts'
import { BulkDialog, type Deed, deedTitles } from './bulk-dialog.tsx'
import { Button } from './form.tsx'

type Selection = BulkOrder['selection']
type Props = {
  /** The ids that are ticked. */
  ticked: ReadonlySet<string>
  /** What the filters of the list select. `undefined`: there is no filter, so all are shown. */
  fitting: Selection | undefined
  total: number
  onClear: () => void
}

/** What can be done to the destinations that are ticked, or to all that fit the filters. */
export function SelectionBar({ ticked, fitting, total, onClear }: Props) {
  const open = useSignal<{ readonly deed: Deed; readonly selection: Selection } | undefined>(undefined)
  const isWhole = useSignal(false)
  const selection =
    isWhole.value && fitting !== undefined ? fitting : { destinations: [...ticked].toSorted() }
  if (ticked.size === 0 && open.value === undefined) return null
  const deeds: readonly Deed[] = may('admin') ? ['pause', 'resume', 'label', 'retry-now'] : ['retry-now']
  return (
    <div class="selection" role="group" aria-label="Selected destinations">
      <strong role="status">{count(isWhole.value ? total : ticked.size)} selected</strong>
      {fitting === undefined || total <= ticked.size ? null : (
        <Button
          onClick={() => {
            isWhole.value = !isWhole.value
          }}
        >
          {isWhole.value ? `Only the ${count(ticked.size)} ticked` : `All ${count(total)} that fit`}
        </Button>
      )}
      {deeds.map((deed) => (
        <Button
          key={deed}
          onClick={() => {
            open.value = { deed, selection }
          }}
        >
          {deedTitles[deed]}
        </Button>
      ))}
      <Button
        onClick={() => {
          isWhole.value = false
          onClear()
        }}
      >
        Select none
      </Button>
      {open.value === undefined ? null : (
        <BulkDialog
          {...open.value}
          onClose={() => {
            open.value = undefined
          }}
        />
      )}
    </div>
  )
}
