import { createRequire } from 'node:module'
import { content, largeText, ofThisLanguage, report, settings, untilTold } from './program.js'

const Analytics = createRequire(import.meta.url)('@rudderstack/rudder-sdk-node')

const failures = []
let made = 0
let succeeded = 0

const client = new Analytics(settings.writeKey, {
  dataPlaneUrl: settings.endpoint,
  logLevel: settings.mode === 'once' ? 'error' : 'none',
  // Without this function, a batch that fails would end the process.
  errorHandler: () => {},
})

function call(method, message) {
  made++
  client[method](message, (error) => {
    if (error === undefined || error === null) succeeded++
    else failures.push(error)
  })
}

function callOfContent({ type, isRich, timestamp, ...own }) {
  const message = { ...own }
  if (timestamp !== undefined) message.timestamp = new Date(timestamp)
  if (isRich) {
    const data = { ...content.everything, ofThisLanguage }
    Object.assign(message, { context: content.context, integrations: content.integrations })
    if (type === 'identify' || type === 'group') message.traits = data
    else message.properties = data
  }
  call(type, message)
}

function track(index) {
  call('track', {
    userId: `user-${index % 50}`,
    event: 'Product Viewed',
    properties: { index, price: index / 4, name: `Produkt ${index} 😀` },
  })
}

/** Sends all messages that wait. The client sends only 20 messages at each flush, whatever their size. */
async function flushAll() {
  while (succeeded + failures.length < made) {
    await client.flush()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

if (settings.mode === 'once') {
  for (const own of content.calls) callOfContent(own)
  call('track', { userId: 'u1', event: 'Own Id', messageId: 'an id of its own 😀' })
  for (let index = 0; index < settings.tracks; index++) {
    track(index)
    // At each call, the client looks at its whole queue. So the queue must stay short.
    if (index % 100 === 99) await flushAll()
  }
  for (let index = 0; index < settings.large; index++) {
    call('track', { userId: 'u1', event: 'Large', properties: { index, text: largeText } })
    // The client would put 20 of these messages into one batch, which would be too large.
    if (index % 10 === 9) await flushAll()
  }
} else {
  await untilTold(track)
}
await flushAll()
report({ made, succeeded, failures })
