import { signal } from '@preact/signals'
import { recall, remember } from './browser-memory.ts'

export type Theme = 'system' | 'light' | 'dark'

const key = 'sluice-theme'

export const theme = signal<Theme>(read() ?? 'system')

/** Sets the theme, and keeps it for later visits with this browser. */
export function setTheme(next: Theme): void {
  theme.value = next
  show(next)
  remember(key, next)
}

/** Sets the theme of who has chosen none. */
export function proposeTheme(proposed: Theme): void {
  if (read() !== undefined) return
  theme.value = proposed
  show(proposed)
}

export function showTheme(): void {
  show(theme.value)
}

function show(next: Theme): void {
  if (next === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = next
}

/** Returns what somebody has chosen with this browser. */
function read(): Theme | undefined {
  const text = recall(key)
  return text === 'light' || text === 'dark' || text === 'system' ? text : undefined
}
