// A receiver of webhooks, without packages:  WEBHOOK_SECRET=change-me PORT=3000 node receive.mjs
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const secret = process.env.WEBHOOK_SECRET
const seen = new Set() // in production: a table with a unique key, because a restart forgets this

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  if (!isOurs(body, request.headers['x-signature'])) return response.writeHead(401).end()
  const message = JSON.parse(body)
  if (!seen.has(message.messageId)) {
    seen.add(message.messageId)
    console.log(message.type, message.messageId) // in production: put it into a queue, and work there
  }
  response.writeHead(200).end()
}).listen(Number(process.env.PORT ?? 3000), '127.0.0.1')

function isOurs(body, signature = '') {
  const expected = createHmac('sha1', secret).update(body).digest()
  const given = Buffer.from(signature, 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
