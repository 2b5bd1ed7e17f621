// A receiver of batches, without packages:  WEBHOOK_SECRET=change-me PORT=3000 node receive-batch.mjs
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const secret = process.env.WEBHOOK_SECRET
const seen = new Set() // in production: a table with a unique key, because a restart forgets this

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  if (!isOurs(body, request.headers['x-signature'])) return response.writeHead(401).end()
  const statuses = JSON.parse(body).map(take) // a status for each message, in their order
  response.writeHead(207, { 'Content-Type': 'application/json' }).end(JSON.stringify({ statuses }))
}).listen(Number(process.env.PORT ?? 3000), '127.0.0.1')

function take(message) {
  if (message.userId === undefined) return 422 // it has failed for good; the others are accepted
  if (!seen.has(message.messageId)) {
    seen.add(message.messageId)
    console.log(message.type, message.messageId) // in production: put it into a queue, and work there
  }
  return 200
}

function isOurs(body, signature = '') {
  const expected = createHmac('sha1', secret).update(body).digest()
  const given = Buffer.from(signature, 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
