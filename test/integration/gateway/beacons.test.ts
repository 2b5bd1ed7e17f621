import { createServer, type Server } from 'node:http'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChromium } from '../../support/chromium.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

/**
 * Calls of a real browser, from a page of another site. A browser sends JSON of another site only after a
 * preflight, and with credentials only if the answer to it names the page's origin.
 */

/** The page's script. It runs in the browser. */
const script = `
  const json = 'application/json'
  const beacon = (url, text) => navigator.sendBeacon(url, new Blob([text], { type: json }))
  const beaconAtTheEnd = (url, text) => addEventListener('pagehide', () => beacon(url, text))
  async function zippedFetch(url, text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
    const headers = { 'content-type': json, 'content-encoding': 'gzip' }
    const response = await fetch(url, { method: 'POST', headers, body: await new Response(stream).blob() })
    return response.status
  }
  async function keptFetch(url, body) {
    const init = { method: 'POST', headers: { 'content-type': json }, body, keepalive: true, credentials: 'include' }
    try {
      const response = await fetch(url, init)
      return { status: response.status, body: await response.text() }
    } catch (error) {
      return { failed: String(error) }
    }
  }`

let gateway: TestGateway
let browser: Browser
let site: Server
let sitePort = 0

beforeAll(async () => {
  site = createServer((request, response) => {
    response.writeHead(request.url === '/' ? 200 : 404, { 'content-type': 'text/html' })
    response.end(`<!doctype html><link rel="icon" href="data:,"><script>${script}</script>`)
  })
  await new Promise<void>((done) => site.listen(0, '127.0.0.1', done))
  sitePort = Object(site.address()).port
  ;[gateway, browser] = await Promise.all([startGateway(), startChromium()])
})

afterAll(async () => {
  await browser?.close()
  site.close()
  await gateway?.stop()
})

/** Opens a page of the site `localhost`, which is another one than the gateway's `127.0.0.1`. */
async function visit() {
  const context = await browser.newContext()
  const page = await context.newPage()
  const troubles: string[] = []
  page.on('console', (message) => message.type() === 'error' && troubles.push(message.text()))
  await page.goto(`http://localhost:${sitePort}/`)
  return { context, page, troubles }
}

/** Returns the call of a function of the page's script, as text. */
function call(name: string, ...args: readonly string[]): string {
  return `${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`
}

function hasArrived(messageId: string): Promise<boolean> {
  return until(`${messageId} has arrived`, async () =>
    (await gateway.read('events')).some(
      ({ value }) => value['messageId'] === messageId && value['event'] === 'Left',
    ),
  )
}

function messageOf(messageId: string): string {
  return JSON.stringify({ writeKey: 'KEY', type: 'track', userId: 'u1', event: 'Left', messageId })
}

test('a beacon with JSON arrives, also the one of a page that is left', async () => {
  const { context, page, troubles } = await visit()
  const url = `${gateway.origin}/v1/t`
  await page.evaluate(call('beaconAtTheEnd', url, messageOf('later')))
  const isQueued = await page.evaluate(call('beacon', url, messageOf('now')))
  expect(isQueued).toBe(true)
  await hasArrived('now')
  await page.goto('about:blank')
  await hasArrived('later')
  expect(troubles).toEqual([])
  await context.close()
})

test('a fetch that outlives its page and has credentials may read its answer', async () => {
  const { context, page, troubles } = await visit()
  const batch = `{"writeKey":"KEY","batch":[${messageOf('kept')}]}`
  const answer = await page.evaluate(call('keptFetch', `${gateway.origin}/v1/batch`, batch))
  expect(answer).toEqual({ status: 200, body: '{"success":true}' })
  await hasArrived('kept')
  expect(troubles).toEqual([])
  await context.close()
})

test('a page may send gzip, and name it in a header that a browser asks for first', async () => {
  const { context, page, troubles } = await visit()
  const url = `${gateway.origin}/v1/t`
  expect(await page.evaluate(call('zippedFetch', url, messageOf('zipped')))).toBe(200)
  await hasArrived('zipped')
  expect(troubles).toEqual([])
  await context.close()
})
