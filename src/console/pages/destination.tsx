import { useEffect } from 'preact/hooks'
import * as api from '../data/api.ts'
import { type Asked, useAsk } from '../data/asking.ts'
import { useLiveHealth } from '../data/live.ts'
import { route, urlOf } from '../data/route.ts'
import { isOffered } from '../data/offered.ts'
import { isForAll, isInFile, may } from '../data/session.ts'
import { isBeingRead, noteRead } from '../data/stored.ts'
import type { DestinationHealth } from '../data/types.ts'
import { ConditionBadge } from '../parts/badge.tsx'
import { Link } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Ago } from '../parts/time.tsx'
import { DestinationAccess } from './destination-access.tsx'
import { DestinationActions } from './destination-actions.tsx'
import { DestinationAttempts } from './destination-attempts.tsx'
import { DestinationHistory } from './destination-history.tsx'
import { DestinationOverview } from './destination-overview.tsx'
import { DestinationSecret } from './destination-secret.tsx'
import { DestinationSettings } from './destination-settings.tsx'

const views = [
  { value: 'overview', name: 'Overview' },
  { value: 'attempts', name: 'Attempts' },
  { value: 'access', name: 'Logins and keys' },
  { value: 'settings', name: 'Settings' },
  { value: 'secret', name: 'Secret' },
  { value: 'history', name: 'History' },
] as const
type View = (typeof views)[number]['value']

/** Asks how a destination is, oftener while it is being stored. */
function useHealth(id: string) {
  const isNew = isBeingRead(id)
  const asking = useAsk(`health-${id}`, (reading) => api.readHealth(id, reading), isNew ? 500 : 3_000)
  useLiveHealth(id, asking)
  const { asked } = asking
  const isRead = asked.value.value !== undefined
  useEffect(() => {
    if (isRead) noteRead(id)
  }, [isRead, id])
  return { asked: asked.value, isNew }
}

/** A destination: its state, and views by the parameter `view`. */
export function DestinationPage() {
  const { params } = route.value
  const id = params.get('id') ?? ''
  const view = views.find(({ value }) => value === params.get('view'))?.value ?? 'overview'
  const { asked, isNew } = useHealth(id)
  const health = asked.value
  return (
    <Page
      title={health?.name ?? id}
      aside={health === undefined ? undefined : <DestinationActions health={health} />}
    >
      {health === undefined ? <NotThere asked={asked} isNew={isNew} /> : null}
      {health === undefined ? null : (
        <>
          <State health={health} />
          <nav class="tabs" aria-label="Views of the destination">
            {views
              .filter(({ value }) => isShown(value))
              .map(({ value, name }) => (
                <Link
                  key={value}
                  to="destination"
                  params={{ id, view: value === 'overview' ? undefined : value }}
                  isCurrent={view === value}
                >
                  {name}
                </Link>
              ))}
          </nav>
          {view === 'overview' ? <DestinationOverview health={health} /> : null}
          {view === 'attempts' ? <DestinationAttempts id={id} /> : null}
          {view === 'access' ? <DestinationAccess health={health} /> : null}
          {view === 'settings' ? (
            <DestinationSettings key={id} id={id} hookIds={health.hooks.map((hook) => hook.id)} />
          ) : null}
          {view === 'secret' ? (
            <DestinationSecret key={id} id={id} endsAt={health.health.secretEndsAt} />
          ) : null}
          {view === 'history' ? <DestinationHistory id={id} /> : null}
        </>
      )}
    </Page>
  )
}

function NotThere({ asked, isNew }: { asked: Asked<DestinationHealth>; isNew: boolean }) {
  if (asked.problem?.status !== 404) return <NotYet asked={asked} />
  if (isNew)
    return (
      <p class="quiet" role="status">
        Being stored…
      </p>
    )
  return (
    <>
      <NotYet asked={asked} />
      <Empty title="It may have been removed.">
        {isOffered('history') ? (
          <>
            <a href={urlOf('history')}>History</a> says what was changed, and undoes it.
          </>
        ) : undefined}
      </Empty>
    </>
  )
}

function State({ health: { destination, name, state, health } }: { health: DestinationHealth }) {
  return (
    <p class="lead">
      <ConditionBadge condition={health.condition} />{' '}
      {health.since === null ? null : (
        <span class="quiet">
          <Ago at={health.since} />
        </span>
      )}{' '}
      {health.why} <Switched id={destination} state={state} />
      {name === destination ? null : <span class="quiet mono">{destination}</span>}
    </p>
  )
}

/** Says who has paused a destination or switched it off, as far as its history says it to the session. */
function Switched({ id, state }: { id: string; state: DestinationHealth['state'] }) {
  if ((state !== 'paused' && state !== 'off') || !isForAll.value || isInFile.value) return null
  return <SwitchedBy key={state} id={id} state={state} />
}

function SwitchedBy({ id, state }: { id: string; state: string }) {
  const { asked } = useAsk(`switched-${id}-${state}`, (reading) =>
    api.readHistory({ object: `destination/${id}`, limit: 20 }, reading),
  )
  const change = asked.value.value?.changes.find(({ fields }) =>
    fields?.some(({ field, after }) => field === 'state' && after === state),
  )
  if (change === undefined) return null
  return (
    <span>
      by <strong>{change.by}</strong> <Ago at={change.at} /> (
      <Link to="destination" params={{ id, view: 'history' }}>
        its history
      </Link>
      ){' '}
    </span>
  )
}

/** Tells whether the session may see a view. */
function isShown(view: View): boolean {
  if (view === 'secret') return may('admin', 'rotate')
  return view !== 'history' || isForAll.value
}
