import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page, Response } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createToken } from '../../src/admin/tokens.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { startChromium } from '../support/chromium.ts'
import { type ConsolePage, openConsolePage, untilShown } from '../support/console-page.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

// The console of an installation with 100,000 destinations, on a real server with a real Kafka. What a page asks,
// gets and draws doesn't grow with their number, so that no page freezes.

const destinations = 100_000
/** A page that does nothing for so long feels frozen. */
const frozenMs = 500
const most = { elements: 4_000, bytes: 400_000, calls: 5 } as const

let folder = ''
let scene: Scene
let sluice: SluiceProcess
let browser: Browser
let shown: ConsolePage
let page: Page
let origin = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
  const { token, line } = createToken('developer', 'admin')
  writeFileSync(join(folder, 'tokens'), line)
  writeFileSync(join(folder, 'catalog.json'), JSON.stringify(catalogOf(destinations)))
  scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: join(folder, 'tokens'),
      SLUICE_CATALOG_FILE: join(folder, 'catalog.json'),
      SLUICE_INDEX_FOLDER: join(folder, 'log'),
      SLUICE_STATE_FOLDER: join(folder, 'state'),
    },
  })
  ;[sluice, browser] = await Promise.all([
    startSluice(scene.variables, { role: 'up', readyMs: 180_000 }),
    startChromium(),
  ])
  origin = `http://127.0.0.1:${sluice.adminPort}`
  shown = await openConsolePage(browser)
  page = shown.page
  await page.addInitScript(watchForFreezes)
  await page.goto(`${origin}/console/now`)
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await untilShown(page, 'Now')
})

afterAll(async () => {
  await browser?.close()
  await sluice?.kill()
  scene?.close()
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

function catalogOf(count: number): object {
  return {
    sources: [{ id: 'app', writeKeys: ['wk_of_many'] }],
    destinations: Array.from({ length: count }, (_, index) => ({
      id: `customer-${String(index).padStart(6, '0')}`,
      name: `Customer ${index}`,
      sources: ['app'],
      labels: { tenant: `tenant-${index % 1_000}` },
      hooks: [{ url: `http://127.0.0.1:8080/hooks/${index}` }],
    })),
  }
}

/** Keeps the longest time for which the page could do nothing else. */
const watchForFreezes = `
  globalThis.longestTaskMs = 0
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestTaskMs = Math.max(longestTaskMs, duration)
  }).observe({ type: 'longtask', buffered: true })
`

/** What a page has cost the browser. */
type Cost = { calls: number; bytes: number; elements: number; frozenMs: number }

async function costOf(work: () => Promise<void>): Promise<Cost> {
  const answers: Promise<number>[] = []
  const asked = new Set<string>()
  const listen = (response: Response): void => {
    const { pathname } = new URL(response.url())
    // A live view goes on for as long as its page.
    if (!pathname.startsWith('/v1/') || pathname === '/v1/live') return
    asked.add(`${response.request().method()} ${pathname}`)
    answers.push(
      response.body().then(
        ({ length }) => length,
        () => 0,
      ),
    )
  }
  page.on('response', listen)
  await work()
  page.off('response', listen)
  const bytes = await Promise.all(answers)
  const [elements, longestMs]: [number, number] = await page.evaluate(
    "[document.querySelectorAll('*').length, longestTaskMs]",
  )
  return { calls: asked.size, bytes: Math.max(0, ...bytes), elements, frozenMs: longestMs }
}

function expectSmall(where: string, cost: Cost): void {
  const faults = [
    cost.calls > most.calls ? `${cost.calls} calls` : '',
    cost.bytes > most.bytes ? `an answer of ${cost.bytes} bytes` : '',
    cost.elements > most.elements ? `${cost.elements} elements` : '',
    cost.frozenMs > frozenMs ? `frozen for ${cost.frozenMs} ms` : '',
  ]
  expect([where, ...faults.filter((fault) => fault !== '')]).toEqual([where])
}

const paths = [
  ['now', 'Now'],
  ['find?q=customer-0999', 'Find'],
  ['destinations', 'Destinations'],
  ['destinations?sort=id', 'Destinations'],
  ['destinations?label=tenant%3Dtenant-7', 'Destinations'],
  ['destination?id=customer-099999', 'Customer 99999'],
  ['destination?id=customer-099999&view=access', 'Customer 99999'],
  ['destination?id=customer-099999&view=settings', 'Customer 99999'],
  ['dead-letters', 'Dead letters'],
  ['replays', 'Replays'],
  ['audiences', 'Audiences'],
  ['sources', 'Sources'],
  ['source?id=app', /^Source/],
  ['history', 'History of the catalog'],
  ['audit', 'Audit'],
  ['tokens', 'Tokens'],
  ['sessions', 'Sessions'],
  ['links', "Customers' links"],
] as const

test.each(paths)('%s asks, gets and draws as little as with a few', async (path, title) => {
  expectSmall(
    path,
    await costOf(async () => {
      await page.goto(`${origin}/console/${path}`)
      await untilShown(page, title)
    }),
  )
  expect(shown.complaints).toEqual([])
})

test('one of them is found while its id is typed, and what fits is counted before anything is done', async () => {
  const all = destinations.toLocaleString('en')
  const search = page.getByLabel('Search', { exact: true })
  await page.goto(`${origin}/console/destinations`)
  await page.getByText(`${all} in all`).waitFor()
  const cost = await costOf(async () => {
    await search.pressSequentially('customer-0000')
    await page.getByText('100 in all').waitFor()
    await preview('All 100 that fit')
    await page.getByText('of 100 selected destinations').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await search.fill('customer-0')
    await page.getByText(`${all} in all`).waitFor()
    await preview(`All ${all} that fit`)
    await page.getByText('select fewer').waitFor()
  })
  expectSmall('the list, while somebody types', cost)
  expect(shown.complaints.filter((text) => !text.includes('status of 4'))).toEqual([])
})

/** Ticks the rows of the page, takes all that fit in their place, and asks what trying them now would do. */
async function preview(all: string): Promise<void> {
  await page.getByLabel('Select all on this page').check()
  await page.getByRole('button', { name: all }).click()
  await page.getByRole('button', { name: 'Try now', exact: true }).click()
  await page.getByRole('button', { name: 'Preview' }).click()
}
