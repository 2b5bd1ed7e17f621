import { useMemo } from 'preact/hooks'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { now } from '../data/clock.ts'
import { count, duration, millis, percent, shortCount } from '../data/format.ts'
import { type CountedRange, latencyOf, minuteMs } from '../data/minutes.ts'
import { may } from '../data/session.ts'
import type { DestinationHealth, GroupedStats, HookState } from '../data/types.ts'
import { stateWords } from '../data/words.ts'
import { Badge } from '../parts/badge.tsx'
import { Chart, type Line } from '../parts/chart.tsx'
import { Link } from '../parts/link.tsx'
import { LatencyChart } from '../parts/minute-charts.tsx'
import { Figure, Part } from '../parts/page.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Ago, Time } from '../parts/time.tsx'

/**
 * Each question is a search of the delivery log, and many such pages may be open, so it is asked this rarely.
 */
const statsEveryMs = 20_000
const hourMs = 3_600_000

/** State and backlog, the URLs, and the last answers. */
export function DestinationOverview({ health }: { health: DestinationHealth }) {
  const id = health.destination
  const { asked } = useAsk(
    `answers-${id}`,
    (reading) =>
      api.readSteps(
        {
          from: new Date(Date.now() - hourMs).toISOString(),
          step: '1m',
          groupBy: 'status',
          destination: id,
          top: 20,
        },
        reading,
      ),
    statsEveryMs,
  )
  const stats = asked.value.value
  const { asked: counted } = useAsk(
    `minutes-${id}`,
    (reading) =>
      api.readMinutes({ from: new Date(Date.now() - hourMs).toISOString(), destination: id }, reading),
    statsEveryMs,
  )
  const range = counted.value.value
  return (
    <>
      {health.isSigned ? null : <Unsigned id={id} />}
      <dl class="figures">
        <HealthFigures health={health} />
        <LatencyFigure range={range} timeoutMs={health.timeoutMs} />
        <BatchFigure batch={health.batch} />
      </dl>
      <Part title="URLs">
        <ul class="rows" aria-label="URLs">
          {health.hooks.map((hook) => (
            <HookRow key={hook.id} hook={hook} />
          ))}
        </ul>
      </Part>
      <Part title="Last hour">
        <NotYet asked={asked.value} />
        {stats === undefined ? null : <Answers id={id} stats={stats} range={range} />}
      </Part>
    </>
  )
}

function HealthFigures({ health: { state, health } }: { health: DestinationHealth }) {
  const { waiting, oldestWaitingSince, drainedInSeconds, inFlightLimit, perSecondLimit } = health
  return (
    <>
      <Figure name="Switched" value={stateWords[state]} />
      <Figure
        name="Waiting"
        value={count(waiting)}
        note={
          oldestWaitingSince === null ? (
            'for their turn'
          ) : (
            <>
              oldest <Ago at={oldestWaitingSince} />
            </>
          )
        }
      />
      <Figure
        name="Drained in"
        value={waiting === 0 ? '—' : duration(drainedInSeconds)}
        note="at the present rate"
      />
      <Figure
        name="Retrying"
        value={count(health.retrying)}
        note={
          health.retrying === health.retryingAtMost
            ? 'have failed, and wait for their next try'
            : health.retryingAtMost === null
              ? 'or more wait for their next try'
              : `to ${count(health.retryingAtMost)} wait for their next try`
        }
      />
      <Figure name="Next try" value={<Ago at={health.nextTryAt} />} note="of what has failed" />
      <Figure
        name="Requests at once"
        value={count(inFlightLimit)}
        note={health.isLimitLowered === true ? 'learned: the endpoint takes no more' : 'at most, all workers'}
      />
      <Figure name="Requests a second" value={count(perSecondLimit)} note="at most, all workers" />
      {health.secretEndsAt === null ? null : (
        <Figure
          name="Old secret ends"
          value={<Ago at={health.secretEndsAt} />}
          note={<Time at={health.secretEndsAt} />}
        />
      )}
    </>
  )
}

/** Whoever may make a secret is told that there is none. */
function Unsigned({ id }: { id: string }) {
  if (!may('admin', 'rotate')) return null
  return (
    <p class="note" role="note">
      Requests are not signed, so the endpoint can not tell whether they come from you.{' '}
      <Link to="destination" params={{ id, view: 'secret' }}>
        Make a secret
      </Link>
      , and give it to the endpoint.
    </p>
  )
}

type LatencyProps = { range: CountedRange | undefined; timeoutMs: number | null }

/** How long the requests of the slowest of the last minutes took, or of the last minute that had some. */
function LatencyFigure({ range, timeoutMs }: LatencyProps) {
  const minutes = range?.minutes ?? []
  const recent = minutes.filter(({ minute }) => Date.parse(minute) >= now.value - 6 * minuteMs)
  const latency = latencyOf(recent.length === 0 ? minutes.slice(-1) : recent)
  const most = timeoutMs === null ? '' : `, allowed ${millis(timeoutMs)}`
  return (
    <Figure
      name="Latency, 95 %"
      value={millis(latency?.p95)}
      note={
        latency === undefined
          ? 'of the last minutes'
          : `half ${millis(latency.p50)}, 99 % ${millis(latency.p99)}${most}`
      }
    />
  )
}

function BatchFigure({ batch }: Pick<DestinationHealth, 'batch'>) {
  if (batch === null) return null
  const { maxMessages, maxWait } = batch
  return (
    <Figure
      name="Batches"
      value={maxMessages === undefined ? '—' : `up to ${count(maxMessages)}`}
      note={`messages a request, which wait ${maxWait ?? ''} for others`}
    />
  )
}

function HookRow({ hook }: { hook: HookState }) {
  const { failing } = hook
  return (
    <li>
      {hook.isGone ? <Badge tone="bad" word="gone (410)" /> : null}
      {!hook.isGone && failing !== null ? (
        <Badge tone="bad" word={failing.loginProblem === null ? 'failing' : 'login fails'} />
      ) : null}
      {!hook.isGone && failing === null ? <Badge tone="good" word="no failures" /> : null}
      <span class="mono">{hook.origin}</span>
      <span class="quiet mono">{hook.id}</span>
      {hook.isGone ? (
        <span>It gets no requests until it is edited or the destination is resumed.</span>
      ) : null}
      {failing === null ? null : (
        <span class="grow">
          since <Ago at={failing.since} />
          {failing.isBreakerOpen ? '; breaker open: only single tries go out' : ''}
          {failing.answers.map(({ outcome, count: times }) => (
            <span key={outcome}>
              ; {outcome} × {count(times)}
            </span>
          ))}
          {failing.lastSuccessAt === null ? null : (
            <>
              ; last success <Ago at={failing.lastSuccessAt} />
            </>
          )}
        </span>
      )}
    </li>
  )
}

type AnswersProps = { id: string; stats: GroupedStats; range: CountedRange | undefined }

function Answers({ id, stats, range }: AnswersProps) {
  const shown = useMemo(() => linesOf(stats), [stats])
  if (stats.groups.length === 0)
    return (
      <Empty title="No requests in the last hour.">
        Send a test with the button above, or look at{' '}
        <Link to="find" params={{ destination: id }}>
          earlier ones
        </Link>
        .
      </Empty>
    )
  const rows = stats.groups.map((group) => ({
    key: group.key,
    good: sum(group.succeeded),
    bad: sum(group.failed),
  }))
  const all = rows.reduce((total, { good, bad }) => total + good + bad, 0)
  return (
    <div class="charts">
      <Chart title="Requests a minute" times={shown.times} lines={shown.lines} write={shortCount} />
      {latencyOf(range?.minutes ?? []) === undefined || range === undefined ? null : (
        <LatencyChart {...range} />
      )}
      <table class="narrow">
        <caption>Answers</caption>
        <thead>
          <tr>
            <th scope="col">Answer</th>
            <th scope="col" class="number">
              Requests
            </th>
            <th scope="col" class="number">
              Share
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, good, bad }) => (
            <tr key={key}>
              <th scope="row">
                <Badge tone={bad > 0 ? 'bad' : 'good'} word={key} />
              </th>
              <td class="number">{count(good + bad)}</td>
              <td class="number">{percent((good + bad) / all)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function linesOf({ times, groups }: GroupedStats): { times: readonly number[]; lines: readonly Line[] } {
  const total = (of: (group: GroupedStats['groups'][number]) => readonly number[]): readonly number[] =>
    times.map((_, at) => groups.reduce((all, group) => all + (of(group)[at] ?? 0), 0))
  return {
    times: times.map((time) => Date.parse(time) / 1000),
    lines: [
      { name: 'accepted', colour: '--good', values: total(({ succeeded }) => succeeded) },
      { name: 'failed', colour: '--bad', values: total(({ failed }) => failed) },
    ],
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
