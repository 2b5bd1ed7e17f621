import { AnalyticsBrowser } from '@segment/analytics-next'

/** The script of the site's page. `browser.js` calls its functions. */

const delivered = { made: 0, succeeded: 0, failures: [] }
let analytics

window.load = async ({ writeKey, cdnURL, apiHost, deliveryStrategy }) => {
  // The client gets all other settings from the gateway.
  const segment = { apiHost, ...(deliveryStrategy && { deliveryStrategy }) }
  analytics = AnalyticsBrowser.load({ writeKey, cdnURL }, { integrations: { 'Segment.io': segment } })
  analytics.on('error', (error) => delivered.failures.push(String(error.reason ?? error.code)))
  await analytics.ready()
}

/**
 * Makes a call. Resolves when the gateway has answered. With batches, resolves when the call is in the queue.
 */
async function call(method, ...args) {
  delivered.made++
  const context = await analytics[method](...args)
  const faults = context.logs().filter(({ level }) => level === 'error')
  if (context.failedDelivery() || faults.length > 0) delivered.failures.push(JSON.stringify(faults))
  else delivered.succeeded++
}

function callOfContent({ content, ofThisLanguage }, own) {
  const { type, isRich, userId, anonymousId, previousId, groupId, event, category, name, timestamp } = own
  const data = isRich ? { ...content.everything, ofThisLanguage } : undefined
  const options = {
    ...(anonymousId && { anonymousId }),
    ...(timestamp && { timestamp: new Date(timestamp) }),
    ...(isRich && { context: content.context, integrations: content.integrations }),
    ...(own.integrations && { integrations: own.integrations }),
  }
  switch (type) {
    case 'identify':
      return userId === undefined ? call(type, data ?? {}, options) : call(type, userId, data ?? {}, options)
    case 'track':
      return call(type, event, data ?? {}, { ...options, ...(userId && { userId }) })
    case 'page':
    case 'screen':
      return call(type, category ?? null, name, data ?? {}, options)
    case 'group':
      return call(type, groupId, data ?? {}, options)
    case 'alias':
      return call(type, userId, previousId, options)
  }
}

window.sendContent = async (text) => {
  const content = JSON.parse(text)
  const ofThisLanguage = { date: new Date('2020-02-29T23:59:59.123Z'), missing: undefined, notANumber: NaN }
  for (const own of content.calls) await callOfContent({ content, ofThisLanguage }, own)
}

window.sendTracks = async (count, text) => {
  const calls = []
  for (let index = 0; index < count; index++) {
    calls.push(
      call('track', 'Product Viewed', { index, price: index / 4, name: `Produkt ${index} 😀`, text }),
    )
  }
  await Promise.all(calls)
}

/** Makes calls until `window.endCalls`. While the page is open, the client sends again what has failed. */
window.sendSteadily = (everyMs) => {
  let index = 0
  const underWay = new Set()
  const timer = setInterval(() => {
    const sent = call('track', 'Product Viewed', { index: index++ })
      .catch((error) => delivered.failures.push(String(error)))
      .finally(() => underWay.delete(sent))
    underWay.add(sent)
  }, everyMs)
  // A call that the client still tries again has neither succeeded nor failed.
  window.endCalls = async () => {
    clearInterval(timer)
    await Promise.all(underWay)
  }
}

window.delivered = () => delivered
