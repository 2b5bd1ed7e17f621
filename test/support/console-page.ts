import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { until } from './until.ts'

/** A page of the console in Chromium. */
export type ConsolePage = {
  readonly page: Page
  /** What Chromium has complained about: errors, refusals of the policy, dialogs that code has opened. */
  readonly complaints: readonly string[]
  /** Returns what axe finds on the page as it is, in one line for each element. */
  readonly axeFaults: () => Promise<readonly string[]>
  /** Returns by how many pixels the page is wider than its window. */
  readonly overflow: () => Promise<number>
  /** Closes the context. Answers that a test was about to change are let go. */
  readonly close: () => Promise<void>
}

/** Opens a page in a browser context of its own, as another person would. */
export async function openConsolePage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (line) => {
    // Chromium also writes a line for each answer with 4xx, such as the one that says that nobody is signed in.
    if (line.type() === 'error' && !line.text().includes('status of 4')) complaints.push(line.text())
  })
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return {
    page,
    complaints,
    async axeFaults() {
      // The policy of the pages doesn't hold for what a debugger runs.
      await page.evaluate(axe.source)
      const { violations }: { violations: { id: string; nodes: { html: string }[] }[] } =
        await page.evaluate('axe.run()')
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
    },
    overflow: () => page.evaluate('document.documentElement.scrollWidth - innerWidth'),
    async close() {
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await context.close()
    },
  }
}

/** Waits until something is seen. Throws an error with the text of the page if it never is. */
export async function untilSeen(what: Locator): Promise<void> {
  const page = what.page()
  await what.waitFor().catch(async (cause: unknown) => {
    const text = (await page.locator('body').innerText()).slice(0, 4_000)
    throw new Error(`the page ${page.url()} does not show ${String(what)}, but: ${text}`, { cause })
  })
}

/** Waits until a page shows its heading, and nothing is loading any more. */
export async function untilShown(page: Page, title: string | RegExp): Promise<void> {
  await untilSeen(page.getByRole('heading', { level: 1, name: title }))
  // `waitForFunction` makes code of a text in the page, which the policy of the console forbids.
  await until(
    'nothing is loading',
    async () => !(await page.evaluate("document.body.textContent.includes('Loading…')")),
  )
}
