import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChromium } from '../../support/chromium.ts'
import { type ConsoleExamples, hostile, serveExamples } from '../../support/console-examples.ts'

// The bundle of the console in Chromium, behind a path prefix, with the examples of the API's document.

let folder = ''
let browser: Browser
let operator: ConsoleExamples
let customer: ConsoleExamples

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
  const script = resolve(import.meta.dirname, '../../../scripts/build-console.ts')
  execFileSync(process.execPath, [script, folder], { stdio: 'ignore' })
  const bundle = join(folder, 'dist/console')
  ;[browser, operator, customer] = await Promise.all([
    startChromium(),
    serveExamples(bundle, ['read', 'operate', 'admin']),
    serveExamples(bundle, ['see', 'test']),
  ])
})

afterAll(async () => {
  await browser.close()
  await operator.stop()
  await customer.stop()
  rmSync(folder, { recursive: true, force: true })
})

const paths = [
  ['now', 'Now'],
  ['find?q=crm', 'Find'],
  ['message?id=order-4711', 'Message order-4711'],
  ['destinations', 'Destinations'],
  ['destination?id=crm', hostile],
  ['destination?id=crm&view=attempts', hostile],
  ['destination?id=crm&view=settings', hostile],
  ['destination?id=crm&view=secret', hostile],
  ['destination?id=crm&view=history', hostile],
  ['new-destination', 'Add a destination'],
  ['dead-letters', 'Dead letters'],
  ['replays', 'Replays'],
  ['replay?id=x', 'Replay x'],
  ['sources', 'Sources'],
  ['source?id=shop', 'Source'],
  ['history', 'History of the catalog'],
  ['audit', 'Audit'],
  ['tokens', 'Tokens'],
  ['links', "Customers' links"],
  ['elsewhere', 'No such page'],
] as const

/** Opens a page that notes what Chromium complains about: errors, refusals of the policy, code that runs. */
async function openPage(): Promise<{ page: Page; complaints: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  page.setDefaultTimeout(10_000)
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (line) => {
    if (line.type() === 'error' && !line.text().includes('status of 404')) complaints.push(line.text())
  })
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return { page, complaints }
}

/** Returns what axe finds on the page that is shown. */
async function axeFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations }: { violations: { id: string; nodes: { html: string }[] }[] } =
    await page.evaluate('axe.run()')
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

test('each page shows texts of strangers as texts, has no fault that axe finds in light or dark, and fits 360 px', async () => {
  const { page, complaints } = await openPage()
  for (const [path, title] of paths) {
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
    await page.goto(`${operator.origin}/console/${path}`)
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
    await page.waitForFunction("!document.body.textContent.includes('Loading…')")
    expect([path, await axeFaults(page)]).toEqual([path, []])
    await page.emulateMedia({ colorScheme: 'dark' })
    expect([path, 'dark', await axeFaults(page)]).toEqual([path, 'dark', []])
    await page.setViewportSize({ width: 360, height: 740 })
    expect([path, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([
      path,
      0,
    ])
    expect([path, await page.locator('main img').count(), complaints]).toEqual([path, 0, []])
  }
})

test('the keyboard shows its keys, and goes from page to page and from row to row', async () => {
  const { page, complaints } = await openPage()
  await page.goto(`${operator.origin}/console/now`)
  await page.getByRole('heading', { name: 'Now' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  expect(await axeFaults(page)).toEqual([])
  await page.keyboard.press('Escape')
  await page.keyboard.press('g')
  await page.keyboard.press('d')
  await page.getByRole('link', { name: hostile }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: hostile }).waitFor()
  expect(page.url()).toBe(`${operator.origin}/console/destination?id=crm`)
  expect(complaints).toEqual([])
})

test('what a session may not do is not offered', async () => {
  const { page } = await openPage()
  await page.goto(`${customer.origin}/console/destination?id=crm`)
  await page.getByRole('button', { name: 'Send a test' }).waitFor()
  const offered = await page.getByRole('button').allTextContents()
  for (const refused of ['Pause', 'Resume', 'Drop', 'Replay', 'Try now'])
    expect(offered).not.toContain(refused)
  const links = await page.getByRole('link').allTextContents()
  for (const refused of ['Secret', 'History', 'Audit', 'Tokens', 'Customers'])
    expect(links).not.toContain(refused)
})

test('the bundle has at most 150 KB, gzipped', () => {
  const manifest: Record<string, { gzipped: number }> = JSON.parse(
    readFileSync(join(folder, 'dist/console/manifest.json'), 'utf8'),
  )
  const sizes = Object.values(manifest).map(({ gzipped }) => gzipped)
  expect(sizes).toHaveLength(4)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000)
})
