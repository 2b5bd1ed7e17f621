import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { createQueryClient } from '../../../src/delivery-log/query-client.ts'

/** Starts a server that answers each request by `answer`, until the test ends. Returns its URL. */
async function serve(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => answer(response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it has no port')
  return `http://127.0.0.1:${address.port}`
}

test.each([
  ['is the login page of a proxy', (response: ServerResponse) => response.end('<html>Log in</html>')],
  ['is empty', (response: ServerResponse) => response.end()],
  ['is null', (response: ServerResponse) => response.end('null')],
  [
    'breaks off',
    (response: ServerResponse) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('[{"kind":', () => response.destroy())
    },
  ],
])('an answer that %s is told as a problem of the index', async (_what, answer) => {
  const query = createQueryClient(await serve(answer), undefined)
  await expect(query.find('m1')).rejects.toMatchObject({
    name: 'QueryFailedError',
    message: expect.stringContaining('does not answer: what came is no JSON, or not all of it.'),
  })
})
