import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { bytes, count, duration } from '../data/format.ts'
import { route } from '../data/route.ts'
import { may } from '../data/session.ts'
import type { GroupedStats, Replay } from '../data/types.ts'
import { replayWords } from '../data/words.ts'
import { useAct } from '../parts/act.tsx'
import { Badge } from '../parts/badge.tsx'
import { Button } from '../parts/form.tsx'
import { DestinationLink, Link } from '../parts/link.tsx'
import { Figure, Page, Part } from '../parts/page.tsx'
import { NotYet, ProblemNote } from '../parts/problem.tsx'
import { Progress } from '../parts/progress.tsx'
import { selectionText } from '../parts/replay-dialog.tsx'
import { Ago, Time } from '../parts/time.tsx'

export function ReplayPage() {
  const id = route.value.params.get('id') ?? ''
  const { asked } = useAsk(`replay-${id}`, (reading) => api.readReplay(id, reading), 1_000)
  const replay = asked.value.value
  return (
    <Page title={`Replay ${id}`} aside={replay === undefined ? undefined : <ReplayActions replay={replay} />}>
      <NotYet asked={asked.value} />
      {replay === undefined ? null : (
        <>
          <p class="lead">
            <Badge {...replayWords[replay.state]} /> {selectionText(replay.selection)}. {replay.detail}
          </p>
          <p role="status">{meaningOf(replay)}</p>
          <p class="lead">
            <Progress replay={replay} />
          </p>
          <ReplayFigures replay={replay} />
          <LeftOut replay={replay} />
        </>
      )}
    </Page>
  )
}

function meaningOf({ state }: Replay): string {
  switch (state) {
    case 'waiting':
      return 'A worker will take it over within seconds.'
    case 'running':
      return 'A worker hands its messages over.'
    case 'delivering':
      return 'All messages are handed over. Some still wait for their turn.'
    case 'stopped':
      return 'It stands still. It goes on where it stopped.'
    case 'done':
      return 'None of its messages waits. What has failed is tried again like any other message.'
  }
}

function ReplayActions({ replay }: { replay: Replay }) {
  const stop = useAct(() => api.stopReplay(replay.id))
  const resume = useAct(() => api.resumeReplay(replay.id))
  if (!may('operate', 'replay') || replay.state === 'done') return null
  return (
    <>
      <ProblemNote problem={stop.problem ?? resume.problem} />
      {replay.state === 'stopped' ? (
        <Button onClick={() => void resume.run()} isBusy={resume.isBusy} tone="main">
          Go on
        </Button>
      ) : (
        <Button onClick={() => void stop.run()} isBusy={stop.isBusy}>
          Stop
        </Button>
      )}
    </>
  )
}

/** Counts what has come of the requests of a replay since it was asked for. */
function useOutcome({ id, createdAt }: Replay) {
  const { asked } = useAsk(
    `outcome-${id}`,
    (reading) => {
      // The clocks of workers may be behind.
      const from = new Date(Date.parse(createdAt) - 60_000).toISOString()
      return api.readSteps({ from, step: '24h', groupBy: 'all', replay: id, top: 1 }, reading)
    },
    3_000,
  )
  const groups = asked.value.value?.groups
  if (groups === undefined) return undefined
  const sum = (of: (group: GroupedStats['groups'][number]) => readonly number[]): number =>
    groups.flatMap(of).reduce((all, one) => all + one, 0)
  return {
    accepted: sum(({ succeeded }) => succeeded),
    failed: sum(({ failed }) => failed),
    dead: sum(({ dead }) => dead),
  }
}

function ReplayFigures({ replay }: { replay: Replay }) {
  const outcome = useOutcome(replay)
  const { selection, counted, sent, perSecond, waiting, secondsLeft, createdBy, createdAt, owner, notedAt } =
    replay
  return (
    <>
      <dl class="figures">
        <Figure name="Sent" value={count(sent.records)} note={bytes(sent.bytes)} />
        <Figure name="Counted" value={count(counted?.records)} note="before it started" />
        <Figure
          name="Accepted"
          value={count(outcome?.accepted)}
          note={`requests; ${count(outcome?.failed)} failed`}
        />
        <Figure name="Dead letters" value={count(outcome?.dead)} note="of it, again" />
        <Figure name="Wait for their turn" value={count(waiting)} note="at most" />
        <Figure
          name="Time left"
          value={duration(secondsLeft)}
          note={`${count(perSecond)} a second, at most`}
        />
        <Figure name="Noted" value={<Ago at={notedAt} />} note={owner ?? 'no worker yet'} />
      </dl>
      <p class="lead">
        Started by {createdBy} at <Time at={createdAt} />.{' '}
        {selection.destination === undefined ? null : (
          <>
            To <DestinationLink id={selection.destination} />.{' '}
          </>
        )}
        <Link to="audit" params={{ replay: replay.id }}>
          Who did what with it
        </Link>
      </p>
    </>
  )
}

function LeftOut({ replay: { sent } }: { replay: Replay }) {
  const leftOut = Object.entries(sent.leftOut).filter(([, records]) => records > 0)
  if (leftOut.length === 0) return null
  return (
    <Part title="Left out">
      <ul class="rows">
        {leftOut.map(([reason, records]) => (
          <li key={reason}>
            <strong class="number">{count(records)}</strong> <span>{reason}</span>
          </li>
        ))}
      </ul>
    </Part>
  )
}
