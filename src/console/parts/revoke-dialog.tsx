import type { ComponentChildren } from 'preact'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import type { Answer } from '../data/answer.ts'
import { counted } from '../data/format.ts'
import { may } from '../data/session.ts'
import { useAct } from './act.tsx'
import { DangerDialog } from './danger-dialog.tsx'

type Props = {
  /** What is revoked. */
  what: string
  /** Whose sessions end with it, as sessions name their `holder`. */
  holder: string
  revoke: () => Promise<Answer<unknown>>
  onClose: () => void
  /** What else there is to know. */
  children: ComponentChildren
}

/** Asks before a token or a link is revoked, which nothing undoes. */
export function RevokeDialog({ what, holder, revoke, onClose, children }: Props) {
  const act = useAct(revoke)
  return (
    <DangerDialog title={`Revoke ${what}?`} act={act} verb="Revoke" onClose={onClose}>
      {may('admin') ? <SessionsThatEnd holder={holder} /> : <p>Sessions that it has begun end too.</p>}
      <p>{children}</p>
    </DangerDialog>
  )
}

function SessionsThatEnd({ holder }: { holder: string }) {
  const { asked } = useAsk(`sessions-of-${holder}`, (reading) => api.listSessions({ limit: 500 }, reading))
  const page = asked.value.value
  if (page === undefined) return <p role="status">Sessions that it has begun end too.</p>
  const { length } = page.sessions.filter((session) => session.holder === holder)
  const least = page.cursor === null ? '' : 'At least '
  return (
    <p role="status">
      {least}
      {counted(length, 'session')} {length === 1 ? 'ends' : 'end'}.
    </p>
  )
}
