import { computed, signal } from '@preact/signals'

/**
 * The pages by the last part of their URL. All URLs are one folder deep (`…/console/destination?id=crm`), so
 * relative addresses of files and of the API hold on each page, whatever the prefix.
 */
export const pageNames = [
  'now',
  'find',
  'message',
  'destinations',
  'destination',
  'new-destination',
  'dead-letters',
  'replays',
  'replay',
  'audiences',
  'sources',
  'source',
  'history',
  'audit',
  'tokens',
  'sessions',
  'links',
] as const
export type PageName = (typeof pageNames)[number]

export type Params = Readonly<Record<string, string | undefined>>

const here = signal(location.href)

/** The page that is shown, and the parameters of its URL. An unknown name is `undefined`. */
export const route = computed<{ readonly page: PageName | undefined; readonly params: URLSearchParams }>(
  () => {
    const url = new URL(here.value)
    const name = url.pathname.split('/').at(-1) ?? ''
    const page = name === '' || name === 'index.html' ? 'now' : pageNames.find((known) => known === name)
    return { page, params: url.searchParams }
  },
)

/** Returns the address of a page. Empty parameters are left out. */
export function urlOf(page: PageName, params: Params = {}): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    if (value !== undefined && value !== '') query.set(name, value)
  const text = query.toString()
  return text === '' ? page : `${page}?${text}`
}

/** Shows another page. `replace` keeps the number of steps back, such as while a filter is typed. */
export function go(url: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  here.value = location.href
  if (!replace) scrollTo(0, 0)
}

/** Changes parameters of the present page, and drops its cursor. */
export function setParams(changes: Params, options: { readonly replace?: boolean } = {}): void {
  const { page, params } = route.value
  const next: Params = { ...Object.fromEntries(params), cursor: undefined, ...changes }
  if (page !== undefined) go(urlOf(page, next), options)
}

/** Follows clicks on links of this console, and the browser's steps back and forth. */
export function followLinks(): void {
  addEventListener('popstate', () => {
    here.value = location.href
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.origin !== location.origin || link.hash !== '') return
    if (!isOurs(link.href)) return
    event.preventDefault()
    go(link.href)
  })
}

function isOurs(href: string): boolean {
  return folderOf(href) === folderOf(location.href)
}

function folderOf(url: string): string {
  return new URL(url).pathname.replace(/[^/]*$/, '')
}
