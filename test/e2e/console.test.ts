import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChromium } from '../support/chromium.ts'
import { type ConsolePage, openConsolePage, untilShown } from '../support/console-page.ts'
import { type ConsoleScene, openConsoleScene, refusedPart } from '../support/console-scene.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

// The console as a stranger uses it, in Chromium, on a real server with a real Kafka: the shortest way through it.
// `test/fault/console-*.test.ts` have the whole.

const hostile = '<img src=x onerror=alert(1)>'
const hostileAnswer = '<script>alert(2)</script><b onclick=alert(3)>"\'`${}'

let sluice: ConsoleScene
let browser: Browser
let shown: ConsolePage
let page: Page
let receiver: Receiver
let isBroken = false

beforeAll(async () => {
  const broken = answer(503, { 'content-type': 'text/html' }, hostileAnswer)
  const mended = answer(200)
  ;[sluice, browser, receiver] = await Promise.all([
    openConsoleScene(),
    startChromium(),
    startReceiver((...given) => (isBroken ? broken : mended)(...given)),
  ])
  shown = await openConsolePage(browser)
  page = shown.page
})

afterAll(async () => {
  await browser?.close()
  await sluice?.close()
  await receiver?.stop()
})

async function press(name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).last().click()
}

async function expectNoFault(where: string): Promise<void> {
  expect([where, await shown.axeFaults()]).toEqual([where, []])
}

test('a stranger adds a destination, mends it, finds a message and sends it again', async () => {
  await page.goto(await sluice.link())
  await untilShown(page, 'Now')
  expect(page.url()).not.toContain('code')
  await expectNoFault('now')

  await page.getByRole('link', { name: 'Destinations', exact: true }).click()
  await page.getByRole('link', { name: 'Add a destination' }).click()
  await page.getByLabel('Id').fill('crm')
  await page.getByLabel('Name', { exact: true }).fill(hostile)
  await page.getByLabel('Full URL').fill(`${receiver.origin}/crm`)
  await press('Add')
  await untilShown(page, hostile)

  await press('Send a test')
  await press('Send')
  await page.getByText('accepted', { exact: true }).waitFor()
  await expectNoFault('the result of a test')
  await press('Close')

  isBroken = true
  await sluice.track({ messageId: 'order-1' })
  await page.getByText('failing', { exact: true }).first().waitFor()
  isBroken = false
  await press('Try now')
  await press('Try now')
  await page.getByText('Done.').waitFor()
  await press('Close')

  await page.getByRole('searchbox').fill('order-1')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: /timeline/ }).click()
  await page.getByText('delivered', { exact: true }).first().waitFor()
  expect(await page.getByText(hostileAnswer).first().textContent()).toBe(hostileAnswer)
  await expectNoFault('a message')

  const before = receiver.requestsTo('/crm').length
  await press('Send again')
  await press('Count them')
  await press('Send 1 again')
  await page.getByText('done', { exact: true }).waitFor()
  await until('the message came again', () => receiver.requestsTo('/crm').length > before)
  expect(shown.complaints).toEqual([])
})

test('signing out shows the page to sign in, a wrong token is refused with advice, and no policy was broken', async () => {
  await press('Sign out')
  await page.getByLabel('Token').fill('sluice_wrong')
  await press('Sign in')
  await page.getByRole('alert').waitFor()
  await expectNoFault('the page to sign in')
  expect(shown.complaints).toEqual([])
  expect(sluice.log.filter(({ msg }) => msg === refusedPart)).toEqual([])
})
