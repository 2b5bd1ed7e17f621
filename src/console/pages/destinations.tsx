import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { type Asked, useAsk } from '../data/asking.ts'
import { count, duration } from '../data/format.ts'
import { route, setParams } from '../data/route.ts'
import { isInFile, may } from '../data/session.ts'
import { useSettled } from '../data/settled.ts'
import type { BulkOrder, GroupedStats, ListedDestination } from '../data/types.ts'
import { ConditionBadge } from '../parts/badge.tsx'
import { Button, Choice, Field } from '../parts/form.tsx'
import { InFile } from '../parts/in-file.tsx'
import { DestinationLink, Link } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { SelectionBar } from '../parts/selection-bar.tsx'
import { Spark } from '../parts/spark.tsx'
import { Ago } from '../parts/time.tsx'

const pageSize = 50
/** The destinations with most requests that have a small chart. With more, one answer would be large. */
const charted = 500

const states = [
  { value: '', name: 'All states' },
  { value: 'failing', name: 'Failing' },
  { value: 'gone', name: 'Gone (410)' },
  { value: 'auto_paused', name: 'Paused by Sluice' },
  { value: 'paced', name: 'Paced' },
  { value: 'waiting', name: 'With waiting messages' },
  { value: 'paused', name: 'Paused' },
  { value: 'off', name: 'Off' },
  { value: 'unknown', name: 'Unknown' },
  { value: 'healthy', name: 'Healthy' },
] as const satisfies readonly { value: api.ListState | ''; name: string }[]

const sorts = [
  { value: 'worst', name: 'Worst first' },
  { value: 'id', name: 'By id' },
] as const

export function DestinationsPage() {
  const { params } = route.value
  const given = (name: string): string => params.get(name) ?? ''
  const sort: 'id' | 'worst' = given('sort') === 'id' ? 'id' : 'worst'
  const [search, label] = [useSettled(given('search')), useSettled(given('label'))]
  const query = {
    search,
    state: states.find(({ value }) => value === given('state'))?.value ?? '',
    // Half a label isn't one yet.
    label: /^[^=]+=.+$/.test(label) ? label : '',
    source: given('source'),
    sort,
    cursor: given('cursor'),
    limit: pageSize,
  }
  const { asked } = useAsk(JSON.stringify(query), (reading) => api.listDestinations(query, reading), 5_000)
  const { asked: stats } = useAsk('sparks', readSparks, 60_000)
  const list = asked.value.value
  const ticks = useTicks()
  return (
    <Page
      title="Destinations"
      aside={
        !may('admin') ? undefined : isInFile.value ? (
          <Button disabled>Add a destination</Button>
        ) : (
          <Link to="new-destination" class="button">
            Add a destination
          </Link>
        )
      }
    >
      <InFile />
      <Filters given={given} state={query.state} sort={sort} />
      <NotYet asked={asked.value} />
      {list === undefined ? null : list.destinations.length === 0 ? (
        <NoDestinations
          isFiltered={query.search !== '' || query.state !== '' || query.label !== '' || query.source !== ''}
        />
      ) : (
        <>
          <SelectionBar
            ticked={ticks.ticked}
            fitting={fittingOf(query)}
            total={list.total}
            onClear={ticks.clear}
          />
          <List
            destinations={list.destinations}
            stats={stats.value}
            ticks={may('operate') ? ticks : undefined}
          />
          <Pager cursor={list.cursor} text={`${count(list.total)} in all`} />
        </>
      )}
    </Page>
  )
}

type FilterProps = { given: (name: string) => string; state: api.ListState | ''; sort: 'id' | 'worst' }

function Filters({ given, state, sort }: FilterProps) {
  return (
    <div class="filters">
      <Field
        label="Search"
        value={given('search')}
        placeholder="Id, name or host"
        onInput={(search) => setParams({ search }, { replace: true })}
      />
      <Choice label="State" value={state} options={states} onChange={(next) => setParams({ state: next })} />
      <Field
        label="Label"
        value={given('label')}
        placeholder="tenant=acme"
        onInput={(text) => setParams({ label: text }, { replace: true })}
      />
      <Choice label="Order" value={sort} options={sorts} onChange={(next) => setParams({ sort: next })} />
    </div>
  )
}

function NoDestinations({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return <Empty title="No destination fits.">Search for a part of its id, its name or its host.</Empty>
  return (
    <Empty title="There are no destinations yet.">
      {!may('admin') ? (
        'Whoever has the right admin adds them.'
      ) : isInFile.value ? (
        'The file of the catalog has none.'
      ) : (
        <Link to="new-destination">Add the first one.</Link>
      )}
    </Empty>
  )
}

function readSparks(reading: { readonly signal: AbortSignal }) {
  const from = new Date(Date.now() - 24 * 3_600_000).toISOString()
  return api.readSteps({ from, step: '1h', groupBy: 'destination', top: charted }, reading)
}

/** Which rows are ticked. */
type Ticks = {
  readonly ticked: ReadonlySet<string>
  readonly tick: (ids: readonly string[], isOn: boolean) => void
  readonly clear: () => void
}

function useTicks(): Ticks {
  const ticked = useSignal<ReadonlySet<string>>(new Set())
  return {
    ticked: ticked.value,
    tick(ids, isOn) {
      const next = new Set(ticked.value)
      for (const id of ids) {
        if (isOn) next.add(id)
        else next.delete(id)
      }
      ticked.value = next
    },
    clear() {
      ticked.value = new Set()
    },
  }
}

/** Returns the selection that the filters of the list make. `undefined`: none is set. */
function fittingOf({ search, state, label, source }: api.ListQuery): BulkOrder['selection'] | undefined {
  const given = Object.entries({ search, state, label, source }).filter(
    ([, value]) => value !== undefined && value !== '',
  )
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

type ListProps = {
  destinations: readonly ListedDestination[]
  stats: Asked<GroupedStats>
  /** `undefined`: the session may do nothing to many. */
  ticks: Ticks | undefined
}

function List({ destinations, stats, ticks }: ListProps) {
  const ids = destinations.map(({ id }) => id)
  return (
    <div class="scroll" role="region" aria-label="Destinations" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            {ticks === undefined ? null : (
              <th scope="col" class="kept">
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  checked={ids.every((id) => ticks.ticked.has(id))}
                  onChange={(event) => ticks.tick(ids, event.currentTarget.checked)}
                />
              </th>
            )}
            <th scope="col">Destination</th>
            <th scope="col">State</th>
            <th scope="col">Last 24 hours</th>
            <th scope="col" class="number">
              Waiting
            </th>
            <th scope="col" class="number">
              Drained in
            </th>
            <th scope="col">Hosts</th>
            <th scope="col">Labels</th>
          </tr>
        </thead>
        <tbody>
          {destinations.map((one) => (
            <Row key={one.id} one={one} stats={stats.value} ticks={ticks} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

type RowProps = { one: ListedDestination; stats: GroupedStats | undefined; ticks: Ticks | undefined }

function Row({ one, stats, ticks }: RowProps) {
  const { health } = one
  const group = stats?.groups.find(({ key }) => key === one.id)
  return (
    <tr>
      {ticks === undefined ? null : (
        <td>
          <input
            type="checkbox"
            aria-label={`Select ${one.id}`}
            checked={ticks.ticked.has(one.id)}
            onChange={(event) => ticks.tick([one.id], event.currentTarget.checked)}
          />
        </td>
      )}
      <th scope="row">
        <DestinationLink id={one.id} name={one.name} />
        {one.name === one.id ? null : <div class="quiet mono">{one.id}</div>}
      </th>
      <td>
        <ConditionBadge condition={health.condition} />{' '}
        <span class="quiet">
          {health.since === null || health.condition === 'healthy' ? null : <Ago at={health.since} />}
        </span>
        {health.why === '' ? null : <div class="why">{health.why}</div>}
      </td>
      <td>
        {group === undefined ? (
          <span class="quiet">{stats === undefined || stats.others > 0 ? '—' : 'none'}</span>
        ) : (
          <Spark succeeded={group.succeeded} failed={group.failed} />
        )}
      </td>
      <td class="number" data-name="waiting">
        {count(health.waiting)}
      </td>
      <td class="number" data-name="drained in">
        {health.waiting === 0 ? '' : duration(health.drainedInSeconds)}
      </td>
      <td>
        {one.hooks.map(({ id, origin }) => (
          <div key={id} class="mono cut" title={origin}>
            {origin}
          </div>
        ))}
      </td>
      <td>
        {Object.entries(one.labels).map(([key, value]) => (
          <Link key={key} to="destinations" params={{ label: `${key}=${value}` }} class="label">
            {key}={value}
          </Link>
        ))}
      </td>
    </tr>
  )
}
