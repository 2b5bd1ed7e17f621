// The server of a customer in `docker compose up`. It answers each request with 200. It prints each message that arrives, and whether
// its signature is right.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const sharedSecret = 'demo-secret'
const port = Number(process.argv[2] ?? 3000)

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  response.end('ok\n')
  if (request.method === 'POST')
    console.log(
      isSigned(body, request.headers['x-signature']) ? 'signed ' : 'WRONG SIGNATURE',
      body.toString(),
    )
}).listen(port, () => console.log(`receiver: listening on port ${port}`))

function isSigned(body, signature = '') {
  const expected = createHmac('sha1', sharedSecret).update(body).digest()
  const given = Buffer.from(signature, 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

// As process 1 of a container, Node doesn't end on SIGTERM unless there is a handler.
process.on('SIGTERM', () => process.exit(0))
