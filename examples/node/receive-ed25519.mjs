// A receiver that verifies with a public key, without packages:
//   KEYS_URL=https://gateway.example.com/v1/signing-keys/crm PORT=3000 node receive-ed25519.mjs
//   PUBLIC_KEY=whpk_... PORT=3000 node receive-ed25519.mjs
import { createPublicKey, verify } from 'node:crypto'
import { createServer } from 'node:http'

const keptForMs = 300_000 // as the gateway's Cache-Control says
const toleranceSeconds = 300
let keys = []
let readMs = -Infinity

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  if (!isOurs(await publicKeys(), request.headers, body)) return response.writeHead(401).end()
  const message = JSON.parse(body)
  console.log(message.type, message.messageId) // in production: put it into a queue, and work there
  response.writeHead(200).end()
}).listen(Number(process.env.PORT ?? 3000), '127.0.0.1')

async function publicKeys() {
  if (performance.now() - readMs < keptForMs) return keys
  const { PUBLIC_KEY, KEYS_URL } = process.env
  const found = PUBLIC_KEY === undefined ? (await (await fetch(KEYS_URL)).json()).keys : [jwkOf(PUBLIC_KEY)]
  keys = found.map((key) => createPublicKey({ key, format: 'jwk' }))
  readMs = performance.now()
  return keys
}

function jwkOf(text) {
  const x = Buffer.from(text.replace('whpk_', ''), 'base64').toString('base64url')
  return { kty: 'OKP', crv: 'Ed25519', x }
}

function isOurs(known, headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds)) return false
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  const given = signatures.split(' ').filter((one) => one.startsWith('v1a,'))
  return given.some((one) =>
    known.some((key) => verify(null, signed, key, Buffer.from(one.slice(4), 'base64'))),
  )
}
