import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { bytes, count, counted as countedText } from '../data/format.ts'
import { go, urlOf } from '../data/route.ts'
import type { ReplayPreview, ReplaySelection } from '../data/types.ts'
import { useAct } from './act.tsx'
import { Dialog } from './dialog.tsx'
import { Button, Check, Field } from './form.tsx'
import { ProblemNote } from './problem.tsx'

type Props = { selection: ReplaySelection; onClose: () => void }

/** Sends a selection again: first a preview that counts, then the replay, whose page shows its progress. */
export function ReplayDialog({ selection, onClose }: Props) {
  const perSecond = useSignal('1000')
  const isAgain = useSignal(false)
  const request = (): api.ReplayRequest => ({
    selection,
    perSecond: Number(perSecond.value),
    again: isAgain.value,
  })
  const preview = useAct(() => api.previewReplay({ selection, again: isAgain.value }), { isReading: true })
  const start = useAct(() => api.startReplay(request()))
  const counted = preview.done
  const begin = async (): Promise<void> => {
    const answer = await start.run()
    if (answer.ok) go(urlOf('replay', { id: answer.value.id }))
  }
  return (
    <Dialog title="Replay" onClose={onClose}>
      <p>{selectionText(selection)}</p>
      <Check
        label="Also what other replays have sent"
        value={isAgain.value}
        onChange={(value) => {
          isAgain.value = value
          preview.forget()
        }}
      />
      <Field
        label="Messages a second, at most"
        isNumber
        value={perSecond.value}
        onInput={(value) => {
          perSecond.value = value
        }}
      />
      <ProblemNote problem={start.problem ?? preview.problem} />
      <div role="status">{counted === undefined ? null : <Counted preview={counted} />}</div>
      <footer>
        {counted === undefined ? (
          <Button onClick={() => void preview.run()} isBusy={preview.isBusy} tone="main">
            Count them
          </Button>
        ) : (
          <Button
            onClick={() => void begin()}
            isBusy={start.isBusy}
            disabled={counted.isComplete && counted.counted.records === 0}
            tone="main"
          >
            {`Send ${count(counted.counted.records)} again`}
          </Button>
        )}
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}

function Counted({ preview }: { preview: ReplayPreview }) {
  const { counted, isComplete } = preview
  const leftOut = Object.entries(counted.leftOut)
  return (
    <p>
      <strong>
        {isComplete ? '' : 'At least '}
        {countedText(counted.records, 'message')}
      </strong>{' '}
      ({bytes(counted.bytes)}) would be sent.
      {leftOut.map(
        ([reason, records]) => ` ${count(records)} ${records === 1 ? 'is' : 'are'} left out: ${reason}.`,
      )}
    </p>
  )
}

/** Says what a selection takes. */
export function selectionText({
  of,
  destination,
  source,
  reason,
  messageId,
  from,
  to,
}: ReplaySelection): string {
  const parts = [
    of === 'dead-letters' ? 'Dead letters' : 'Events',
    destination === undefined ? undefined : `of ${destination}`,
    source === undefined ? undefined : `from source ${source}`,
    reason === undefined ? undefined : `with reason ${reason}`,
    messageId === undefined ? undefined : `with message id ${messageId}`,
    from === undefined ? undefined : `from ${from}`,
    to === undefined ? undefined : `until ${to}`,
  ]
  return parts.filter((part) => part !== undefined).join(' ')
}
