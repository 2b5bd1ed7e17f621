import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startChromium } from '../support/chromium.ts'
import { type ConsolePage, openConsolePage, untilSeen, untilShown } from '../support/console-page.ts'
import { type ConsoleScene, openConsoleScene, refusedPart } from '../support/console-scene.ts'
import { type KeyboardOnly, keyboardOnly } from '../support/keyboard-only.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

// A stranger's whole way through the console, with the keyboard alone, on a real server with a real Kafka.

const windows = [
  { look: 'wide', viewport: { width: 1280, height: 900 } },
  { look: 'as small as a phone', viewport: { width: 360, height: 740 } },
] as const

describe.each(windows)('a stranger with a keyboard, in a window that is $look,', ({ look, viewport }) => {
  let sluice: ConsoleScene
  let browser: Browser
  let receiver: Receiver
  let shown: ConsolePage
  let page: Page
  let hands: KeyboardOnly
  /** The status with which the endpoint answers. */
  let status = 200

  beforeAll(async () => {
    ;[sluice, browser, receiver] = await Promise.all([
      openConsoleScene(),
      startChromium(),
      startReceiver((...given) => answer(status, {}, `answer ${status}`)(...given)),
    ])
    shown = await openConsolePage(browser, { viewport })
    page = shown.page
    hands = keyboardOnly(page)
  })

  afterAll(async () => {
    await browser?.close()
    await sluice?.close()
    await receiver?.stop()
  })

  /** Every step ends on a page without a fault. */
  async function expectNoFault(
    where: string,
    { axeFaults, complaints, overflow }: ConsolePage = shown,
  ): Promise<void> {
    expect([where, await axeFaults(), complaints, await overflow()]).toEqual([where, [], [], 0])
  }

  /** While a dialog is open, keys belong to it. */
  async function leaveDialog(where = page, by = hands): Promise<void> {
    await by.keys('Escape')
    await where.getByRole('dialog').waitFor({ state: 'detached' })
  }

  test('adds a destination and sends a test', async () => {
    await page.goto(await sluice.link())
    await untilShown(page, 'Now')
    await expectNoFault('now, without destinations')
    await hands.keys('g', 'd')
    await untilSeen(page.getByText('There are no destinations yet.'))
    await expectNoFault('no destinations')
    await hands.press('Add the first one.')
    await untilShown(page, 'Add a destination')
    await hands.fill('Id', 'acme.crm')
    await hands.fill('Name', 'Acme CRM')
    await hands.fill('Full URL', `${receiver.origin}/crm`)
    await hands.press('Filter, limits, labels')
    await hands.fill('Labels', 'tenant=acme')
    await hands.press('Add')
    await untilShown(page, 'Acme CRM')

    await hands.press('Send a test')
    await hands.press('Send')
    await untilSeen(page.getByText('accepted', { exact: true }))
    await expectNoFault('the result of a test')
    await leaveDialog()
    expect(receiver.requestsTo('/crm').map(({ headers }) => headers['x-sluice-test'])).toEqual(['true'])
  })

  test('sees that the endpoint fails, and tries again once it is repaired', async () => {
    status = 503
    await sluice.track({ messageId: 'order-1' })
    await untilSeen(page.getByText('failing', { exact: true }).first())
    await expectNoFault('a failing destination')
    await hands.keys('g', 'n')
    await untilSeen(page.getByRole('list', { name: 'Destinations that need attention' }))
    await expectNoFault('now, with a failing destination')
    await hands.keys('j', 'Enter')
    await untilShown(page, 'Acme CRM')
    status = 200
    await hands.press('Try now')
    await hands.press('Try now')
    await untilSeen(page.getByText('Done.'))
    await leaveDialog()
    await until('it came', () => receiver.requestsTo('/crm').length > 2)
  })

  test('finds the message, and sends it again', async () => {
    await hands.keys('/')
    await page.keyboard.type('order-1')
    await hands.keys('Enter')
    await untilSeen(page.getByRole('link', { name: /timeline/ }))
    await expectNoFault('what was found')
    await hands.press('Its timeline, with each try and answer')
    await untilShown(page, 'Message order-1')
    await untilSeen(page.getByText('delivered', { exact: true }).first())
    await expectNoFault('a message')
    const before = receiver.requestsTo('/crm').length
    await hands.press('Send again')
    await hands.press('Send it')
    await untilSeen(page.getByText('It is on its way'))
    await expectNoFault('a message that is sent again')
    await until('it came again', () => receiver.requestsTo('/crm').length > before)
    await leaveDialog()
  })

  test('replays dead letters', async () => {
    status = 400
    await sluice.track({ messageId: 'order-2' })
    await until('it was refused for good', () =>
      receiver.requests.some(({ body }) => body.toString().includes('order-2')),
    )
    await hands.keys('g', 'l')
    await untilShown(page, 'Dead letters')
    const group = page.getByRole('list', { name: /^Dead letters/ })
    await until('it is a dead letter', async () => {
      if ((await group.count()) > 0) return true
      await page.reload()
      await untilShown(page, 'Dead letters')
      return (await group.count()) > 0
    })
    await expectNoFault('dead letters')
    status = 200
    const before = receiver.requestsTo('/crm').length
    await hands.press('Replay')
    await hands.press('Count them')
    await untilSeen(page.getByRole('button', { name: 'Send 1 again' }))
    await expectNoFault('a replay that was counted')
    // The focus stays on the button.
    await untilSeen(page.locator(':focus', { hasText: 'Send 1 again' }))
    await hands.keys('Enter')
    await untilSeen(page.getByText('done', { exact: true }))
    await expectNoFault('a replay that is done')
    await until('it came', () => receiver.requestsTo('/crm').length > before)
    const accepted = page.locator('.figure', { hasText: 'Accepted' })
    await untilSeen(accepted.getByText('1', { exact: true }))
  })

  test('makes a secret, rotates it and ends the old one', async () => {
    await hands.keys('g', 'd')
    await untilSeen(page.getByRole('link', { name: 'Acme CRM' }))
    await hands.keys('j', 'Enter')
    await untilShown(page, 'Acme CRM')
    await hands.press('Secret')
    await hands.press('Make a secret')
    await untilSeen(page.getByText('is shown this once'))
    await expectNoFault('a new secret')
    await untilSeen(page.getByLabel('The old secret ends'))
    await hands.to('The old secret ends')
    await page.keyboard.type('In a day')
    await hands.press('Make a new secret')
    await untilSeen(page.getByRole('button', { name: 'End the old secret' }))
    await expectNoFault('two secrets')
    await hands.press('End the old secret')
    await untilSeen(page.getByText('The old secret has ended.'))
  })

  test('changes a setting after a look at the difference, and keeps what somebody else changes meanwhile', async () => {
    await hands.press('Settings')
    await untilSeen(page.getByLabel('Requests a second'))
    const path = `${sluice.origin}/v1/destinations/acme.crm`
    const headers = { authorization: `Bearer ${sluice.token}`, 'content-type': 'application/json' }
    const etag = (await fetch(path, { headers })).headers.get('etag') ?? ''
    const patch = { method: 'PATCH', headers: { ...headers, 'if-match': etag } }
    expect((await fetch(path, { ...patch, body: '{"maxInFlight":7}' })).status).toBe(200)
    await hands.fill('Requests a second', '9')
    await hands.press('Review changes')
    await untilSeen(page.getByText('Somebody has changed it'))
    await expectNoFault('a change of somebody else')
    await hands.press('Take it over, and keep my changes')
    await hands.press('Review changes')
    await untilSeen(page.getByRole('dialog'))
    await expectNoFault('a difference')
    await hands.press('Save')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await untilSeen(page.getByText(/^Saved at/))
    expect(await (await fetch(path, { headers })).json()).toMatchObject({
      destination: { maxInFlight: 7, rateLimit: { perSecond: 9 } },
    })
    await hands.press('History')
    await untilSeen(page.getByRole('listitem').nth(3))
    await expectNoFault('the history of a destination')
  })

  test('invites a customer, who sees what is theirs and nothing else', async () => {
    const other = { id: 'globex.crm', name: 'Globex CRM', sources: ['app'], labels: { tenant: 'globex' } }
    const put = await fetch(`${sluice.origin}/v1/destinations/globex.crm`, {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${sluice.token}`,
        'content-type': 'application/json',
        'if-none-match': '*',
      },
      body: JSON.stringify({ ...other, hooks: [{ url: `${receiver.origin}/globex` }] }),
    })
    expect([200, 201]).toContain(put.status)
    await hands.keys('g', 'c')
    await untilShown(page, "Customers' links")
    await hands.press('Make a link')
    await hands.fill('For', 'acme')
    await hands.fill('Shows what has the label', 'tenant=acme')
    await hands.to('See what endpoints have answered')
    await hands.keys('Space')
    await hands.to('Send test messages')
    await hands.keys('Space')
    await expectNoFault('a link that is made')
    await hands.press('Make it')
    const text = page.locator('dialog .copied')
    await untilSeen(text)
    await expectNoFault('a link that was made')
    const link = (await text.textContent()) ?? ''
    await leaveDialog()
    await untilSeen(page.getByText('tenant=acme').first())

    const customer = await openConsolePage(browser, { viewport: { width: 360, height: 740 } })
    const theirs = keyboardOnly(customer.page)
    await customer.page.goto(link)
    await untilShown(customer.page, 'Now')
    await expectNoFault('now of a customer', customer)
    expect(customer.page.url()).not.toContain('sluice_')
    await theirs.keys('g', 'd')
    await untilSeen(customer.page.getByRole('link', { name: 'Acme CRM' }))
    expect(await customer.page.locator('main').textContent()).not.toContain('Globex')
    await expectNoFault('destinations of a customer', customer)
    await theirs.keys('j', 'Enter')
    await untilShown(customer.page, 'Acme CRM')
    await theirs.press('Send a test')
    await theirs.press('Send')
    await untilSeen(customer.page.getByText('accepted', { exact: true }))
    await leaveDialog(customer.page, theirs)
    await expectNoFault('a destination of a customer', customer)
    await theirs.keys('/')
    await customer.page.keyboard.type('order-2')
    await theirs.keys('Enter')
    await untilSeen(customer.page.getByRole('link', { name: /timeline/ }))
    await theirs.press('Its timeline, with each try and answer')
    await untilSeen(customer.page.getByText('answer 400', { exact: true }).first())
    expect(await customer.page.getByRole('button', { name: 'Show request and answer' }).count()).toBe(0)
    await expectNoFault('a message of a customer', customer)
    // The keys of pages that a customer hasn't go nowhere.
    for (const key of ['a', 't', 'c', 'h']) await theirs.keys('g', key)
    await untilShown(customer.page, 'Message order-2')
    await customer.close()
  })

  test('signs out, and a page that is still open says so', async () => {
    const other = await page.context().newPage()
    await other.goto(page.url())
    await untilShown(other, "Customers' links")
    if (look !== 'wide') await hands.press('Menu')
    await hands.press('Sign out')
    await untilSeen(page.getByLabel('Token'))
    await expectNoFault('the page to sign in')
    await untilSeen(other.getByLabel('Token'))
    await other.close()
    expect((await sluice.wholeLog()).filter(({ msg }) => msg === refusedPart)).toEqual([])
  })
})
