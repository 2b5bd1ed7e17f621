import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { startChromium } from '../support/chromium.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startUp, type Up } from './up-process.ts'

// The console as a stranger uses it: in Chromium, on a real server with a real Kafka.

const hostile = '<img src=x onerror=alert(1)>'
const hostileAnswer = '<script>alert(2)</script><b onclick=alert(3)>"\'`${}'

let folder = ''
let up: Up
let browser: Browser
let page: Page
let receiver: Receiver
let isBroken = false
/** What Chromium has complained about: errors, refusals of the policy, dialogs that code has opened. */
const complaints: string[] = []

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-console-')))
  const broken = answer(503, { 'content-type': 'text/html' }, hostileAnswer)
  const mended = answer(200)
  ;[up, browser, receiver] = await Promise.all([
    startUp(folder, inject('program'), { SLUICE_ATTEMPTS_ANSWERS: 'true' }),
    startChromium(),
    startReceiver((...given) => (isBroken ? broken : mended)(...given)),
  ])
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (line) => {
    // The answer 401 of a browser that isn't signed in yet is a line, too.
    if (line.type() === 'error' && !line.text().includes('status of 4')) complaints.push(line.text())
  })
  page.on('dialog', (dialog) => {
    complaints.push(`dialog ${dialog.message()}`)
    void dialog.dismiss()
  })
})

afterAll(async () => {
  await browser?.close()
  await up?.interrupt()
  await receiver?.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

function consoleUrl(path: string): string {
  return new URL(path, link()).href
}

/** The link that signs in, which `sluice up` prints. */
function link(): string {
  return /(http:\S+\/console\/#code=\S+)/.exec(up.said)?.[1] ?? ''
}

async function press(name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).last().click()
}

async function sends(messageId: string): Promise<void> {
  const key = /-u (\S+):/.exec(up.said)?.[1] ?? ''
  const response = await fetch(`${up.origin}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` },
    body: JSON.stringify({ messageId, userId: 'u1', event: 'Order Completed' }),
  })
  expect(response.status).toBe(200)
}

/** Returns what axe finds on the page that is shown, in one line for each element. */
async function axeFaults(): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations }: { violations: { id: string; nodes: { html: string }[] }[] } =
    await page.evaluate('axe.run()')
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

test('a stranger adds a destination, mends it, finds a message and sends it again', async () => {
  await page.goto(link())
  await page.getByRole('heading', { name: 'Now' }).waitFor()
  expect(page.url()).not.toContain('code')

  await page.getByRole('link', { name: 'Destinations', exact: true }).click()
  await page.getByRole('link', { name: 'Add a destination' }).click()
  await page.getByLabel('Id').fill('crm')
  await page.getByLabel('Name', { exact: true }).fill(hostile)
  await page.getByLabel('Full URL').fill(`${receiver.origin}/crm`)
  await press('Add')
  await page.getByRole('heading', { name: hostile }).waitFor()

  await press('Send a test')
  await press('Send')
  await page.getByText('accepted', { exact: true }).waitFor()
  await press('Close')

  isBroken = true
  await sends('order-1')
  await page.getByText('failing', { exact: true }).first().waitFor()
  isBroken = false
  await press('Try now')
  await press('Try now')
  await page.getByText('Done.').waitFor()
  await press('Close')

  await page.getByRole('searchbox').fill('order-1')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: /timeline/ }).click()
  await page.getByText('delivered', { exact: true }).waitFor()
  expect(await page.getByText(hostileAnswer).first().textContent()).toBe(hostileAnswer)

  const before = receiver.requestsTo('/crm').length
  await press('Send again')
  await press('Count them')
  await press('Send 1 again')
  await page.getByText('done', { exact: true }).waitFor()
  await until('the message came again', () => receiver.requestsTo('/crm').length > before)
  expect(complaints).toEqual([])
})

test('a setting is saved after a look at the difference, and what others changed meanwhile is shown', async () => {
  await page.goto(consoleUrl('destination?id=crm&view=settings'))
  const other = await page.context().newPage()
  await other.goto(page.url())
  for (const [one, limit] of [
    [other, '7'],
    [page, '9'],
  ] as const) {
    await one.getByLabel('Requests a second').fill(limit)
    await one.getByRole('button', { name: 'Look at the difference' }).click()
    if (one === other) {
      await one.getByText('rateLimit.perSecond').or(one.getByText('rateLimit')).first().waitFor()
      await one.getByRole('button', { name: 'Save' }).click()
      await one.getByRole('dialog').waitFor({ state: 'detached' })
    }
  }
  await page.getByText('Somebody has changed it').waitFor()
  await other.close()
  await page.getByRole('button', { name: 'Take it over' }).click()
  await page.getByRole('button', { name: 'Look at the difference' }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.goto(consoleUrl('destination?id=crm&view=history'))
  await page.getByRole('listitem').nth(2).waitFor()
  expect(await page.getByRole('listitem').count()).toBeGreaterThan(2)
})

test('a secret is made, rotated and ended', async () => {
  await page.goto(consoleUrl('destination?id=crm&view=secret'))
  await press('Make a secret')
  await page.getByText('is shown this once').waitFor()
  await page.getByLabel('The old secret ends').selectOption('In a day')
  await press('Make a new secret')
  await page.getByRole('button', { name: 'End the old secret' }).click()
  await page.getByText('The old secret has ended.').waitFor()
  expect(await page.getByRole('button', { name: 'End the old secret' }).count()).toBe(0)
})

const pages = [
  ['now', 'Now'],
  ['find?q=order-1', 'Find'],
  ['message?id=order-1', 'Message order-1'],
  ['destinations', 'Destinations'],
  ['destination?id=crm', hostile],
  ['destination?id=crm&view=attempts', hostile],
  ['destination?id=crm&view=settings', hostile],
  ['new-destination', 'Add a destination'],
  ['dead-letters', 'Dead letters'],
  ['replays', 'Replays'],
  ['sources', 'Sources'],
  ['source?id=app', 'Source'],
  ['history', 'History of the catalog'],
  ['audit', 'Audit'],
  ['tokens', 'Tokens'],
  ['links', "Customers' links"],
  ['elsewhere', 'No such page'],
] as const

test('no page has a fault that axe finds, in light and in dark, and none is wider than 360 px', async () => {
  for (const [path, title] of pages) {
    await page.emulateMedia({ colorScheme: 'light' })
    await page.goto(consoleUrl(path))
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
    await page.getByText('Loading…').first().waitFor({ state: 'detached' })
    expect([path, await axeFaults()]).toEqual([path, []])
    await page.emulateMedia({ colorScheme: 'dark' })
    expect([path, 'dark', await axeFaults()]).toEqual([path, 'dark', []])
    await page.setViewportSize({ width: 360, height: 740 })
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    expect([path, overflow]).toEqual([path, 0])
    await page.setViewportSize({ width: 1280, height: 900 })
  }
  expect(complaints).toEqual([])
})

test('the keyboard reaches the pages, the search box and the list of keys', async () => {
  await page.goto(consoleUrl('now'))
  await page.getByRole('heading', { name: 'Now' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  expect(await axeFaults()).toEqual([])
  await page.keyboard.press('Escape')
  await page.keyboard.press('g')
  await page.keyboard.press('d')
  await page.getByRole('heading', { name: 'Destinations' }).waitFor()
  await page.getByRole('link', { name: hostile }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: hostile }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('nobody')
  await page.keyboard.press('Enter')
  await page.getByText('The delivery log has no message with this id.').waitFor()
})

test('signing out shows the page to sign in, and a wrong token is refused with advice', async () => {
  await press('Sign out')
  await page.getByLabel('Token').fill('sluice_wrong')
  await press('Sign in')
  await page.getByRole('alert').waitFor()
  expect(await axeFaults()).toEqual([])
})

test('all of it has at most 150 KB, gzipped', () => {
  const file = join(dirname(inject('program')), 'console/manifest.json')
  const manifest: Record<string, { gzipped: number }> = JSON.parse(readFileSync(file, 'utf8'))
  const sizes = Object.values(manifest).map(({ gzipped }) => gzipped)
  expect(sizes.length).toBeGreaterThanOrEqual(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000)
})
