import * as api from '../data/api.ts'
import type { Answer } from '../data/answer.ts'
import { useAsk } from '../data/asking.ts'
import { now } from '../data/clock.ts'
import { count, duration, millis, percent } from '../data/format.ts'
import { latencyOf, minuteMs } from '../data/minutes.ts'
import { route, setParams } from '../data/route.ts'
import { isForAll } from '../data/session.ts'
import type { Attention as Whole, ListedDestination, LogMinute, Status } from '../data/types.ts'
import { ConditionBadge } from '../parts/badge.tsx'
import { Choice } from '../parts/form.tsx'
import { DestinationLink, Link } from '../parts/link.tsx'
import { LatencyChart, RequestChart } from '../parts/minute-charts.tsx'
import { Figure, Page, Part } from '../parts/page.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Ago } from '../parts/time.tsx'

/** The command to run next is for terminals. */
type Attention = Omit<Whole, 'next'>

export function NowPage() {
  const hours = route.value.params.get('hours') === '24' ? 24 : 1
  const { asked } = useAsk(
    `minutes-${hours}`,
    (reading) =>
      api.readMinutes({ from: new Date(Date.now() - hours * 60 * minuteMs).toISOString() }, reading),
    hours === 1 ? 5_000 : 60_000,
  )
  const minutes = asked.value.value
  return (
    <Page
      title="Now"
      aside={
        <Choice
          label="Time"
          isLabelHidden
          value={String(hours)}
          options={[
            { value: '1', name: 'Last hour' },
            { value: '24', name: 'Last 24 hours' },
          ]}
          onChange={(value) => setParams({ hours: value === '1' ? undefined : value })}
        />
      }
    >
      {isForAll.value ? (
        <WholePicture minutes={minutes?.minutes} />
      ) : (
        <PictureOfScope minutes={minutes?.minutes} />
      )}
      <Part title="Requests">
        <NotYet asked={asked.value} />
        {minutes === undefined ? null : <Charts {...minutes} />}
      </Part>
    </Page>
  )
}

type Minutes = { minutes: readonly LogMinute[] | undefined }

function WholePicture({ minutes }: Minutes) {
  const { asked } = useAsk('status', api.readStatus, 5_000)
  const status = asked.value.value
  return (
    <>
      <NotYet asked={asked.value} />
      <dl class="figures many">
        <RequestFigures minutes={minutes} />
        {status === undefined ? null : <StatusFigures status={status} />}
      </dl>
      {status === undefined ? null : (
        <>
          <AttentionList list={status.attention} total={status.needAttention} />
          {status.unknown.length === 0 ? null : (
            <Part title="What is not known">
              <ul>
                {status.unknown.map((text) => (
                  <li key={text}>{text}</li>
                ))}
              </ul>
            </Part>
          )}
        </>
      )}
    </>
  )
}

/** For a token with a scope, which may not ask for the status of the installation. */
function PictureOfScope({ minutes }: Minutes) {
  const { asked } = useAsk('worst', worst, 5_000)
  const list = asked.value.value
  return (
    <>
      <NotYet asked={asked.value} />
      <dl class="figures">
        <RequestFigures minutes={minutes} />
      </dl>
      {list === undefined ? null : <AttentionList list={list} total={list.length} />}
    </>
  )
}

async function worst(reading: { readonly signal: AbortSignal }): Promise<Answer<readonly Attention[]>> {
  const answer = await api.listDestinations({ sort: 'worst', limit: 10 }, reading)
  if (!answer.ok) return answer
  return { ...answer, value: answer.value.destinations.filter(needsAttention).map(attentionOf) }
}

function needsAttention({ health }: ListedDestination): boolean {
  return health.condition !== 'healthy' && health.condition !== 'off'
}

function attentionOf({ id, name, health }: ListedDestination): Attention {
  return { destination: id, name, ...health }
}

/** The last five whole minutes, so that one slow minute doesn't decide. */
function RequestFigures({ minutes = [] }: Minutes) {
  const to = Math.floor(now.value / minuteMs) * minuteMs
  const last = minutes.filter(({ minute }) => Date.parse(minute) >= to - 5 * minuteMs)
  const total = (of: (minute: LogMinute) => number): number =>
    last.reduce((sum, minute) => sum + of(minute), 0)
  const succeeded = total((minute) => minute.succeeded)
  const failed = total((minute) => minute.failed)
  const dead = minutes.reduce((sum, minute) => sum + minute.dead, 0)
  const latency = latencyOf(last)
  const all = succeeded + failed
  return (
    <>
      <Figure name="Out" value={count(Math.round(succeeded / 5))} note="accepted a minute" />
      <Figure
        name="Success"
        value={all === 0 ? '—' : percent(succeeded / all)}
        note={`${count(failed)} failed in 5 min`}
      />
      <Figure name="Latency" value={millis(latency?.p95)} note="95 % are faster" />
      <Figure
        name="Dead letters"
        value={dead === 0 ? '0' : <Link to="dead-letters">{count(dead)}</Link>}
        note="in the time shown"
      />
    </>
  )
}

function StatusFigures({ status }: { status: Status }) {
  const { lag, waiting, retrying, units, workers, destinations } = status
  const lagNote =
    lag?.oldestAt === null || lag === null
      ? 'records to settle'
      : `oldest ${duration((now.value - Date.parse(lag.oldestAt)) / 1000)}`
  const coverage = units === null ? 'no worker tells' : `tell of ${units.told} of ${units.of} parts`
  return (
    <>
      <Figure name="Lag" value={count(lag?.records)} note={lagNote} />
      <Figure name="Queued" value={count(waiting)} note="wait for their turn" />
      <Figure name="Retrying" value={count(retrying)} note="wait for a retry" />
      <Figure name="Workers" value={count(workers.length)} note={coverage} />
      <Figure
        name="Destinations"
        value={<Link to="destinations">{count(destinations.total)}</Link>}
        note={`${count(destinations.healthy)} healthy`}
      />
    </>
  )
}

function AttentionList({ list, total }: { list: readonly Attention[]; total: number }) {
  return (
    <Part
      title="Needs attention"
      aside={
        total > list.length ? (
          <Link to="destinations" params={{ sort: 'worst' }}>
            All {count(total)}
          </Link>
        ) : undefined
      }
    >
      {list.length === 0 ? (
        <Empty title="Nothing needs attention.">
          Destinations that fail, wait or were paused show up here.
        </Empty>
      ) : (
        <ul class="rows" aria-label="Destinations that need attention">
          {list.map((one) => (
            <li key={one.destination}>
              <ConditionBadge condition={one.condition} />
              <DestinationLink id={one.destination} name={one.name} />
              <span class="grow">{one.why}</span>
              <span class="quiet">{one.since === null ? null : <Ago at={one.since} />}</span>
            </li>
          ))}
        </ul>
      )}
    </Part>
  )
}

function Charts({ from, to, minutes }: { from: string; to: string; minutes: readonly LogMinute[] }) {
  if (minutes.length === 0)
    return (
      <Empty title="No requests in this time.">
        Send a test from the page of a destination, or choose a longer time above.
      </Empty>
    )
  return (
    <div class="charts">
      <RequestChart from={from} to={to} minutes={minutes} />
      <LatencyChart from={from} to={to} minutes={minutes} />
    </div>
  )
}
