import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { byDestination, type DeadDestination } from '../data/dead-groups.ts'
import { count } from '../data/format.ts'
import { explainReason } from '../../message/dead-letter-explained.ts'
import { route, setParams } from '../data/route.ts'
import { may } from '../data/session.ts'
import type { DeadLetterGroup, ReplaySelection } from '../data/types.ts'
import { Badge } from '../parts/badge.tsx'
import { Button, Choice, Field } from '../parts/form.tsx'
import { DestinationLink, Link } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { ReplayDialog } from '../parts/replay-dialog.tsx'
import { Time } from '../parts/time.tsx'

const times = [
  { value: '24', name: 'Last 24 hours' },
  { value: '1', name: 'Last hour' },
  { value: '168', name: 'Last week' },
  { value: '720', name: 'Last 30 days' },
] as const

const hourMs = 3_600_000

/** Dead letters by destination and reason: what the reason means, what to do, and the replay. */
export function DeadLettersPage() {
  const { params } = route.value
  const hours = times.find(({ value }) => value === params.get('hours'))?.value ?? '24'
  const destination = params.get('destination') ?? ''
  return (
    <Page title="Dead letters">
      <div class="filters">
        <Field
          label="Destination"
          value={destination}
          onInput={(next) => setParams({ destination: next }, { replace: true })}
        />
        <Choice label="Time" value={hours} options={times} onChange={(next) => setParams({ hours: next })} />
      </div>
      <Groups key={hours} hours={Number(hours)} destination={destination} />
    </Page>
  )
}

function Groups({ hours, destination }: { hours: number; destination: string }) {
  // The beginning of the time stays while the page is open, so that a replay takes what is shown.
  const from = useSignal(new Date(Date.now() - hours * hourMs).toISOString()).value
  const open = useSignal<ReplaySelection | undefined>(undefined)
  const { asked } = useAsk(
    `${from} ${destination}`,
    (reading) => api.countDeadLetters({ from, destination }, reading),
    10_000,
  )
  const summary = asked.value.value
  if (summary === undefined) return <NotYet asked={asked.value} />
  if (summary.groups.length === 0)
    return <Empty title="No dead letters in this time.">Choose a longer time to see older ones.</Empty>
  return (
    <>
      <p class="lead quiet">
        What has become a dead letter, also if a replay has sent it since. A replay is counted before it
        starts.
      </p>
      {byDestination(summary.groups).map((group) => (
        <DestinationPart
          key={group.destination ?? ''}
          group={group}
          hours={hours}
          onReplay={(chosen) => {
            open.value = { of: 'dead-letters', from, ...chosen }
          }}
        />
      ))}
      {summary.others === 0 ? null : (
        <p class="lead">{count(summary.others)} more groups have fewer. Name a destination to see its own.</p>
      )}
      {open.value === undefined ? null : (
        <ReplayDialog
          selection={open.value}
          onClose={() => {
            open.value = undefined
          }}
        />
      )}
    </>
  )
}

type Chosen = { readonly destination?: string; readonly reason?: string }
type PartProps = { group: DeadDestination; hours: number; onReplay: (chosen: Chosen) => void }

function DestinationPart({ group, hours, onReplay }: PartProps) {
  const { destination, reasons } = group
  const ofDestination = destination === null ? {} : { destination }
  const isReplayed = may('operate', 'replay')
  return (
    <section>
      <div class="heading">
        <h2>
          {destination === null ? 'Of no destination' : <DestinationLink id={destination} />}{' '}
          <span class="quiet number">{count(group.count)}</span>
        </h2>
        {isReplayed && destination !== null && reasons.length > 1 ? (
          <Button onClick={() => onReplay(ofDestination)}>Replay all</Button>
        ) : null}
      </div>
      <ul class="rows" aria-label={`Dead letters of ${destination ?? 'no destination'} by reason`}>
        {reasons.map((one) => (
          <ReasonRow
            key={one.reason}
            one={one}
            hours={hours}
            onReplay={isReplayed ? () => onReplay({ ...ofDestination, reason: one.reason }) : undefined}
          />
        ))}
      </ul>
    </section>
  )
}

type ReasonProps = { one: DeadLetterGroup; hours: number; onReplay: (() => void) | undefined }

function ReasonRow({ one, hours, onReplay }: ReasonProps) {
  const { destination, reason, firstAt, lastAt } = one
  const { means, todo } = explainReason(reason)
  const find = { destination: destination ?? '', reason, what: 'dead', hours: String(hours) }
  return (
    <li>
      <strong class="number">{count(one.count)}</strong>
      <Badge tone="bad" word={reason} />
      <span class="grow">
        {means} <strong>{todo}</strong>{' '}
        <span class="quiet">
          First <Time at={firstAt} />, last <Time at={lastAt} />.
        </span>
      </span>
      <Link to="find" params={find}>
        Look at them
      </Link>
      {onReplay === undefined ? null : <Button onClick={onReplay}>Replay</Button>}
    </li>
  )
}
