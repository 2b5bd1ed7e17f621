import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { bytes, count } from '../data/format.ts'
import { explainReason } from '../data/reasons.ts'
import { route, setParams } from '../data/route.ts'
import { may } from '../data/session.ts'
import type { ReplayPreview, ReplaySelection } from '../data/types.ts'
import { Badge } from '../parts/badge.tsx'
import { Button, Choice, Field } from '../parts/form.tsx'
import { DestinationLink, Link } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { ReplayDialog } from '../parts/replay-dialog.tsx'

const times = [
  { value: '24', name: 'Last 24 hours' },
  { value: '1', name: 'Last hour' },
  { value: '168', name: 'Last week' },
  { value: '720', name: 'Last 30 days' },
] as const

const hourMs = 3_600_000

type DeadGroup = ReplayPreview['groups'][number]

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
      {may('operate', 'replay') ? (
        <Groups key={hours} hours={Number(hours)} destination={destination} />
      ) : (
        <Empty title="Your token may not count dead letters.">
          It needs the right operate.{' '}
          <Link to="find" params={{ what: 'dead' }}>
            The delivery log lists them.
          </Link>
        </Empty>
      )}
    </Page>
  )
}

/**
 * The beginning of the time shown. It stays while the page is open, so that a replay takes what was counted.
 */
function Groups({ hours, destination }: { hours: number; destination: string }) {
  const from = useSignal(new Date(Date.now() - hours * hourMs).toISOString()).value
  const selection: ReplaySelection = {
    of: 'dead-letters',
    from,
    ...(destination === '' ? {} : { destination }),
  }
  const { asked } = useAsk(JSON.stringify(selection), (reading) =>
    api.previewReplay({ selection, again: true }, reading),
  )
  const preview = asked.value.value
  return (
    <>
      <NotYet asked={asked.value} />
      {preview === undefined ? null : <Listed preview={preview} selection={selection} />}
    </>
  )
}

function Listed({ preview, selection }: { preview: ReplayPreview; selection: ReplaySelection }) {
  const open = useSignal<ReplaySelection | undefined>(undefined)
  const { groups, counted, isComplete } = preview
  if (groups.length === 0)
    return <Empty title="No dead letters in this time.">Choose a longer time to see older ones.</Empty>
  return (
    <>
      <p>
        {isComplete ? '' : 'Counted in the time that there was: at least '}
        {count(counted.records)} dead letters, {bytes(counted.bytes)}. What replays have sent again is counted
        too.
      </p>
      <ul class="rows" aria-label="Dead letters by destination and reason">
        {groups.map((group) => (
          <Group
            key={`${group.destination ?? ''} ${group.reason ?? ''}`}
            group={group}
            onReplay={() => {
              open.value = selectionOf(selection, group)
            }}
          />
        ))}
      </ul>
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

function selectionOf(selection: ReplaySelection, { destination, reason }: DeadGroup): ReplaySelection {
  return {
    ...selection,
    ...(destination === null ? {} : { destination }),
    ...(reason === null ? {} : { reason }),
  }
}

function Group({ group, onReplay }: { group: DeadGroup; onReplay: () => void }) {
  const { destination, reason, records } = group
  const explained = reason === null ? undefined : explainReason(reason)
  return (
    <li class="block">
      <div class="line">
        <strong class="number">{count(records)}</strong>
        {destination === null ? <span>of no destination</span> : <DestinationLink id={destination} />}
        <Badge tone="bad" word={reason ?? 'others'} />
        <span class="grow">
          {explained?.means} <strong>{explained?.todo}</strong>
        </span>
        <Link
          to="find"
          params={{ destination: destination ?? '', reason: reason ?? '', what: 'dead', hours: '168' }}
        >
          Look at them
        </Link>
        <Button onClick={onReplay}>Replay</Button>
      </div>
    </li>
  )
}
