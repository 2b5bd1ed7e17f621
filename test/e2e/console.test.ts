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
    openConsoleScene({ SLUICE_ATTEMPTS_USER_KEY: 'hashes the ids of users' }),
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
  await page.getByRole('dialog').waitFor()
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
  await press('Send it')
  await page.getByText('It is on its way').waitFor()
  await expectNoFault('a message that is sent again')
  await page
    .getByRole('link', { name: /^replay / })
    .last()
    .click()
  await page.getByText('done', { exact: true }).waitFor()
  await until('the message came again', () => receiver.requestsTo('/crm').length > before)
  expect(shown.complaints).toEqual([])
})

test('a step down goes to the next row, and a link of what was found leads into the results', async () => {
  await page.getByRole('searchbox').fill('u1')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'user', exact: true }).focus()
  await page.keyboard.press('Enter')
  const rows = page.getByRole('region', { name: 'Records of the delivery log' }).locator('tbody tr')
  await rows.nth(1).waitFor()
  await until('the focus is in the results', async () =>
    Boolean(await page.evaluate("document.activeElement.ariaLabel === 'Results'")),
  )
  for (const row of [0, 1]) {
    await page.keyboard.press('j')
    await until('the row has the focus', async () => (await rows.nth(row).locator(':focus').count()) === 1)
  }
  await expectNoFault('the results')
})

test('a fresh link that is pasted into the same tab signs in, and a used one says so', async () => {
  await page.goto(`${sluice.origin}/console/`)
  await untilShown(page, 'Now')
  const link = await sluice.link()
  // Within the page there is no answer to wait for.
  expect(await page.goto(link)).toBe(null)
  await until('the code is used', () => !page.url().includes('code'))
  await untilShown(page, 'Now')
  expect(await page.goto(link)).toBe(null)
  await page.getByRole('alert').getByText('The link has been used').waitFor()
  expect(await page.goto(await sluice.link())).toBe(null)
  await untilShown(page, 'Now')
  expect(page.url()).not.toContain('code')
})

test('a customer whose link is revoked is told to ask for another one', async () => {
  const wanted = { name: 'acme', label: 'tenant=acme', rights: ['see'] }
  const link = new URL(String((await sluice.call('POST', '/v1/links', wanted))['link']), sluice.origin).href
  const customer = await openConsolePage(browser)
  await customer.page.goto(link)
  await untilShown(customer.page, 'Now')
  await page.goto(`${sluice.origin}/console/links`)
  await press('Revoke')
  await page.getByRole('dialog').getByText('1 session ends.').waitFor()
  await expectNoFault('a link that is to be revoked')
  await press('Revoke')
  await customer.page.getByText('Open your link again.').waitFor()
  await customer.page.goto(link)
  await customer.page.getByText('Your link has ended').waitFor()
  expect(await customer.page.getByLabel('Token').isVisible()).toBe(false)
  expect([await customer.axeFaults(), customer.complaints]).toEqual([[], []])
  await customer.page.context().close()
})

test('signing out shows the page to sign in, a wrong token is refused with advice, and no policy was broken', async () => {
  await press('Sign out')
  await page.getByLabel('Token').fill('sluice_wrong')
  await press('Sign in')
  await page.getByRole('alert').waitFor()
  await expectNoFault('the page to sign in')
  expect(shown.complaints).toEqual([])
  expect((await sluice.wholeLog()).filter(({ msg }) => msg === refusedPart)).toEqual([])
})
