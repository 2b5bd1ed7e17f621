import { render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { startClock } from './data/clock.ts'
import { followKeys } from './data/keys.ts'
import { isOffered } from './data/offered.ts'
import { followLinks, type PageName, route } from './data/route.ts'
import { followFragments, known, openSession } from './data/session.ts'
import { showTheme } from './data/theme.ts'
import { AudiencesPage } from './pages/audiences.tsx'
import { AuditPage } from './pages/audit.tsx'
import { DeadLettersPage } from './pages/dead-letters.tsx'
import { DestinationPage } from './pages/destination.tsx'
import { DestinationsPage } from './pages/destinations.tsx'
import { FindPage } from './pages/find.tsx'
import { HistoryPage } from './pages/history.tsx'
import { LinksPage } from './pages/links.tsx'
import { MessagePage } from './pages/message.tsx'
import { NewDestinationPage } from './pages/new-destination.tsx'
import { NowPage } from './pages/now.tsx'
import { ReplayPage } from './pages/replay.tsx'
import { ReplaysPage } from './pages/replays.tsx'
import { SessionsPage } from './pages/sessions.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { SourcePage } from './pages/source.tsx'
import { SourcesPage } from './pages/sources.tsx'
import { TokensPage } from './pages/tokens.tsx'
import { Frame } from './parts/frame.tsx'
import { Link } from './parts/link.tsx'
import { Page } from './parts/page.tsx'
import { Empty } from './parts/problem.tsx'

const pages: Readonly<Record<PageName, () => preact.JSX.Element>> = {
  now: NowPage,
  find: FindPage,
  message: MessagePage,
  destinations: DestinationsPage,
  destination: DestinationPage,
  'new-destination': NewDestinationPage,
  'dead-letters': DeadLettersPage,
  replays: ReplaysPage,
  replay: ReplayPage,
  audiences: AudiencesPage,
  sources: SourcesPage,
  source: SourcePage,
  history: HistoryPage,
  audit: AuditPage,
  tokens: TokensPage,
  sessions: SessionsPage,
  links: LinksPage,
}

function Console() {
  const now = known.value
  if (now.is === 'unknown') return null
  if (now.is === 'out') return <SignIn why={now.why} isCustomer={now.isCustomer} />
  return (
    <Frame session={now.session}>
      <Present />
    </Frame>
  )
}

function Present() {
  const { page, params } = route.value
  const Shown = page === undefined || !isOffered(page) ? undefined : pages[page]
  const key = `${page ?? ''} ${params.get('id') ?? ''}`
  const isFirst = useRef(true)
  useEffect(() => {
    // Whoever uses a keyboard or a screen reader goes on in the page that was opened, and not in the menu.
    if (!isFirst.current) document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true })
    isFirst.current = false
  }, [key])
  return Shown === undefined ? <NoPage /> : <Shown key={key} />
}

function NoPage() {
  return (
    <Page title="No such page">
      <Empty title="There is no page at this address, or it isn't for you.">
        <Link to="now">Go to Now.</Link>
      </Empty>
    </Page>
  )
}

const root = document.querySelector('#console')
if (root === null) throw new Error('index.html has no element #console')
showTheme()
startClock()
followLinks()
followFragments()
followKeys()
render(<Console />, root)
await openSession()
