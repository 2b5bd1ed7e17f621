import { BenchmarkFailure } from '../support/failure.ts'
import { percentile } from '../support/statistics.ts'
import type { Call, Visit } from './pages.ts'

/** Makes the calls of each page again and again, one after the other. Returns the p95 of each page, in ms. */
export async function askAll(
  visits: readonly Visit[],
  { origin, cookie, isOver }: { origin: string; cookie: string; isOver: (rounds: number) => boolean },
): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number[]>(visits.map(({ page }) => [page, []]))
  for (let round = 0; !isOver(round); round++)
    for (const { page, calls } of visits)
      for (const call of calls) {
        if (call.path.startsWith('/v1/live')) continue
        const startedMs = performance.now()
        await ask(call, origin, cookie)
        times.get(page)?.push(performance.now() - startedMs)
      }
  return new Map(
    [...times].map(([page, all]) => [
      page,
      percentile(
        all.toSorted((a, b) => a - b),
        0.95,
      ),
    ]),
  )
}

async function ask({ method, path, body }: Call, origin: string, cookie: string): Promise<void> {
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: { cookie, origin, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body }),
  })
  const text = await response.text()
  // What isn't there is answered too, such as a message of the page Find, or the settings of a destination whose
  // catalog is in a file.
  if (!response.ok && response.status !== 404 && response.status !== 409)
    throw new BenchmarkFailure(`${method} ${path}: ${response.status} ${text}`)
}
