import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { route, setParams } from '../data/route.ts'
import { Check } from '../parts/form.tsx'
import { Link } from '../parts/link.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Records } from '../parts/records.tsx'

/** The newest records of a destination in the delivery log, as they come. */
export function DestinationAttempts({ id }: { id: string }) {
  const { params } = route.value
  const isFailed = params.get('failed') === 'yes'
  const cursor = params.get('cursor') ?? undefined
  const from = params.get('from') ?? undefined
  const search = {
    destination: id,
    limit: 50,
    ...(isFailed ? { isFailed } : {}),
    ...(cursor === undefined ? {} : { cursor, from }),
  }
  const { asked } = useAsk(
    JSON.stringify(search),
    (reading) => api.searchLog(search, reading),
    cursor === undefined ? 3_000 : 0,
  )
  const page = asked.value.value
  return (
    <>
      <div class="filters">
        <Check
          label="Only what failed"
          value={isFailed}
          onChange={(next) => setParams({ failed: next ? 'yes' : undefined })}
        />
        <Link to="find" params={{ destination: id }}>
          Search with more conditions
        </Link>
      </div>
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.records.length === 0 ? (
        <Empty title="Nothing in the last hour.">
          Send a test or a message, or{' '}
          <Link to="find" params={{ destination: id, hours: '168' }}>
            search the last week
          </Link>
          .
        </Empty>
      ) : (
        <>
          <Records records={page.records} />
          <Pager cursor={page.cursor} more={{ from: page.from }} />
        </>
      )}
    </>
  )
}
