import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/**
 * Tests in which somebody corrects a URL or a secret in the catalog file while messages wait for a retry. Each
 * hook has an id, which stays the same. The waits of the ladder are so long that a correction is in force before, on a busy machine too.
 */

const secret = 'the right secret'

/** Answers 200 if the request is signed with `secret`, and otherwise 401. */
const signed: Script = ({ headers, body }, response) => {
  const signature = createHmac('sha1', secret).update(body).digest('hex')
  response.writeHead(headers['x-signature'] === signature ? 200 : 401).end()
}

let server: Receiver
let sluice: Deployment

beforeAll(async () => {
  server = await startReceiver({
    '/wrong': answer(404),
    '/right': answer(200),
    '/signed': signed,
    '/busy': answer(429, { 'retry-after': '3600' }),
    '/free': answer(200),
    '/down': answer(503),
  })
  sluice = await deploy({
    destinations: catalog(),
    variables: { SLUICE_RETRY_LADDER: '8s', SLUICE_RETRY_THEN: '8s', SLUICE_RETRY_LIMIT: '5m' },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

/** Returns a destination whose first hook is at `path`. The second hook, if it has one, always fails. */
function destination(
  id: string,
  path: string,
  { isAlone = false, ...rest }: Partial<DestinationEntry> & { isAlone?: boolean } = {},
): DestinationEntry {
  const hooks = [
    { id: 'main', url: server.origin + path },
    { id: 'spare', url: `${server.origin}/down` },
  ]
  return { id, sources: [id], hooks: isAlone ? hooks.slice(0, 1) : hooks, ...rest }
}

function catalog(corrected: readonly DestinationEntry[] = []): DestinationEntry[] {
  const before = [
    destination('url', '/wrong'),
    destination('secret', '/signed', { sharedSecret: 'a wrong secret' }),
    destination('wait', '/busy', { isAlone: true }),
  ]
  return before.map((each) => corrected.find(({ id }) => id === each.id) ?? each)
}

function requestsOf(path: string, messageId: string): number {
  return server.requestsTo(path).filter(({ body }) => JSON.parse(body.toString()).messageId === messageId)
    .length
}

/** Sends a message, and waits until Sluice has written it to a retry topic after its first attempt. */
async function waiting(id: string, firstPath: string): Promise<void> {
  await sluice.send(id, [{ key: id, value: { type: 'track', userId: 'u1', event: 'Ping', messageId: id } }])
  await until('the first attempt has failed', () => requestsOf(firstPath, id) > 0)
  await until('it waits', async () => {
    const records = await sluice.read('retry.8s')
    return records.some(({ headers }) => headers['message-id'] === id)
  })
}

/** Corrects one destination of the catalog, and waits until the correction is in force. */
async function correct(corrected: DestinationEntry): Promise<void> {
  await sluice.worker.untilLogged('the catalog has changed', () => sluice.recatalog(catalog([corrected])))
}

test('a message for which a wrong URL answered 404 goes to the corrected URL at its next retry', async () => {
  await waiting('url', '/wrong')
  await correct(destination('url', '/right'))
  await until('it has come', () => requestsOf('/right', 'url') > 0)
  expect(requestsOf('/wrong', 'url')).toBe(1)
  expect(requestsOf('/right', 'url')).toBe(1)
})

test('a message whose signature was refused with 401 is accepted after the secret is replaced', async () => {
  await waiting('secret', '/signed')
  await correct(destination('secret', '/signed', { sharedSecret: secret }))
  await until('it is delivered', () =>
    sluice.worker.log.some(({ messageId, verdict }) => messageId === 'secret' && verdict === 'delivered'),
  )
  expect(requestsOf('/signed', 'secret')).toBe(2)
})

test('the time that a former URL asked for does not hold for the new URL', async () => {
  await waiting('wait', '/busy')
  await correct(destination('wait', '/free', { isAlone: true }))
  await until('it has come', () => requestsOf('/free', 'wait') > 0)
  expect(requestsOf('/busy', 'wait')).toBe(1)
})
