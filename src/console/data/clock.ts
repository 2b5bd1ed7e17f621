import { signal } from '@preact/signals'

/**
 * The present time (ms), once a second while the tab is visible, so that all relative times move together.
 */
export const now = signal(Date.now())

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now()
  }, 1000)
}
