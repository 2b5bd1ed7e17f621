// What this browser keeps between visits. A browser may keep nothing: what is set then lasts as long as the
// page.

type Key = 'sluice-theme' | 'sluice-came-by'

export function recall(key: Key): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined
  } catch {
    return undefined
  }
}

export function remember(key: Key, text: string): void {
  try {
    localStorage.setItem(key, text)
  } catch {
    // The browser keeps nothing.
  }
}
