import { useSignal, useSignalEffect } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { stale } from '../data/asking.ts'
import { now } from '../data/clock.ts'
import { duration, localClock } from '../data/format.ts'
import { isHelpOpen, otherKeys, pageKeys } from '../data/keys.ts'
import { isOffered } from '../data/offered.ts'
import { go, type PageName, route, urlOf } from '../data/route.ts'
import { brand, logo, type Session, signOut } from '../data/session.ts'
import { setTheme, type Theme, theme } from '../data/theme.ts'
import { Dialog } from './dialog.tsx'
import { Choice } from './form.tsx'
import { Link } from './link.tsx'

/** The pages that belong to one entry of the menu. */
const inside: Partial<Record<PageName, PageName>> = {
  message: 'find',
  destination: 'destinations',
  'new-destination': 'destinations',
  replay: 'replays',
  source: 'sources',
}

/** What is around every page: the menu, the search box, and the line that says since when it is stale. */
export function Frame({ session, children }: { session: Session; children: ComponentChildren }) {
  const isMenuOpen = useSignal(false)
  useSignalEffect(() => {
    // Another page closes the menu of small screens.
    if (route.value.page !== undefined) isMenuOpen.value = false
  })
  return (
    <div class="frame" data-menu={isMenuOpen.value ? 'open' : 'closed'}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <button
          type="button"
          class="icon menu-button"
          aria-label="Menu"
          aria-expanded={isMenuOpen.value}
          onClick={() => {
            isMenuOpen.value = !isMenuOpen.value
          }}
        >
          ☰
        </button>
        <Link to="now" class="brand">
          {logo.value === undefined ? null : <img src={logo.value} alt="" />}
          {brand.value}
        </Link>
        <SearchBox />
        <button
          type="button"
          class="icon"
          aria-label="Keys"
          title="Keys (?)"
          onClick={() => {
            isHelpOpen.value = true
          }}
        >
          ?
        </button>
      </header>
      <Side session={session} />
      <div class="content">
        <StaleLine />
        {children}
      </div>
      {isHelpOpen.value ? <Keys /> : null}
    </div>
  )
}

function Side({ session }: { session: Session }) {
  const { page } = route.value
  return (
    <div class="side">
      <nav class="menu" aria-label="Pages">
        {pageKeys
          .filter((one) => isOffered(one.page))
          .map((one) => (
            <Link
              key={one.page}
              to={one.page}
              isCurrent={page === one.page || inside[page ?? 'now'] === one.page}
            >
              {one.name}
            </Link>
          ))}
      </nav>
      <Who session={session} />
    </div>
  )
}

function SearchBox() {
  const { page, params } = route.value
  const shown = page === 'find' ? (params.get('q') ?? '') : ''
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const q = new FormData(event.currentTarget).get('q')
        if (typeof q === 'string' && q.trim() !== '') go(urlOf('find', { q: q.trim() }))
      }}
    >
      <input
        type="search"
        name="q"
        key={shown}
        defaultValue={shown}
        data-search
        aria-label="Find a message, a destination or a user"
        placeholder="Message id, destination, URL, user, order number   ( / )"
        spellcheck={false}
        autocomplete="off"
      />
    </form>
  )
}

const themes: readonly { readonly value: Theme; readonly name: string }[] = [
  { value: 'system', name: 'Theme: system' },
  { value: 'light', name: 'Theme: light' },
  { value: 'dark', name: 'Theme: dark' },
]

function Who({ session }: { session: Session }) {
  return (
    <aside class="who" aria-label="Your session">
      <div>
        <strong>{session.name}</strong> <span class="quiet">{rightsText(session)}</span>
        {session.scope === 'all' ? null : <div class="quiet">{scopeText(session.scope)}</div>}
      </div>
      <Choice label="Theme" isLabelHidden value={theme.value} options={themes} onChange={setTheme} />
      <button type="button" onClick={() => void signOut()}>
        Sign out
      </button>
    </aside>
  )
}

/** Each right of a token includes those before it. Those of a link are apart. */
function rightsText({ isLink, rights }: Session): string {
  const shown = isLink ? rights : rights.slice(-1)
  return shown.map((right) => right.replaceAll('_', ' ')).join(', ')
}

export function scopeText(scope: Session['scope']): string {
  if (scope === 'all') return 'everything'
  const { label, destinations } = scope
  const parts = [label, destinations === undefined ? undefined : destinations.join(', ')]
  return parts.filter((part) => part !== undefined).join('; ')
}

/** Says since when what is shown is old, because the server doesn't answer. */
function StaleLine() {
  const since = Math.min(...stale.value.values())
  return (
    <div role="status" class="stale" data-shown={Number.isFinite(since)}>
      {Number.isFinite(since)
        ? `Stale since ${localClock(new Date(since))} (${duration((now.value - since) / 1000)}): Sluice does not answer. It is asked again by itself.`
        : ''}
    </div>
  )
}

function closeKeys(): void {
  isHelpOpen.value = false
}

function Keys() {
  return (
    <Dialog title="Keys" onClose={closeKeys}>
      <dl class="facts">
        {otherKeys.map(({ keys, does }) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
        {pageKeys
          .filter(({ page }) => isOffered(page))
          .map(({ key, name }) => (
            <div key={key}>
              <dt>
                <kbd>g</kbd> <kbd>{key}</kbd>
              </dt>
              <dd>{name}</dd>
            </div>
          ))}
      </dl>
    </Dialog>
  )
}
