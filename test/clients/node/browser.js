import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { contentText, isToldToStop, largeText, report, settings } from './program.js'

/**
 * A customer's site with analytics-next in a headless Chromium. One page has the client in the site's own
 * script, and another page loads it by Segment's snippet. The gateway is both the CDN and the API host. A
 * request to any other host counts as a failure.
 */

const { host } = new URL(settings.endpoint)
const apiHost = `${host}/v1`
const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL('page.js', import.meta.url))],
  bundle: true,
  write: false,
  format: 'iife',
  logLevel: 'error',
})
const html = `<!doctype html><html lang="de"><meta charset="utf-8"><title>Über uns</title>
<link rel="icon" href="data:,"><script src="/page.js"></script>`
const standalone = readFileSync(
  fileURLToPath(new URL('node_modules/@segment/analytics-next/dist/umd/standalone.js', import.meta.url)),
)
const snippet = readFileSync(fileURLToPath(new URL('snippet.html', import.meta.url)), 'utf8')
  .replaceAll('WRITE_KEY', settings.writeKey)
  .replaceAll('GATEWAY', settings.endpoint)

const site = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://site')
  if (pathname === '/page.js') {
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(outputFiles[0].contents)
  } else if (pathname.endsWith('/analytics.min.js')) {
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(standalone)
  } else if (pathname === '/snippet') {
    response.writeHead(200, { 'content-type': 'text/html' }).end(snippet)
  } else if (pathname === '/') {
    response.writeHead(200, { 'content-type': 'text/html' }).end(html)
  } else {
    response.writeHead(404).end()
  }
})
await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${site.address().port}`

const browser = await chromium.launch({
  executablePath: process.env.CLIENT_CHROMIUM,
  args: ['--no-sandbox'],
})
const failures = []
const total = { made: 0, succeeded: 0 }

/**
 * Opens the site as a new visitor. Returns the page, and the number of messages in requests that were
 * answered.
 */
async function visit(deliveryStrategy) {
  const { page, answered, close } = await open(`${origin}/?utm_source=newsletter&utm_campaign=Fr%C3%BChling`)
  const loaded = { writeKey: settings.writeKey, cdnURL: settings.endpoint, apiHost, deliveryStrategy }
  await page.evaluate((options) => window.load(options), loaded)
  return { page, answered, close }
}

async function open(url) {
  const context = await browser.newContext()
  const page = await context.newPage()
  page.on('request', (request) => {
    const { protocol, host: asked } = new URL(request.url())
    if (protocol !== 'data:' && asked !== host && asked !== new URL(origin).host)
      failures.push(`asked elsewhere: ${request.url()}`)
  })
  const answered = { messages: 0 }
  page.on('pageerror', (error) => failures.push(`pageerror: ${error.message}`))
  page.on('console', (message) => {
    const isTrouble = message.type() === 'error' || message.type() === 'warning'
    // In the other mode, the gateway may answer 503. The browser then writes an error to the console, and the
    // client goes on.
    if (isTrouble && settings.mode === 'once') failures.push(`console: ${message.text()}`)
  })
  page.on('requestfinished', (request) => {
    if (request.method() !== 'POST') return
    const { batch } = JSON.parse(request.postData() ?? '{}')
    if (batch !== undefined) answered.messages += batch.length
  })
  await page.goto(url)
  return { page, answered, close: () => context.close() }
}

async function add(page) {
  const delivered = await page.evaluate(() => window.delivered())
  total.made += delivered.made
  total.succeeded += delivered.succeeded
  failures.push(...delivered.failures)
  return delivered
}

/**
 * Sends fewer messages than the other programs. In batches, the client is slow, because it writes out its
 * whole queue at each call.
 */
async function sendAll(page) {
  await page.evaluate((text) => window.sendContent(text), contentText)
  await page.evaluate((count) => window.sendTracks(count), settings.tracks / 4)
  await page.evaluate(([count, text]) => window.sendTracks(count, text), [settings.large / 2, largeText])
  return add(page)
}

async function eachCallARequest() {
  const { page, close } = await visit()
  await sendAll(page)
  await close()
}

async function inBatches() {
  const { page, answered, close } = await visit({ strategy: 'batching', config: { size: 100, timeout: 500 } })
  const { made } = await sendAll(page)
  while (answered.messages < made) await page.waitForEvent('requestfinished')
  await close()
}

/**
 * Opens the page with Segment's snippet. The snippet differs from Segment's only in the write key and in the
 * address of the gateway.
 */
async function bySnippet() {
  const { page, close } = await open(`${origin}/snippet`)
  const delivered = await page.evaluate(() => window.sendBySnippet(20))
  total.made += delivered.made
  total.succeeded += delivered.succeeded
  await close()
}

if (settings.mode === 'once') {
  await bySnippet()
  await eachCallARequest()
  await inBatches()
} else {
  const { page } = await visit()
  await page.evaluate((everyMs) => window.sendSteadily(everyMs), settings.everyMs)
  await isToldToStop()
  await page.evaluate(() => window.endCalls())
  await add(page)
}
await browser.close()
site.close()
report({ ...total, failures })
