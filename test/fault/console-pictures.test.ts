import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChromium } from '../support/chromium.ts'
import { type ConsolePage, openConsolePage, untilShown } from '../support/console-page.ts'
import { type ConsoleScene, openConsoleScene } from '../support/console-scene.ts'
import { produce } from '../support/kafka.ts'
import { blockOf, stateOf } from '../support/log-blocks.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

/**
 * The pages of a small busy installation, in light, in dark and on a phone. If `CONSOLE_PICTURES` names a folder,
 * such as `docs/console`, the pictures of the docs are written to it (`npm run draw:console`). With
 * `CONSOLE_PICTURES_OF=all`, it gets a picture of each page in each look.
 */
const picturesInto = process.env['CONSOLE_PICTURES']
const isAll = process.env['CONSOLE_PICTURES_OF'] === 'all'
const root = resolve(import.meta.dirname, '../..')

const customers = [
  { id: 'acme.crm', name: 'Acme CRM', tenant: 'acme', status: 200, perMinute: 42 },
  { id: 'acme.warehouse', name: 'Acme Warehouse', tenant: 'acme', status: 200, perMinute: 18 },
  { id: 'globex.billing', name: 'Globex Billing', tenant: 'globex', status: 503, perMinute: 25 },
  { id: 'hooli.push', name: 'Hooli Push', tenant: 'hooli', status: 200, perMinute: 66 },
  { id: 'initech.erp', name: 'Initech ERP', tenant: 'initech', status: 422, perMinute: 6 },
  { id: 'umbrella.lab', name: 'Umbrella Lab', tenant: 'umbrella', status: 200, perMinute: 12 },
] as const

let sluice: ConsoleScene
let browser: Browser
let receiver: Receiver

beforeAll(async () => {
  ;[sluice, browser, receiver] = await Promise.all([
    openConsoleScene({ SLUICE_RETRY_LADDER: '5m', SLUICE_RETRY_THEN: '15m' }),
    startChromium(),
    startReceiver((request, response, nth) => {
      const { status } = customers.find(({ id }) => request.path === `/${id}`) ?? { status: 200 }
      const text =
        status === 422 ? '{"error":"currency is missing"}' : status === 503 ? 'upstream is down' : 'ok'
      answer(status, { 'content-type': 'text/plain' }, text)(request, response, nth)
    }),
  ])
  for (const { id, name, tenant } of customers)
    await sluice.call('PUT', `/v1/destinations/${id}`, {
      id,
      name,
      sources: ['app'],
      labels: { tenant },
      hooks: [{ id: 'main', url: `${receiver.origin}/${id}` }],
    })
  await sluice.call('POST', '/v1/links', {
    name: 'acme',
    label: 'tenant=acme',
    rights: ['see', 'replay', 'test'],
  })
  await writePast()
  for (let order = 1; order <= 40; order++)
    await sluice.track({
      messageId: `order-${4_700 + order}`,
      properties: { total: order * 3, currency: 'EUR' },
    })
  await until('what fails is known', async () => {
    const { attention } = await sluice.call('GET', '/v1/status')
    return Array.isArray(attention) && attention.length >= 2
  })
})

afterAll(async () => {
  await browser?.close()
  await sluice?.close()
  await receiver?.stop()
})

/** Writes what workers would have written to the delivery log in the last hour. */
async function writePast(): Promise<void> {
  const nowMs = Date.now()
  for (const { id, status, perMinute } of customers) {
    const states = []
    for (let minute = 60; minute > 0; minute--)
      for (let one = 0; one < perMinute; one++) {
        const wave = 1 + 0.4 * Math.sin(minute / 7)
        if (one > perMinute * wave) continue
        const isLate = minute < 12
        const shown = isLate ? status : 200
        states.push(
          stateOf({
            destination: id,
            source: 'app',
            hook: 'main',
            messageId: `${id}-${minute}-${one}`,
            atMs: nowMs - minute * 60_000 + (one * 60_000) / perMinute,
            firstSeenMs: nowMs - minute * 60_000,
            status: shown,
            verdict: shown === 200 ? 1 : shown === 503 ? 2 : 3,
            isEnd: shown !== 503,
            durationMs: Math.round(20 + ((one * 37) % 90) + (isLate ? 40 : 0)),
          }),
        )
      }
    await produce(`${sluice.prefix}attempts`, [{ key: '0', value: blockOf(states), partition: 0 }])
  }
}

const pages = [
  ['now', 'Now'],
  ['find?q=order-4711', 'Find'],
  ['message?id=order-4711', /^Message/],
  ['destinations', 'Destinations'],
  ['destination?id=globex.billing', 'Globex Billing'],
  ['destination?id=acme.crm', 'Acme CRM'],
  ['destination?id=acme.crm&view=attempts', 'Acme CRM'],
  ['destination?id=acme.crm&view=access', 'Acme CRM'],
  ['destination?id=acme.crm&view=settings', 'Acme CRM'],
  ['destination?id=acme.crm&view=secret', 'Acme CRM'],
  ['destination?id=acme.crm&view=history', 'Acme CRM'],
  ['new-destination', 'Add a destination'],
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

/** The pictures of the docs. */
const kept = [
  { name: 'now', path: 'now', look: 'light' },
  { name: 'destination', path: 'destination?id=globex.billing', look: 'light' },
  { name: 'dead-letters', path: 'dead-letters', look: 'dark' },
  { name: 'phone', path: 'destinations', look: 'phone' },
] as const

const looks = {
  light: { colorScheme: 'light', viewport: { width: 1080, height: 660 } },
  dark: { colorScheme: 'dark', viewport: { width: 1080, height: 660 } },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 640 } },
} as const

test('have no fault that axe finds, fit their window, and can be drawn', async () => {
  const shown = await openConsolePage(browser)
  const { page } = shown
  await page.goto(await sluice.link())
  await untilShown(page, 'Now')
  for (const [look, { colorScheme, viewport }] of Object.entries(looks)) {
    await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme })
    for (const [path, title] of pages.filter(([one]) => isVisited(one, look))) {
      await page.goto(`${sluice.origin}/console/${path}`)
      await untilShown(page, title)
      expect([look, path, await shown.axeFaults()]).toEqual([look, path, []])
      expect([look, path, await shown.overflow()]).toEqual([look, path, 0])
      await draw(shown, { look, path })
    }
  }
  expect(shown.complaints).toEqual([])
})

test('a phone shows the hosts of destinations whole', async () => {
  const { page } = await openConsolePage(browser)
  await page.setViewportSize(looks.phone.viewport)
  await page.goto(await sluice.link())
  await untilShown(page, 'Now')
  await page.goto(`${sluice.origin}/console/destinations`)
  await untilShown(page, 'Destinations')
  const hosts = page.locator('td .cut')
  await hosts.first().waitFor()
  const widths = await hosts.evaluateAll((all) =>
    all.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
  )
  expect(new Set(widths)).toEqual(new Set([0]))
})

/** While the pictures of the docs are drawn, only their pages are visited. */
function isVisited(path: string, look: string): boolean {
  const isOfDocs = kept.some((one) => one.path === path && one.look === look)
  return picturesInto === undefined || isAll || isOfDocs
}

async function draw({ page }: ConsolePage, { look, path }: { look: string; path: string }): Promise<void> {
  if (picturesInto === undefined) return
  const into = resolve(root, picturesInto)
  mkdirSync(into, { recursive: true })
  if (isAll) {
    const name = `${path.replaceAll(/\W+/g, '-')}.${look}.png`
    await page.screenshot({ path: join(into, name), fullPage: true })
  }
  const picture = kept.find((one) => one.path === path && one.look === look)
  if (picture !== undefined && !isAll) writeFileSync(join(into, `${picture.name}.webp`), await webpOf(page))
}

/** Draws what the window shows, once its charts are drawn. */
async function webpOf(page: Page): Promise<Buffer> {
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
  const browserTab = await page.context().newCDPSession(page)
  const { data } = await browserTab.send('Page.captureScreenshot', { format: 'webp', quality: 80 })
  await browserTab.detach()
  return Buffer.from(data, 'base64')
}
