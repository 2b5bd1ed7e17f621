import * as api from '../data/api.ts'
import type { ReplaySelection } from '../data/types.ts'
import { useAct } from './act.tsx'
import { Dialog } from './dialog.tsx'
import { Button } from './form.tsx'
import { Link } from './link.tsx'
import { ProblemNote } from './problem.tsx'

/** Sends one message again, after one question. A selection of many is counted first (`ReplayDialog`). */
export function SendAgainDialog({ selection, onClose }: { selection: ReplaySelection; onClose: () => void }) {
  // An event may be sent again as often as somebody wants. Of dead letters, those before the last were
  // replayed.
  const send = useAct(() => api.startReplay({ selection, again: selection.of === 'events' }))
  const replay = send.done
  return (
    <Dialog title="Send this message again?" onClose={onClose}>
      <p>
        {selection.destination} gets it once more, with the same message id, by which an endpoint can tell
        that it is the same.
      </p>
      <ProblemNote problem={send.problem} />
      <p role="status">
        {replay === undefined ? null : (
          <>
            It is on its way, and its timeline goes on below. It is{' '}
            <Link to="replay" params={{ id: replay.id }}>
              replay {replay.id}
            </Link>
            .
          </>
        )}
      </p>
      <footer>
        {replay === undefined ? (
          <Button onClick={() => void send.run()} isBusy={send.isBusy} tone="main">
            Send it
          </Button>
        ) : null}
        <Button onClick={onClose}>{replay === undefined ? 'Cancel' : 'Close'}</Button>
      </footer>
    </Dialog>
  )
}
