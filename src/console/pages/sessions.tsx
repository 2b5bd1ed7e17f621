import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { counted } from '../data/format.ts'
import { route } from '../data/route.ts'
import type { HeldSession } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { Badge } from '../parts/badge.tsx'
import { DangerDialog } from '../parts/danger-dialog.tsx'
import { Button } from '../parts/form.tsx'
import { scopeText } from '../parts/frame.tsx'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Ago, Time } from '../parts/time.tsx'

/** One session that is to end, or all of its holder. */
type Ending = { readonly session: HeldSession; readonly isAll: boolean }

/** Who is signed in, by token, by link or at the provider. */
export function SessionsPage() {
  const cursor = route.value.params.get('cursor') ?? undefined
  const { asked } = useAsk(
    `sessions-${cursor ?? ''}`,
    (reading) => api.listSessions({ cursor, limit: 100 }, reading),
    10_000,
  )
  const ending = useSignal<Ending | undefined>(undefined)
  const page = asked.value.value
  return (
    <Page title="Sessions">
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.sessions.length === 0 ? (
        <Empty title="Nobody is signed in.">Programs with a token have no session.</Empty>
      ) : (
        <>
          <p class="lead">
            {counted(page.total, 'session')}. A session that ends here ends on every process within a second.
          </p>
          <SessionTable
            sessions={page.sessions}
            onEnd={(next) => {
              ending.value = next
            }}
          />
          <Pager cursor={page.cursor} />
        </>
      )}
      {ending.value === undefined ? null : (
        <EndDialog
          ending={ending.value}
          onClose={() => {
            ending.value = undefined
          }}
        />
      )}
    </Page>
  )
}

type TableProps = { sessions: readonly HeldSession[]; onEnd: (ending: Ending) => void }

function SessionTable({ sessions, onEnd }: TableProps) {
  return (
    <div class="scroll" role="region" aria-label="Sessions" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Who</th>
            <th scope="col">May</th>
            <th scope="col">Scope</th>
            <th scope="col">Since</th>
            <th scope="col">Last use</th>
            <th scope="col">Ends</th>
            <th scope="col">
              <span class="hidden">End</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {sessions.map((session) => (
            <SessionRow key={session.id} session={session} onEnd={onEnd} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

const kinds = { person: 'at the provider', token: 'by token', link: 'by link' } as const

function SessionRow({ session, onEnd }: { session: HeldSession; onEnd: TableProps['onEnd'] }) {
  const { name, kind, rights, scope, since, lastUsedAt, endsAt, isOwn } = session
  return (
    <tr>
      <th scope="row">
        {name} <span class="quiet">{kinds[kind]}</span>{' '}
        {isOwn ? <Badge tone="active" word="this one" /> : null}
      </th>
      <td data-name="may">{kind === 'link' ? rights.join(', ').replaceAll('_', ' ') : rights.at(-1)}</td>
      <td class="mono" data-name="scope">
        {scopeText(scope)}
      </td>
      <td data-name="since">
        <Ago at={since} />
      </td>
      <td data-name="last use">
        <Ago at={lastUsedAt} />
      </td>
      <td class="when" data-name="ends">
        <Time at={endsAt} />
      </td>
      <td class="when">
        <Button tone="danger" onClick={() => onEnd({ session, isAll: false })}>
          End
        </Button>{' '}
        <Button tone="danger" onClick={() => onEnd({ session, isAll: true })}>
          End all of them
        </Button>
      </td>
    </tr>
  )
}

const notForGood = {
  person:
    'They can sign in again as long as the provider gives them a right here: take it away there, or in admin.oidcRights.',
  token: 'The token signs in again: revoke it on the page Tokens to prevent that.',
  link: 'The link signs in again: revoke it on the page Customers to prevent that.',
} as const

function EndDialog({ ending: { session, isAll }, onClose }: { ending: Ending; onClose: () => void }) {
  const end = useAct(() => (isAll ? api.endSessionsOf(session.holder) : api.endSession(session.id)))
  return (
    <DangerDialog
      title={isAll ? `End all sessions of ${session.name}?` : `End this session of ${session.name}?`}
      act={end}
      verb={isAll ? 'End all' : 'End it'}
      onClose={onClose}
    >
      {session.isOwn ? <p>You are signed in by it, so you have to sign in again.</p> : null}
      <p>{notForGood[session.kind]}</p>
    </DangerDialog>
  )
}
