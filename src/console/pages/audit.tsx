import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { count } from '../data/format.ts'
import { route } from '../data/route.ts'
import type { AuditEntry } from '../data/types.ts'
import { DestinationLink, Link } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Time } from '../parts/time.tsx'

/** Who did what, newest first. */
export function AuditPage() {
  const { params } = route.value
  const cursor = params.get('cursor') ?? ''
  const replay = params.get('replay') ?? ''
  const query = { cursor, replay, limit: 100 }
  const { asked } = useAsk(
    JSON.stringify(query),
    (reading) => api.readAudit(query, reading),
    cursor === '' ? 10_000 : 0,
  )
  const page = asked.value.value
  return (
    <Page title={replay === '' ? 'Audit' : `Audit of replay ${replay}`}>
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.entries.length === 0 ? (
        <Empty title="Nothing was done in the last 90 days." />
      ) : (
        <>
          {page.completeSince === null ? null : (
            <p class="lead">
              Entries before <Time at={page.completeSince} /> may be missing.
            </p>
          )}
          <Entries entries={page.entries} />
          <Pager cursor={page.cursor} />
        </>
      )}
    </Page>
  )
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <div class="scroll" role="region" aria-label="Audit trail" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">Of</th>
            <th scope="col" class="number">
              Records
            </th>
            <th scope="col">Detail</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, place) => (
            <tr key={`${entry.at} ${place}`}>
              <td class="when">
                <Time at={entry.at} />
                {entry.count > 1 ? (
                  <div class="quiet">
                    {count(entry.count)} times until <Time at={entry.lastAt} />
                  </div>
                ) : null}
              </td>
              <td>{entry.by}</td>
              <td>{entry.action.replaceAll('_', ' ')}</td>
              <td>
                {entry.replay === null ? null : (
                  <Link to="replay" params={{ id: entry.replay }} isRow class="mono">
                    {entry.replay}
                  </Link>
                )}
                {entry.destination === null ? null : <DestinationLink id={entry.destination} />}
              </td>
              <td class="number" data-name="records">
                {entry.records === null ? '' : count(entry.records)}
              </td>
              <td class="why">{entry.detail}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
