import type { Browser, BrowserContext, Page } from 'playwright-core'
import { median } from '../support/statistics.ts'

/** A call of the admin API that a page has made. */
export type Call = { readonly method: string; readonly path: string; readonly body: string | undefined }

export type Visit = {
  readonly page: string
  /** The different calls until the page was shown whole. */
  readonly calls: readonly Call[]
  /** When the browser has painted something first, and when the page was shown whole, since it was asked for. */
  readonly firstPaintMs: number
  readonly shownMs: number
}

/** The pages that are visited. `ID` stands for the id of a destination. */
export const pages = [
  'now',
  'find?q=ID',
  'destinations',
  'destination?id=ID',
  'destination?id=ID&view=attempts',
  'destination?id=ID&view=access',
  'destination?id=ID&view=settings',
  'dead-letters',
  'replays',
  'audiences',
  'sources',
  'history',
  'audit',
  'tokens',
  'sessions',
  'links',
] as const

/** Opens a page several times, each time in a browser without a cache. Returns the medians of the times. */
export async function visit(
  browser: Browser,
  { origin, cookie, page, times }: { origin: string; cookie: string; page: string; times: number },
): Promise<Visit> {
  const all = []
  for (let time = 0; time < times; time++) all.push(await visitOnce(browser, { origin, cookie, page }))
  return {
    page,
    calls: all[0]?.calls ?? [],
    firstPaintMs: median(all.map(({ firstPaintMs }) => firstPaintMs)),
    shownMs: median(all.map(({ shownMs }) => shownMs)),
  }
}

async function visitOnce(
  browser: Browser,
  { origin, cookie, page }: { origin: string; cookie: string; page: string },
): Promise<Omit<Visit, 'page'>> {
  const context = await signedIn(browser, origin, cookie)
  const tab = await context.newPage()
  const calls = new Map<string, Call>()
  tab.on('request', (request) => {
    const url = new URL(request.url())
    if (!url.pathname.startsWith('/v1/')) return
    const call = {
      method: request.method(),
      path: `${url.pathname}${url.search}`,
      body: request.postData() ?? undefined,
    }
    // A page asks again every few seconds, at other times.
    const key = `${call.method} ${url.pathname} ${withoutTimes(`${url.search} ${call.body ?? ''}`)}`
    calls.set(key, call)
  })
  try {
    await tab.goto(`${origin}/console/${page}`)
    const shownMs = await untilWhole(tab)
    const firstPaintMs = await firstPaintOf(tab)
    return { calls: [...calls.values()], firstPaintMs, shownMs }
  } finally {
    await context.close()
  }
}

async function signedIn(browser: Browser, origin: string, cookie: string): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const [name = '', value = ''] = cookie.split('=')
  await context.addCookies([{ name, value, domain: new URL(origin).hostname, path: '/' }])
  return context
}

/** Resolves with the time since the page was asked for at which it had its heading, and nothing was loading. */
function untilWhole(tab: Page): Promise<number> {
  return tab.evaluate(`new Promise((resolve) => {
    const look = () => {
      const isWhole = document.querySelector('h1') !== null && !document.body.textContent.includes('Loading…')
      if (isWhole) resolve(performance.now())
      else requestAnimationFrame(look)
    }
    look()
  })`)
}

/** Resolves with the time since the page was asked for at which the browser had painted something. */
function firstPaintOf(tab: Page): Promise<number> {
  return tab.evaluate(`new Promise((resolve) => {
    new PerformanceObserver((list) => {
      const [first] = list.getEntriesByName('first-contentful-paint')
      if (first !== undefined) resolve(first.startTime)
    }).observe({ type: 'paint', buffered: true })
  })`)
}

function withoutTimes(text: string): string {
  return text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '')
}
