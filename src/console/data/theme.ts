import { signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const key = 'sluice-theme'

export const theme = signal<Theme>(read())

/** Sets the theme, and keeps it for later visits with this browser. */
export function setTheme(next: Theme): void {
  theme.value = next
  show(next)
  try {
    if (next === 'system') localStorage.removeItem(key)
    else localStorage.setItem(key, next)
  } catch {
    // The browser keeps nothing. The theme then lasts as long as the page.
  }
}

export function showTheme(): void {
  show(theme.value)
}

function show(next: Theme): void {
  if (next === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = next
}

function read(): Theme {
  try {
    const kept = localStorage.getItem(key)
    return kept === 'light' || kept === 'dark' ? kept : 'system'
  } catch {
    return 'system'
  }
}
