import { useEffect } from 'preact/hooks'
import type { Asking } from './asking.ts'
import type { DestinationHealth } from './types.ts'

/**
 * The least time between two questions because of events. What happens rarely is shown at once, and many
 * people at a busy destination ask no oftener than without events.
 */
const pauseMs = 3_000
/** Events that come together cause one question. */
const gatherMs = 100

type About = { readonly message: string } | { readonly source: string }

/**
 * Asks again soon after something happens to a message or what a source has sent, by server-sent events.
 * Without them, such as when all places for live views are taken, a page still asks every few seconds.
 */
export function useLive(about: About, again: () => void): void {
  const query = new URLSearchParams(about).toString()
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let askedMs = -Infinity
    const soon = (): void => {
      timer ??= setTimeout(
        () => {
          timer = undefined
          askedMs = performance.now()
          again()
        },
        Math.max(gatherMs, askedMs + pauseMs - performance.now()),
      )
    }
    const stop = followWhileSeen(query, (source) => {
      for (const kind of ['ready', 'attempt', 'health', 'replay', 'skipped'])
        source.addEventListener(kind, soon)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [query, again])
}

/**
 * Takes how a destination is from server-sent events, so that nobody has to ask. If they end, it asks again.
 */
export function useLiveHealth(
  destination: string,
  { take, again }: Pick<Asking<DestinationHealth>, 'take' | 'again'>,
): void {
  useEffect(
    () =>
      followWhileSeen(new URLSearchParams({ destination }).toString(), (source) => {
        source.addEventListener('destination', ({ data }) => take(JSON.parse(String(data))))
        source.addEventListener('error', again)
        source.addEventListener('end', again)
      }),
    [destination, take, again],
  )
}

/**
 * Opens a stream of events whenever the tab is seen, and closes it when it isn't. Over HTTP/1.1, a browser
 * has six connections for all tabs of a server, so with more streams, no further tab would load. Returns a
 * function that ends this.
 */
function followWhileSeen(query: string, listen: (source: EventSource) => void): () => void {
  let source: EventSource | undefined
  const look = (): void => {
    if (document.hidden) {
      source?.close()
      source = undefined
    } else if (source === undefined) {
      const opened = new EventSource(new URL(`../v1/live?${query}`, import.meta.url))
      opened.addEventListener('end', () => opened.close())
      listen(opened)
      source = opened
    }
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    document.removeEventListener('visibilitychange', look)
    source?.close()
  }
}
