import { Analytics } from '@segment/analytics-node'
import { content, largeText, ofThisLanguage, report, settings, untilTold } from './program.js'

const client = new Analytics({ writeKey: settings.writeKey, host: settings.endpoint })
const failures = []
let made = 0
let succeeded = 0

client.on('error', (error) => failures.push(error.reason ?? error))

function call(method, message) {
  made++
  client[method](message, (error) => {
    if (error === undefined) succeeded++
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
    else if (type !== 'alias') message.properties = data
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

if (settings.mode === 'once') {
  for (const own of content.calls) callOfContent(own)
  call('track', { userId: 'u1', event: 'Own Id', messageId: 'an id of its own 😀' })
  for (let index = 0; index < settings.tracks; index++) track(index)
  for (let index = 0; index < settings.large; index++) {
    call('track', { userId: 'u1', event: 'Large', properties: { index, text: largeText } })
  }
} else {
  await untilTold(track)
}
await client.closeAndFlush()
report({ made, succeeded, failures })
