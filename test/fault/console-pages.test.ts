import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Browser, Page } from 'playwright-core'
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
  served.set('file', await serveExamples(bundle, { rights: all, catalog: 'file' }))
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

/** How many pixels of tables and tabs are hidden at most, because they are wider than their place. */
const hiddenAside = `Math.max(0, ...[...document.querySelectorAll('.scroll:has(> .cards), .tabs')].map(
  ({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`

function urlOf(state: string, path: string): string {
  return `${served.get(state)?.origin ?? ''}/console/${path}`
}

async function open() {
  const shown = await openConsolePage(browser)
  onTestFinished(shown.close)
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
      // On a phone, nobody has to push anything aside to read a row of a table, or to see all views.
      expect(await page.evaluate(hiddenAside)).toBe(0)
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

test('a customer is sent to no page that is not for them', async () => {
  const { page } = await open()
  const missing = { type: '/problems/not-found', title: 'Not found', status: 404, detail: 'There is none.' }
  await page.route('**/v1/destinations/crm/health', (route) => route.fulfill({ status: 404, json: missing }))
  await page.goto(urlOf('customer', 'destination?id=crm'))
  await page.getByText('It may have been removed.').waitFor()
  expect(await page.getByRole('main').getByRole('link').count()).toBe(0)
  await page.route('**/v1/sources', (route) => route.fulfill({ json: { sources: [], catalogVersion: 'r1' } }))
  await page.goto(urlOf('customer', 'sources'))
  await page.getByText('No source is among what you see.').waitFor()
  await page.goto(urlOf('customer', 'message?id=m1'))
  await page.getByRole('heading', { name: /^To / }).first().waitFor()
  const facts = page.locator('.facts')
  expect(await facts.getByText('Source', { exact: true }).count()).toBe(1)
  expect(await facts.getByRole('link').count()).toBe(0)
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

test.each([
  ['destinations', 'Destinations', 'Add a destination'],
  ['sources', 'Sources', 'Add a source'],
  ['links', "Customers' links", 'Make a link'],
  ['tokens', 'Tokens', 'Make a token'],
])(
  'while the catalog is in a file, %s says so before a form, with the way out',
  async (path, title, name) => {
    const { page, complaints, axeFaults, overflow } = await open()
    await page.goto(urlOf('file', path))
    await untilShown(page, title)
    expect(await page.getByRole('button', { name }).isDisabled()).toBe(true)
    await page.getByRole('note').getByText('sluice catalog import FILE').waitFor()
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 900 })
      expect([width, await overflow(), await axeFaults()]).toEqual([width, 0, []])
    }
    expect(complaints).toEqual([])
  },
)

test('while the catalog is in a file, nobody fills the form of a destination, or pauses one', async () => {
  const { page, axeFaults } = await open()
  await page.goto(urlOf('file', 'new-destination'))
  await untilShown(page, 'Add a destination')
  await page.getByRole('note').getByText('Edit the file').waitFor()
  expect(await page.getByLabel('Full URL').count()).toBe(0)
  await page.goto(urlOf('file', 'destination?id=crm'))
  await untilShown(page, hostile)
  await page.getByRole('button', { name: 'Pause' }).click()
  const dialog = page.getByRole('dialog', { name: 'Pause' })
  await dialog.getByText('in the file').waitFor()
  expect(await dialog.getByRole('button').allTextContents()).toEqual(['✕', 'Close'])
  expect(await axeFaults()).toEqual([])
})

test('a destination that was added is being stored until the server has read it', async () => {
  const { page, axeFaults } = await open()
  let isRead = false
  await page.route('**/v1/destinations/crm/health', (route) =>
    isRead
      ? route.continue()
      : route.fulfill({
          status: 404,
          contentType: 'application/problem+json',
          body: JSON.stringify({ type: '/problems/not-found', title: 'Not found', status: 404, detail: 'x' }),
        }),
  )
  await page.goto(urlOf('filled', 'new-destination'))
  await untilShown(page, 'Add a destination')
  await page.getByLabel('Id').fill('crm')
  await page.getByLabel('Full URL').fill('https://crm.example.com/hook')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('status').filter({ hasText: 'Being stored…' }).waitFor()
  expect([await page.getByRole('alert').count(), await axeFaults()]).toEqual([0, []])
  isRead = true
  await untilShown(page, hostile)
  // Whoever comes without having added it is told what isn't there.
  isRead = false
  await page.reload()
  await page.getByText('It may have been removed.').waitFor()
})

test('a destination without a secret says so to whoever may make one', async () => {
  const { page, axeFaults, overflow } = await open()
  await page.route('**/v1/destinations/crm/health', async (route) => {
    const response = await route.fetch()
    const health: object = await response.json()
    await route.fulfill({ response, json: { ...health, isSigned: false } })
  })
  await page.setViewportSize({ width: 360, height: 740 })
  await page.goto(urlOf('customer', 'destination?id=crm'))
  await untilShown(page, hostile)
  expect(await page.getByText('not signed').count()).toBe(0)
  await page.goto(urlOf('filled', 'destination?id=crm'))
  await page.getByRole('link', { name: 'Make a secret' }).waitFor()
  expect([await axeFaults(), await overflow()]).toEqual([[], 0])
  await page.getByRole('link', { name: 'Make a secret' }).click()
  await page.getByRole('heading', { name: 'Secret', exact: true }).waitFor()
})

test('saved settings are said to be saved, until others are looked at', async () => {
  const { page, axeFaults } = await open()
  await page.goto(urlOf('filled', 'destination?id=crm&view=settings'))
  await untilShown(page, hostile)
  await page.getByLabel('Name', { exact: true }).fill('ERP')
  await page.getByRole('button', { name: 'Review changes' }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page
    .getByRole('status')
    .filter({ hasText: /^Saved at \d\d:\d\d:\d\d\./ })
    .waitFor()
  expect(await axeFaults()).toEqual([])
  await page.getByRole('button', { name: 'Review changes' }).click()
  await page.getByText(/^Saved at/).waitFor({ state: 'detached' })
})

test('an undo shows what it would change now, and not what was changed then', async () => {
  const { page, axeFaults } = await open()
  await page.goto(urlOf('filled', 'history'))
  await untilShown(page, 'History of the catalog')
  await page.getByRole('button', { name: 'Undo' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('This is what the undo changes now:').waitFor()
  expect(await dialog.locator('del, ins').allTextContents()).toEqual(['paused', 'on'])
  expect(await axeFaults()).toEqual([])
  await dialog.getByRole('button', { name: 'Undo it' }).click()
  await dialog.getByText('Undone by change').waitFor()
  expect(await axeFaults()).toEqual([])
})

test('the answer to each try can be seen beside the request', async () => {
  const { page, axeFaults, overflow } = await open()
  await page.route('**/v1/log/messages/order-4711', async (route) => {
    const response = await route.fetch()
    const message: { deliveries: { records: Record<string, unknown>[] }[] } = await response.json()
    for (const delivery of message.deliveries) {
      const [first] = delivery.records
      delivery.records = [500, 502, 503].map((status, place) => ({
        ...first,
        attempt: place + 1,
        status,
        answer: `answer ${status}`,
      }))
    }
    await route.fulfill({ response, json: message })
  })
  await page.goto(urlOf('filled', 'message?id=order-4711'))
  await untilShown(page, 'Message order-4711')
  await page.getByRole('button', { name: 'Show request and answer' }).click()
  const answer = page.getByRole('region', { name: 'Answer of main' })
  await answer.getByText('answer 503', { exact: true }).waitFor()
  await answer.getByLabel('Try of 3').selectOption({ index: 0 })
  await answer.getByText('answer 500', { exact: true }).waitFor()
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 900 })
    expect([width, await overflow(), await axeFaults()]).toEqual([width, 0, []])
  }
})

test('one message is sent again after one question', async () => {
  const { page, axeFaults } = await open()
  const orders: unknown[] = []
  await page.route('**/v1/replays', (route) => {
    orders.push(route.request().postDataJSON())
    return route.continue()
  })
  await page.goto(urlOf('filled', 'message?id=order-4711'))
  await untilShown(page, 'Message order-4711')
  await page.getByRole('button', { name: 'Send again' }).click()
  expect(await axeFaults()).toEqual([])
  await page.getByRole('button', { name: 'Send it' }).click()
  await page.getByRole('status').filter({ hasText: 'It is on its way' }).waitFor()
  expect(orders).toEqual([
    { selection: { of: 'events', destination: 'erp', messageId: 'order-4711' }, again: true },
  ])
  expect(await axeFaults()).toEqual([])
})

test('a destination that is paused says who has paused it, and its history what was changed, at a glance', async () => {
  const { page, complaints, axeFaults, overflow } = await open()
  await page.route('**/v1/destinations/crm/health', async (route) => {
    const response = await route.fetch()
    const health: { health: object } = await response.json()
    const paused = { ...health.health, condition: 'paused', why: 'paused in the catalog' }
    await route.fulfill({ response, json: { ...health, state: 'paused', health: paused } })
  })
  await page.route('**/v1/catalog/history?*', async (route) => {
    const response = await route.fetch()
    const list: { changes: object[] } = await response.json()
    const [change] = list.changes
    const secret = '${kept:2026-07-23:0123456789abcdef}'
    const changes = [
      { by: 'ben', fields: [{ field: 'sharedSecret', before: null, after: secret }] },
      { by: hostile, fields: [{ field: 'state', before: 'on', after: 'paused' }] },
      { by: 'ann', fields: [{ field: 'id', before: null, after: 'crm' }] },
    ].map((one, place) => ({ ...change, ...one, revision: 9 - place }))
    await route.fulfill({ response, json: { ...list, changes } })
  })
  await page.goto(urlOf('filled', 'destination?id=crm'))
  await untilShown(page, hostile)
  const state = page.locator('p.lead')
  await state.getByText(hostile).waitFor()
  expect(await state.textContent()).toMatch(/paused in the catalog by <img src=x onerror=alert\(1\)>.* ago/)
  expect([await axeFaults(), await overflow()]).toEqual([[], 0])
  await state.getByRole('link', { name: 'its history' }).click()
  const changes = page.getByRole('list', { name: 'Changes' }).getByRole('listitem')
  await changes.getByText('state: on → paused').waitFor()
  expect(await page.locator('main').textContent()).not.toContain('0123456789abcdef')
  expect(await changes.first().textContent()).toContain('sharedSecret')
  await page.setViewportSize({ width: 360, height: 740 })
  expect([await axeFaults(), await overflow()]).toEqual([[], 0])
  expect(complaints).toEqual([])
})

test('the menu and the session lie apart however far the page is scrolled', async () => {
  const { page } = await open()
  await page.setViewportSize({ width: 1280, height: 420 })
  await page.goto(urlOf('filled', 'find?q=crm'))
  await untilShown(page, 'Find')
  for (const top of [0, 100, 400, 4_000]) {
    await page.evaluate(`scrollTo(0, ${top})`)
    const menu = await page.getByRole('navigation', { name: 'Pages' }).boundingBox()
    const who = await page.getByRole('complementary', { name: 'Your session' }).boundingBox()
    const main = await page.locator('main').boundingBox()
    expect((menu?.y ?? 0) + (menu?.height ?? 0)).toBeLessThanOrEqual(who?.y ?? 0)
    expect((menu?.x ?? 0) + (menu?.width ?? 0)).toBeLessThanOrEqual(main?.x ?? 0)
  }
})

/** A browser without a window shows all of its tabs, so the page has to be told that it isn't seen. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`{
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} })
    document.dispatchEvent(new Event('visibilitychange'))
  }`)
}

test('a person opens more tabs than a browser has connections, and those that come back are live again', async () => {
  const { page, complaints } = await open()
  const path = urlOf('filled', 'destination?id=crm')
  const tabs: Page[] = []
  for (let tab = 0; tab < 8; tab++) {
    const shown = await page.context().newPage()
    await Promise.all([shown.waitForRequest('**/v1/live?*'), shown.goto(path)])
    await untilShown(shown, hostile)
    await setHidden(shown, true)
    tabs.push(shown)
  }
  const [first] = tabs
  if (first === undefined) throw new Error('there are tabs')
  await Promise.all([first.waitForRequest('**/v1/live?*'), setHidden(first, false)])
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
