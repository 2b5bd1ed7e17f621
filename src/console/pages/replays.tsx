import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { count } from '../data/format.ts'
import { route, setParams } from '../data/route.ts'
import { may } from '../data/session.ts'
import type { Replay, ReplaySelection } from '../data/types.ts'
import { replayWords } from '../data/words.ts'
import { Badge } from '../parts/badge.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { DialogButton } from '../parts/dialog-button.tsx'
import { Button, Choice, Field } from '../parts/form.tsx'
import { Link } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { ReplayDialog, selectionText } from '../parts/replay-dialog.tsx'
import { Progress } from '../parts/progress.tsx'
import { Time } from '../parts/time.tsx'

const states = [
  { value: '', name: 'All' },
  { value: 'waiting', name: 'Waiting' },
  { value: 'running', name: 'Running' },
  { value: 'delivering', name: 'Delivering' },
  { value: 'stopped', name: 'Stopped' },
  { value: 'done', name: 'Done' },
] as const

export function ReplaysPage() {
  const { params } = route.value
  const state = states.find(({ value }) => value === params.get('state'))?.value ?? ''
  const cursor = params.get('cursor') ?? ''
  const query = { state, cursor, limit: 50 }
  const { asked } = useAsk(JSON.stringify(query), (reading) => api.listReplays(query, reading), 3_000)
  const page = asked.value.value
  return (
    <Page
      title="Replays"
      aside={
        may('operate', 'replay') ? (
          <DialogButton label="Start a replay" tone="main">
            {(onClose) => <NewReplay onClose={onClose} />}
          </DialogButton>
        ) : undefined
      }
    >
      <div class="filters">
        <Choice
          label="State"
          value={state}
          options={states}
          onChange={(next) => setParams({ state: next })}
        />
      </div>
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.replays.length === 0 ? (
        <Empty title="No replay in the last 90 days.">
          A replay sends <Link to="dead-letters">dead letters</Link> or earlier events again.
        </Empty>
      ) : (
        <>
          <ReplayTable replays={page.replays} />
          <Pager cursor={page.cursor} />
        </>
      )}
    </Page>
  )
}

function ReplayTable({ replays }: { replays: readonly Replay[] }) {
  return (
    <div class="scroll" role="region" aria-label="Replays" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Replay</th>
            <th scope="col">State</th>
            <th scope="col">What</th>
            <th scope="col">Progress</th>
            <th scope="col" class="number">
              Sent
            </th>
            <th scope="col">By</th>
            <th scope="col">Started</th>
          </tr>
        </thead>
        <tbody>
          {replays.map((replay) => (
            <tr key={replay.id}>
              <th scope="row">
                <Link to="replay" params={{ id: replay.id }} isRow class="mono">
                  {replay.id}
                </Link>
              </th>
              <td>
                <Badge {...replayWords[replay.state]} />
                {replay.detail === '' ? null : <div class="why">{replay.detail}</div>}
              </td>
              <td>{selectionText(replay.selection)}</td>
              <td>
                <Progress replay={replay} />
              </td>
              <td class="number" data-name="sent">
                {count(replay.sent.records)}
              </td>
              <td data-name="by">{replay.createdBy}</td>
              <td class="when">
                <Time at={replay.createdAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const kinds = [
  { value: 'dead-letters', name: 'Dead letters' },
  { value: 'events', name: 'Events, to one destination' },
] as const

/** Asks what to send again. The next step counts it. */
function NewReplay({ onClose }: { onClose: () => void }) {
  const of = useSignal<ReplaySelection['of']>('dead-letters')
  const destination = useSignal('')
  const hours = useSignal('24')
  const chosen = useSignal<ReplaySelection | undefined>(undefined)
  if (chosen.value !== undefined) return <ReplayDialog selection={chosen.value} onClose={onClose} />
  const next = (): void => {
    const from = new Date(Date.now() - Number(hours.value) * 3_600_000).toISOString()
    const id = destination.value.trim()
    chosen.value = { of: of.value, from, ...(id === '' ? {} : { destination: id }) }
  }
  return (
    <Dialog title="Start a replay" onClose={onClose}>
      <Choice
        label="Send again"
        value={of.value}
        options={kinds}
        onChange={(value) => {
          of.value = value
        }}
      />
      <Field
        label="Destination"
        value={destination.value}
        isMono
        hint={of.value === 'events' ? 'The one that gets the events.' : 'Empty: all.'}
        onInput={(value) => {
          destination.value = value
        }}
      />
      <Field
        label="Of the last hours"
        isNumber
        value={hours.value}
        onInput={(value) => {
          hours.value = value
        }}
      />
      <footer>
        <Button
          tone="main"
          onClick={next}
          disabled={!(Number(hours.value) > 0) || (of.value === 'events' && destination.value.trim() === '')}
        >
          Next
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}
