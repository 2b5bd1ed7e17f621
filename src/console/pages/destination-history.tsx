import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { route } from '../data/route.ts'
import { Changes } from '../parts/changes.tsx'
import { Pager } from '../parts/pager.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'

/** The changes of one destination. */
export function DestinationHistory({ id }: { id: string }) {
  const cursor = route.value.params.get('cursor') ?? ''
  const { asked } = useAsk(`history-${id}-${cursor}`, (reading) =>
    api.readHistory({ object: `destination/${id}`, cursor, limit: 20 }, reading),
  )
  const page = asked.value.value
  return (
    <>
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.changes.length === 0 ? (
        <Empty title="No change is kept." />
      ) : (
        <>
          <Changes changes={page.changes} />
          <Pager cursor={page.cursor} />
        </>
      )}
    </>
  )
}
