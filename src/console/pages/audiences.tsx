import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { count } from '../data/format.ts'
import type { AudienceDestination, AudienceSpace } from '../data/types.ts'
import type { Tone } from '../data/words.ts'
import { Badge } from '../parts/badge.tsx'
import { DestinationLink, Link } from '../parts/link.tsx'
import { Figure, Page } from '../parts/page.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Ago } from '../parts/time.tsx'

/** The spaces: how many users each audience has, and which destinations lack something. */
export function AudiencesPage() {
  const { asked } = useAsk('audiences', api.listAudiences, 5_000)
  const answer = asked.value.value
  return (
    <Page title="Audiences">
      <NotYet asked={asked.value} />
      {answer === undefined ? null : answer.spaces.length === 0 ? (
        <Empty title="There is no source of audiences.">
          A source of kind <code>audiences</code> gets members and computed traits from Kafka.
        </Empty>
      ) : (
        <>
          {answer.isComplete ? null : (
            <p class="lead">
              Not all workers tell what they know, so first syncs and backfills may be missing.
            </p>
          )}
          {answer.spaces.map((space) => (
            <Space key={space.id} space={space} />
          ))}
        </>
      )}
    </Page>
  )
}

function Space({ space }: { space: AudienceSpace }) {
  const { id, name, isOn, values, countedAt, audiences, destinations, connected } = space
  const lacking = destinations.filter(({ state }) => state !== 'complete')
  return (
    <section>
      <div class="heading">
        <h2>
          <Link to="source" params={{ id }} isRow>
            {name}
          </Link>{' '}
          {isOn ? null : <Badge tone="quiet" word="off" />}
        </h2>
      </div>
      <dl class="figures">
        <Figure
          name="Values"
          value={count(values)}
          note={countedAt === null ? 'are being counted' : <Counted at={countedAt} />}
        />
        <Figure name="Audiences and traits" value={count(audiences.length)} />
        <Figure
          name="Destinations"
          value={count(connected)}
          note={`${count(lacking.length)} lack something`}
        />
      </dl>
      {lacking.length === 0 ? null : (
        <ul class="rows" aria-label={`Destinations that lack values of ${name}`}>
          {lacking.map((one) => (
            <Lacking key={one.destination} one={one} space={id} />
          ))}
        </ul>
      )}
      {audiences.length === 0 ? null : <Users space={space} />}
    </section>
  )
}

/** How many users each audience and trait has. */
function Users({ space: { audiences, otherValues } }: { space: AudienceSpace }) {
  return (
    <details>
      <summary>Users by audience and trait</summary>
      <table class="narrow">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col" class="number">
              Users
            </th>
          </tr>
        </thead>
        <tbody>
          {audiences.map((one) => (
            <tr key={one.key}>
              <th scope="row" class="mono">
                {one.key}
              </th>
              <td class="number">{count(one.values)}</td>
            </tr>
          ))}
          {otherValues === 0 ? null : (
            <tr>
              <th scope="row">others</th>
              <td class="number">{count(otherValues)}</td>
            </tr>
          )}
        </tbody>
      </table>
    </details>
  )
}

function Counted({ at }: { at: string }) {
  return (
    <>
      counted <Ago at={at} />
    </>
  )
}

const stateWords: Readonly<Record<AudienceDestination['state'], { word: string; tone: Tone }>> = {
  complete: { word: 'complete', tone: 'good' },
  first_sync: { word: 'first sync', tone: 'active' },
  waiting: { word: 'waits', tone: 'warn' },
  needs_backfill: { word: 'needs a backfill', tone: 'bad' },
  unknown: { word: 'unknown', tone: 'quiet' },
}

function Lacking({
  one: { destination, name, state, left },
  space,
}: {
  one: AudienceDestination
  space: string
}) {
  return (
    <li>
      <Badge {...stateWords[state]} />
      <DestinationLink id={destination} name={name} />
      <span class="grow">{todoOf(state, { destination, space, left })}</span>
    </li>
  )
}

function todoOf(
  state: AudienceDestination['state'],
  { destination, space, left }: { destination: string; space: string; left: number },
) {
  switch (state) {
    case 'first_sync':
      return `It was connected later and gets the present values: ${count(left)} are still to be queued.`
    case 'waiting':
      return 'Its first sync begins when the destination and the source are on.'
    case 'needs_backfill':
      return (
        <>
          It has missed values. Run{' '}
          <code>
            sluice audience backfill --space {space} --destination {destination} --with-left
          </code>
        </>
      )
    case 'unknown':
    case 'complete':
      return ''
  }
}
