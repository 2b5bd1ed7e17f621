import { signal } from '@preact/signals'
import { isOffered } from './offered.ts'
import { go, type PageName, urlOf } from './route.ts'

/** Whether the list of keys is shown. */
export const isHelpOpen = signal(false)

/** The pages that `g` and a letter show. */
export const pageKeys: readonly { readonly key: string; readonly page: PageName; readonly name: string }[] = [
  { key: 'n', page: 'now', name: 'Now' },
  { key: 'f', page: 'find', name: 'Find' },
  { key: 'd', page: 'destinations', name: 'Destinations' },
  { key: 'l', page: 'dead-letters', name: 'Dead letters' },
  { key: 'r', page: 'replays', name: 'Replays' },
  { key: 'u', page: 'audiences', name: 'Audiences' },
  { key: 's', page: 'sources', name: 'Sources' },
  { key: 'h', page: 'history', name: 'History' },
  { key: 'a', page: 'audit', name: 'Audit' },
  { key: 't', page: 'tokens', name: 'Tokens' },
  { key: 'e', page: 'sessions', name: 'Sessions' },
  { key: 'c', page: 'links', name: 'Customers' },
]

export const otherKeys: readonly { readonly keys: string; readonly does: string }[] = [
  { keys: '/', does: 'Go to the search box' },
  { keys: 'j and k', does: 'Next and previous row of the list' },
  { keys: 'Enter', does: 'Open the row' },
  { keys: 'Escape', does: 'Close what is open, or leave the field' },
  { keys: '?', does: 'Show this list' },
]

/** The time within which the letter must follow `g`. */
const followMs = 1500
let prefixAt = -Infinity

export function followKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === 'Escape' && event.target instanceof HTMLElement && isField(event.target)) {
      event.target.blur()
      return
    }
    if (event.target instanceof HTMLElement && isField(event.target)) return
    if (document.querySelector('dialog[open]') !== null) return
    if (pressed(event.key, event.timeStamp)) event.preventDefault()
  })
}

function isField(element: HTMLElement): boolean {
  return element.matches('input, textarea, select') || element.isContentEditable
}

/** Does what a key means. Returns whether it means anything. */
function pressed(key: string, at: number): boolean {
  const wasPrefix = at - prefixAt < followMs
  prefixAt = -Infinity
  if (wasPrefix) {
    const found = pageKeys.find((one) => one.key === key && isOffered(one.page))
    if (found !== undefined) go(urlOf(found.page))
    return found !== undefined
  }
  if (key === 'g') prefixAt = at
  else if (key === '?') isHelpOpen.value = true
  else if (key === '/') goToSearch()
  else if (key === 'j' || key === 'k') moveRow(key === 'j' ? 1 : -1)
  else return false
  return true
}

function goToSearch(): void {
  const box = document.querySelector<HTMLInputElement>('[data-search]')
  // Not every browser moves the focus to what it selects.
  box?.focus()
  box?.select()
}

/** Moves the focus to the first link of the next or previous row. A row may have several links. */
function moveRow(step: number): void {
  const links = new Map<Element, HTMLElement>()
  for (const link of document.querySelectorAll<HTMLElement>('main [data-row]')) {
    const row = link.closest('tr') ?? link.closest('li') ?? link
    if (!links.has(row)) links.set(row, link)
  }
  const rows = [...links.keys()]
  if (rows.length === 0) return
  const present = rows.findLastIndex((row) => row.contains(document.activeElement))
  const next = rows[present < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, present + step))]
  if (next !== undefined) links.get(next)?.focus()
}
