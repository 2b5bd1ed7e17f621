import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { route } from '../data/route.ts'
import { Changes } from '../parts/changes.tsx'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'

/** All changes of the catalog, newest first. */
export function HistoryPage() {
  const cursor = route.value.params.get('cursor') ?? ''
  const { asked } = useAsk(
    `history-${cursor}`,
    (reading) => api.readHistory({ cursor, limit: 50 }, reading),
    cursor === '' ? 10_000 : 0,
  )
  const page = asked.value.value
  return (
    <Page title="History of the catalog">
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.changes.length === 0 ? (
        <Empty title="No change is kept.">Changes of destinations and sources show up here.</Empty>
      ) : (
        <>
          <Changes changes={page.changes} />
          <Pager cursor={page.cursor} />
        </>
      )}
    </Page>
  )
}
