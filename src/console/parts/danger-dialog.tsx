import type { ComponentChildren } from 'preact'
import type { Act } from './act.tsx'
import { Dialog } from './dialog.tsx'
import { Button } from './form.tsx'
import { ProblemNote } from './problem.tsx'

type Props = {
  title: string
  act: Act<[], unknown>
  /** What the button says that does it. */
  verb: string
  onClose: () => void
  /** What there is to know before. */
  children: ComponentChildren
}

/** Asks before something that nothing undoes. Closes once it is done. */
export function DangerDialog({ title, act, verb, onClose, children }: Props) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <ProblemNote problem={act.problem} />
      <footer>
        <Button
          tone="danger"
          isBusy={act.isBusy}
          onClick={() =>
            void act.run().then((answer) => {
              if (answer.ok) onClose()
            })
          }
        >
          {verb}
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}
