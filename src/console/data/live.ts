import { useEffect } from 'preact/hooks'

/**
 * The least time between two questions because of events. What happens rarely is shown at once, and many
 * people at a busy destination ask no oftener than without events.
 */
const pauseMs = 3_000
/** Events that come together cause one question. */
const gatherMs = 100

/**
 * Asks again soon after something happens to a destination, a message or what a source has sent, by
 * server-sent events. Without them, such as when all places for live views are taken, a page still asks every
 * few seconds.
 */
export function useLive(
  about: { readonly destination: string } | { readonly message: string } | { readonly source: string },
  again: () => void,
): void {
  const query = new URLSearchParams(about).toString()
  useEffect(() => {
    const source = new EventSource(new URL(`../v1/live?${query}`, import.meta.url))
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
    for (const kind of ['ready', 'attempt', 'health', 'replay', 'skipped'])
      source.addEventListener(kind, soon)
    source.addEventListener('end', () => source.close())
    return () => {
      clearTimeout(timer)
      source.close()
    }
  }, [query, again])
}
