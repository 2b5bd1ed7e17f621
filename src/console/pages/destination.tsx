import { useEffect } from 'preact/hooks'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { useLive } from '../data/live.ts'
import { route, urlOf } from '../data/route.ts'
import { isForAll, may } from '../data/session.ts'
import { isBeingRead, noteRead } from '../data/stored.ts'
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

/** A destination: its state, and views by the parameter `view`. */
export function DestinationPage() {
  const { params } = route.value
  const id = params.get('id') ?? ''
  const view = views.find(({ value }) => value === params.get('view'))?.value ?? 'overview'
  const isNew = isBeingRead(id)
  const { asked, again } = useAsk(
    `health-${id}`,
    (reading) => api.readHealth(id, reading),
    isNew ? 500 : 3_000,
  )
  useLive({ destination: id }, again)
  const health = asked.value.value
  const isRead = health !== undefined
  useEffect(() => {
    if (isRead) noteRead(id)
  }, [isRead, id])
  const isMissing = !isRead && asked.value.problem?.status === 404
  return (
    <Page
      title={health?.name ?? id}
      aside={health === undefined ? undefined : <DestinationActions health={health} />}
    >
      {isMissing && isNew ? (
        <p class="quiet" role="status">
          Being stored…
        </p>
      ) : (
        <NotYet asked={asked.value} />
      )}
      {isMissing && !isNew ? (
        <Empty title="It may have been removed.">
          <a href={urlOf('history')}>History</a> says what was changed, and undoes it.
        </Empty>
      ) : null}
      {health === undefined ? null : (
        <>
          <p class="lead">
            <ConditionBadge condition={health.health.condition} />{' '}
            {health.health.since === null ? null : (
              <span class="quiet">
                <Ago at={health.health.since} />
              </span>
            )}{' '}
            {health.health.why} {health.name === id ? null : <span class="quiet mono">{id}</span>}
          </p>
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

/** Tells whether the session may see a view. */
function isShown(view: View): boolean {
  if (view === 'secret') return may('admin', 'rotate')
  return view !== 'history' || isForAll.value
}
