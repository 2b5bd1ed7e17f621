import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startChromium } from '../support/chromium.ts'
import { type ConsoleExamples, hostile, serveExamples } from '../support/console-examples.ts'
import { openConsolePage, untilShown } from '../support/console-page.ts'
import { until } from '../support/until.ts'

// The bundle of the console in Chromium, behind a path prefix, with the examples of the API's document.

const all = ['read', 'operate', 'admin']
const states = ['filled', 'empty', 'failing'] as const
let folder = ''
let browser: Browser
const served = new Map<string, ConsoleExamples>()

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
  const script = resolve(import.meta.dirname, '../../scripts/build-console.ts')
  execFileSync(process.execPath, [script, folder], { stdio: 'ignore' })
  const bundle = join(folder, 'dist/console')
  browser = await startChromium()
  for (const state of states) served.set(state, await serveExamples(bundle, { rights: all, state }))
  served.set('customer', await serveExamples(bundle, { rights: ['see', 'test'] }))
})

afterAll(async () => {
  await browser?.close()
  for (const one of served.values()) await one.stop()
  rmSync(folder, { recursive: true, force: true })
})

const paths = [
  ['now', 'Now'],
  ['now?hours=24', 'Now'],
  ['find', 'Find'],
  ['find?q=crm', 'Find'],
  ['find?destination=crm&what=failed', 'Find'],
  ['find?content=properties.total%3D30', 'Find'],
  ['message?id=order-4711', 'Message order-4711'],
  ['destinations', 'Destinations'],
  ['destinations?search=nothing', 'Destinations'],
  ['destination?id=crm', hostile],
  ['destination?id=crm&view=attempts', hostile],
  ['destination?id=crm&view=access', hostile],
  ['destination?id=crm&view=settings', hostile],
  ['destination?id=crm&view=secret', hostile],
  ['destination?id=crm&view=history', hostile],
  ['new-destination', 'Add a destination'],
  ['dead-letters', 'Dead letters'],
  ['replays', 'Replays'],
  ['replay?id=x', 'Replay x'],
  ['audiences', 'Audiences'],
  ['sources', 'Sources'],
  ['source?id=shop', /^Source/],
  ['history', 'History of the catalog'],
  ['audit', 'Audit'],
  ['tokens', 'Tokens'],
  ['sessions', 'Sessions'],
  ['links', "Customers' links"],
  ['elsewhere', 'No such page'],
] as const

function urlOf(state: string, path: string): string {
  return `${served.get(state)?.origin ?? ''}/console/${path}`
}

async function open() {
  const shown = await openConsolePage(browser)
  onTestFinished(() => shown.page.context().close())
  return shown
}

describe.each(states)('with answers that are %s', (state) => {
  test.each(paths)(
    '%s shows texts of strangers as texts, has no fault that axe finds, and fits 360 px',
    async (path, title) => {
      const { page, complaints, axeFaults, overflow } = await open()
      await page.emulateMedia({ colorScheme: 'light' })
      await page.goto(urlOf(state, path))
      await untilShown(page, state === 'failing' && title === hostile ? 'crm' : title)
      expect(await axeFaults()).toEqual([])
      await page.emulateMedia({ colorScheme: 'dark' })
      expect(['dark', await axeFaults()]).toEqual(['dark', []])
      await page.setViewportSize({ width: 360, height: 740 })
      expect(['360 px', await overflow(), await axeFaults()]).toEqual(['360 px', 0, []])
      expect(await page.locator('main img').count()).toBe(0)
      expect(complaints.filter((text) => !text.includes('status of 503'))).toEqual([])
    },
  )
})

test.each(paths)('each button of %s opens a dialog without a fault that axe finds', async (path, title) => {
  const { page, complaints, axeFaults, overflow } = await open()
  await page.goto(urlOf('filled', path))
  await untilShown(page, title)
  const names = await page.locator('main button').allTextContents()
  for (const [nth, name] of names.entries()) {
    await page.goto(urlOf('filled', path))
    await untilShown(page, title)
    const button = page.locator('main button').nth(nth)
    if (await button.isDisabled()) continue
    await button.click()
    // What a click changes is drawn in the next frames.
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 900 })
      expect([name, width, await axeFaults()]).toEqual([name, width, []])
      expect([name, width, await overflow()]).toEqual([name, width, 0])
    }
    await page.setViewportSize({ width: 1280, height: 900 })
    if ((await page.locator('dialog[open]').count()) === 0) continue
    await page.keyboard.press('Escape')
    await page.locator('dialog[open]').waitFor({ state: 'detached' })
  }
  expect(complaints).toEqual([])
})

test('a condition is tried while it is typed, on a message and on real ones, which are texts', async () => {
  const { page, complaints, axeFaults, overflow } = await open()
  await page.goto(urlOf('filled', 'destination?id=crm&view=settings'))
  await untilShown(page, hostile)
  await page.getByText('Try them on messages').click()
  const ofMessage = page.getByRole('list', { name: 'The message' })
  await ofMessage.getByText('match', { exact: true }).waitFor()
  expect(await ofMessage.getByRole('region', { name: 'Request' }).textContent()).toContain(
    'POST https://crm.example.com/hook',
  )
  await page.getByRole('button', { name: 'Try it on the last messages of shop' }).click()
  const recent = page.getByRole('list', { name: 'The last messages, newest first' })
  await recent.getByText('by mapping 1').waitFor()
  await page.route('**/v1/preview', (route) =>
    route.fulfill({
      status: 422,
      contentType: 'application/problem+json',
      body: JSON.stringify({
        type: '/problems/faulty',
        title: 'Faults',
        status: 422,
        detail: `filter.condition ${hostile} at character 9: x`,
      }),
    }),
  )
  await page.getByLabel('Condition').fill('event ==')
  await page.getByRole('alert').getByText(hostile).waitFor()
  expect(await page.locator('mark').textContent()).toBe(' ')
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 900 })
    expect([width, await overflow(), await axeFaults()]).toEqual([width, 0, []])
  }
  await page.getByLabel('A message to try it on').fill('{')
  await page.getByText('neither a JSON object').waitFor()
  expect(await page.locator('main img').count()).toBe(0)
  expect(complaints.filter((text) => !text.includes('status of 422'))).toEqual([])
})

test('the fields of a login never show a secret that is set, and the difference none that is typed', async () => {
  const { page, axeFaults, overflow } = await open()
  await page.goto(urlOf('filled', 'destination?id=crm&view=settings'))
  await untilShown(page, hostile)
  const secret = page.getByLabel('Client secret')
  expect([await secret.inputValue(), await secret.getAttribute('type')]).toEqual(['', 'password'])
  await page.getByText(/^Set since/).waitFor()
  await page.getByRole('button', { name: 'Remove: Client secret' }).click()
  await page.getByText('It is removed when you save.').waitFor()
  await secret.fill('S3CRET')
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 900 })
    expect([width, await overflow(), await axeFaults()]).toEqual([width, 0, []])
  }
  await page.getByRole('button', { name: 'Review changes' }).click()
  const dialog = page.getByRole('dialog', { name: 'Save these changes?' })
  await dialog.getByText('(as typed)').waitFor()
  expect(await dialog.textContent()).not.toContain('S3CRET')
  expect(await axeFaults()).toEqual([])
})

const keys = [
  ['n', 'Now'],
  ['f', 'Find'],
  ['d', 'Destinations'],
  ['l', 'Dead letters'],
  ['r', 'Replays'],
  ['u', 'Audiences'],
  ['s', 'Sources'],
  ['h', 'History of the catalog'],
  ['a', 'Audit'],
  ['t', 'Tokens'],
  ['e', 'Sessions'],
  ['c', "Customers' links"],
] as const

test('g and a letter show each page of the menu', async () => {
  const { page, complaints } = await open()
  await page.goto(urlOf('filled', 'now'))
  await untilShown(page, 'Now')
  expect(await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').count()).toBe(keys.length)
  for (const [key, title] of keys) {
    await page.keyboard.press('g')
    await page.keyboard.press(key)
    await untilShown(page, title)
  }
  expect(complaints).toEqual([])
})

test('the keyboard shows its keys, and goes from page to page and from row to row', async () => {
  const { page, complaints, axeFaults } = await open()
  await page.goto(urlOf('filled', 'now'))
  await untilShown(page, 'Now')
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  expect(await axeFaults()).toEqual([])
  await page.keyboard.press('Escape')
  await page.keyboard.press('g')
  await page.keyboard.press('d')
  await page.getByRole('link', { name: hostile }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await untilShown(page, hostile)
  expect(page.url()).toBe(urlOf('filled', 'destination?id=crm'))
  expect(complaints).toEqual([])
})

test('what a session may not do is not offered', async () => {
  const { page } = await open()
  await page.goto(urlOf('customer', 'destination?id=crm'))
  await untilShown(page, hostile)
  const offered = await page.getByRole('button').allTextContents()
  expect(offered).toContain('Send a test')
  for (const refused of ['Pause', 'Resume', 'Drop', 'Replay', 'Try now'])
    expect(offered).not.toContain(refused)
  const links = await page.getByRole('link').allTextContents()
  for (const refused of ['Secret', 'History', 'Audit', 'Tokens', 'Sessions', 'Customers'])
    expect(links).not.toContain(refused)
})

test('a new destination gets the only source, also if somebody types before the sources have come', async () => {
  const { page, complaints } = await open()
  const { promise: isTyped, resolve: typed } = Promise.withResolvers<void>()
  await page.route('**/v1/sources', async (route) => {
    await isTyped
    const response = await route.fetch()
    const { sources }: { sources: unknown[] } = await response.json()
    await route.fulfill({ response, json: { sources: sources.slice(0, 1) } })
  })
  await page.goto(urlOf('filled', 'new-destination'))
  await untilShown(page, 'Add a destination')
  await page.getByLabel('Id').fill('erp')
  await page.getByLabel('Full URL').fill('https://erp.example.com/hook')
  typed()
  await until('it has the source', async () => (await page.getByLabel('Sources').inputValue()) === 'shop')
  expect(await page.getByLabel('Id').inputValue()).toBe('erp')
  await page.getByLabel('Sources').fill('')
  await page.getByLabel('Name', { exact: true }).fill('ERP')
  expect(await page.getByLabel('Sources').inputValue()).toBe('')
  expect(complaints).toEqual([])
})

test('a server that does not answer any more is told, with since when, until it answers again', async () => {
  const { page, axeFaults } = await open()
  let isAway = false
  await page.route('**/v1/**', (route) => (isAway ? route.abort() : route.continue()))
  await page.goto(urlOf('filled', 'now'))
  await untilShown(page, 'Now')
  isAway = true
  await page.getByText(/^Stale since/).waitFor()
  expect(await axeFaults()).toEqual([])
  isAway = false
  await page.getByText(/^Stale since/).waitFor({ state: 'detached' })
})

test('all of it has at most 150 KB, gzipped', () => {
  const manifest: Record<string, { gzipped: number }> = JSON.parse(
    readFileSync(join(folder, 'dist/console/manifest.json'), 'utf8'),
  )
  const sizes = Object.values(manifest).map(({ gzipped }) => gzipped)
  expect(sizes).toHaveLength(4)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000)
})
