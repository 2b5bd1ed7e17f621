import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { contentText, isToldToStop, largeText, report, settings } from './program.js'

/** A customer's site with analytics-next, in a headless Chromium; and what stands for Segment's CDN. */

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
const cdnSettings = JSON.stringify({
  integrations: { 'Segment.io': { apiKey: settings.writeKey, bundlingStatus: 'bundled' } },
  plan: { track: { __default: { enabled: true, integrations: {} } } },
  metrics: { sampleRate: 1, flushTimer: 500 },
})

const site = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://site')
  if (pathname.endsWith('/settings')) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(cdnSettings)
  } else if (pathname === '/page.js') {
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(outputFiles[0].contents)
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

/** A visitor of their own, with what the page counts of the requests that were answered. */
async function visit(deliveryStrategy) {
  const context = await browser.newContext()
  const page = await context.newPage()
  const answered = { messages: 0 }
  page.on('pageerror', (error) => failures.push(`pageerror: ${error.message}`))
  page.on('console', (message) => {
    const isTrouble = message.type() === 'error' || message.type() === 'warning'
    // While the gateway answers 503 the browser says so; the client goes on.
    if (isTrouble && settings.mode === 'once') failures.push(`console: ${message.text()}`)
  })
  page.on('requestfinished', (request) => {
    if (request.method() !== 'POST') return
    const { batch } = JSON.parse(request.postData() ?? '{}')
    if (batch !== undefined) answered.messages += batch.length
  })
  await page.goto(`${origin}/?utm_source=newsletter&utm_campaign=Fr%C3%BChling`)
  const loaded = { writeKey: settings.writeKey, cdnURL: origin, apiHost, deliveryStrategy }
  await page.evaluate((options) => window.load(options), loaded)
  return { page, answered, close: () => context.close() }
}

async function add(page) {
  const delivered = await page.evaluate(() => window.delivered())
  total.made += delivered.made
  total.succeeded += delivered.succeeded
  failures.push(...delivered.failures)
  return delivered
}

/** The client writes its whole queue out anew for each call of a batch: half of what others send is enough. */
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

if (settings.mode === 'once') {
  await eachCallARequest()
  await inBatches()
} else {
  const { page } = await visit()
  await page.evaluate((everyMs) => window.sendSteadily(everyMs), settings.everyMs)
  await isToldToStop()
  await page.evaluate(() => window.stop())
  await add(page)
}
await browser.close()
site.close()
report({ ...total, failures })
