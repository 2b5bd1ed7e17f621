import { useEffect, useRef } from 'preact/hooks'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { count } from '../data/format.ts'
import { route, setParams, urlOf } from '../data/route.ts'
import { seesContent } from '../data/session.ts'
import { Badge, ConditionBadge } from '../parts/badge.tsx'
import { Choice } from '../parts/form.tsx'
import { DestinationLink, Link, MessageLink } from '../parts/link.tsx'
import { Page, Part } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Records } from '../parts/records.tsx'
import { FindEvents } from './find-events.tsx'
import { deliveryWords } from '../data/words.ts'

/** Finds messages and destinations by one text, and searches the delivery log by conditions. */
export function FindPage() {
  const q = route.value.params.get('q') ?? ''
  return (
    <Page title="Find">
      {q === '' ? null : <Found key={q} q={q} />}
      <LogSearchPart />
      {seesContent.value ? <FindEvents /> : null}
    </Page>
  )
}

function Found({ q }: { q: string }) {
  const { asked: message } = useAsk(`message-${q}`, (reading) => api.readMessage(q, reading), 5_000)
  const { asked: list } = useAsk(`search-${q}`, (reading) =>
    api.listDestinations({ search: hostOf(q), limit: 20 }, reading),
  )
  const destinations = list.value.value?.destinations ?? []
  const hasNoMessage = message.value.problem?.status === 404
  return (
    <>
      <Part title={`Message ${q}`}>
        {hasNoMessage ? (
          <Empty title="The delivery log has no message with this id.">
            It may be older than the log, or still be in its source. Or search for it as a{' '}
            <a href={urlOf('find', { user: q, hours: '168' })}>user</a>, or as a{' '}
            <a href={urlOf('find', { value: q, hours: '168' })}>value</a> such as an order number: this is
            written to the audit trail.
          </Empty>
        ) : (
          <NotYet asked={message.value} />
        )}
        {message.value.value === undefined ? null : (
          <>
            <p>
              <MessageLink id={q}>Its timeline, with each try and answer</MessageLink>
            </p>
            <ul class="rows" aria-label="Deliveries">
              {message.value.value.deliveries.map(({ destination, state }) => (
                <li key={destination}>
                  <Badge {...deliveryWords[state]} />
                  {destination === null ? 'to no destination' : <DestinationLink id={destination} />}
                </li>
              ))}
            </ul>
          </>
        )}
      </Part>
      <Part title="Destinations">
        <NotYet asked={list.value} />
        {list.value.value === undefined ? null : destinations.length === 0 ? (
          <p class="quiet">None has this in its id, its name or its host.</p>
        ) : (
          <ul class="rows" aria-label="Destinations">
            {destinations.map(({ id, name, health }) => (
              <li key={id}>
                <ConditionBadge condition={health.condition} />
                <DestinationLink id={id} name={name} />
                <span class="grow quiet">{health.why}</span>
              </li>
            ))}
          </ul>
        )}
        {(list.value.value?.total ?? 0) > destinations.length ? (
          <Link to="destinations" params={{ search: hostOf(q) }}>
            All {count(list.value.value?.total)}
          </Link>
        ) : null}
      </Part>
    </>
  )
}

/** Destinations are found by the host of a URL: the path may be secret, so the list doesn't have it. */
function hostOf(q: string): string {
  return URL.canParse(q) && /^https?:/.test(q) ? new URL(q).origin : q.slice(0, 200)
}

const times = [
  { value: '1', name: 'Last hour' },
  { value: '24', name: 'Last 24 hours' },
  { value: '168', name: 'Last week' },
  { value: '720', name: 'Last 30 days' },
] as const
const kinds = [
  { value: '', name: 'Everything' },
  { value: 'failed', name: 'Failures' },
  { value: 'attempted', name: 'Requests' },
  { value: 'dead', name: 'Dead letters' },
  { value: 'parked', name: 'Waiting' },
  { value: 'filtered', name: 'Filtered' },
] as const

const conditions = ['destination', 'source', 'user', 'value', 'reason', 'status'] as const

function LogSearchPart() {
  const { params } = route.value
  const given = (name: string): string => params.get(name) ?? ''
  const hours = times.find(({ value }) => value === given('hours'))?.value ?? '1'
  const what = kinds.find(({ value }) => value === given('what'))?.value ?? ''
  const isAsked = conditions.some((name) => given(name) !== '') || what !== '' || given('q') === ''
  const results = useRef<HTMLDivElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    // A link that was followed to these results is gone. The focus goes on where it has led.
    if (!isFirst.current && document.activeElement === document.body)
      results.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [params])
  return (
    <Part title="The delivery log">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault()
          const data = new FormData(event.currentTarget)
          setParams(Object.fromEntries(conditions.map((name) => [name, textIn(data, name)])))
        }}
      >
        <ConditionFields key={conditions.map(given).join('\n')} given={given} />
        <Choice label="What" value={what} options={kinds} onChange={(next) => setParams({ what: next })} />
        <Choice label="Time" value={hours} options={times} onChange={(next) => setParams({ hours: next })} />
        <button type="submit" data-tone="main">
          Search
        </button>
      </form>
      <div ref={results} role="group" aria-label="Results" tabIndex={-1}>
        {isAsked ? <LogResults search={searchOf({ given, hours, what })} /> : null}
      </div>
    </Part>
  )
}

const titles: Readonly<Partial<Record<(typeof conditions)[number], string>>> = {
  user: 'A search by user is written to the audit trail',
  value:
    'The value of a field that attempts.index names, such as an order number. The search is written to the audit trail',
}

function ConditionFields({ given }: { given: (name: string) => string }) {
  const names = {
    destination: 'Destination',
    source: 'Source',
    user: 'User id',
    value: 'Value',
    reason: 'Reason',
    status: 'Status',
  }
  return (
    <>
      {conditions.map((name) => (
        <div key={name} class="field">
          <label for={`condition-${name}`}>{names[name]}</label>
          <input
            id={`condition-${name}`}
            name={name}
            defaultValue={given(name)}
            spellcheck={false}
            autocomplete="off"
            {...(name === 'status' ? { inputMode: 'numeric' as const, pattern: '[0-9]{3}' } : {})}
            {...(name in titles ? { title: titles[name] } : {})}
          />
        </div>
      ))}
    </>
  )
}

function textIn(data: FormData, name: string): string | undefined {
  const value = data.get(name)
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

type Given = { given: (name: string) => string; hours: string; what: (typeof kinds)[number]['value'] }

function searchOf({ given, hours, what }: Given): api.LogSearch & { hours: string } {
  const text = (name: string): string | undefined => (given(name) === '' ? undefined : given(name))
  return {
    hours,
    destination: text('destination'),
    source: text('source'),
    user: text('user'),
    value: text('value'),
    reason: text('reason'),
    status: text('status') === undefined ? undefined : Number(given('status')),
    ...(what === 'failed' ? { isFailed: true } : {}),
    ...(what === '' || what === 'failed' ? {} : { kinds: [what] }),
    cursor: text('cursor'),
    from: text('from'),
  }
}

function LogResults({ search }: { search: api.LogSearch & { hours: string } }) {
  const { asked } = useAsk(JSON.stringify(search), (reading) => {
    const { hours, from = new Date(Date.now() - Number(hours) * 3_600_000).toISOString(), ...rest } = search
    return api.searchLog({ ...rest, from, limit: 50 }, reading)
  })
  const page = asked.value.value
  return (
    <>
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.records.length === 0 ? (
        <Empty title="Nothing fits in this time.">Choose a longer time, or fewer conditions.</Empty>
      ) : (
        <>
          <Records records={page.records} hasDestination={search.destination === undefined} />
          <Pager cursor={page.cursor} more={{ from: page.from }} />
        </>
      )}
    </>
  )
}
