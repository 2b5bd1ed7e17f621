import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LoginServer, startLoginServer } from '../../support/login-server.ts'
import {
  answer,
  type Receiver,
  type ReceivedRequest,
  type Script,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** What endpoints can do with batches, on a real Kafka, to real servers. */

const json = { 'Content-Type': 'application/json' }
const count = 12

/** The answers of each endpoint to its first batch. Its later answers are 200. */
const firstAnswers: Readonly<Record<string, Script>> = {
  few: answer(207, json, '{"statuses":[200,200]}'),
  many: answer(207, json, JSON.stringify({ statuses: Array.from({ length: count + 1 }, () => 200) })),
  foreign: answer(207, json, JSON.stringify(Array.from({ length: count }, () => 'ok'))),
  informational: answer(207, json, JSON.stringify(Array.from({ length: count }, () => 100))),
  html: answer(207, { 'Content-Type': 'text/html' }, '<html>'),
  large: answer(207, json, `{"statuses":[${'200,'.repeat(30_000)}200]}`),
  cut: (_request, response) => {
    response.writeHead(207, { ...json, 'Content-Length': '1000' }).write('{"statuses":[200')
    setImmediate(() => response.destroy())
  },
  paced: answer(429, { 'Retry-After': '1' }),
}

let server: Receiver
let login: LoginServer
let sluice: Deployment
const accepted = new Map<string, string[]>()

beforeAll(async () => {
  login = await startLoginServer()
  const scripts: Record<string, Script> = { '/small': small, '/guarded': guarded, '/picky': picky }
  for (const [name, first] of Object.entries(firstAnswers))
    scripts[`/${name}`] = (request, response, nth) =>
      nth === 1 ? first(request, response, nth) : accept(request, response, nth)
  server = await startReceiver(scripts)
  sluice = await deploy({
    destinations: [
      ...Object.keys(firstAnswers).map((name) => to(name, { maxMessages: count, maxWait: '5s' })),
      to('small', { maxMessages: 1_000, maxWait: '500ms' }),
      loggedInTo('guarded'),
      loggedInTo('picky'),
    ],
    variables: {
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await Promise.all([server?.stop(), login?.stop()])
})

function loggedInTo(id: string): DestinationEntry {
  const oauth = { kind: 'oauth2', tokenUrl: login.tokenUrl, clientId: 'sluice', clientSecret: 'secret' }
  const hooks = [{ id: 'main', url: `${server.origin}/${id}`, login: oauth }]
  return { ...to(id, { maxMessages: count, maxWait: '5s' }), hooks }
}

function to(id: string, batch: DestinationEntry['batch'] & object): DestinationEntry {
  return { id, sources: [id], hooks: [{ id: 'main', url: `${server.origin}/${id}` }], batch }
}

const accept: Script = (request, response, nth) => {
  accepted.set(request.path, [...(accepted.get(request.path) ?? []), ...idsOf(request)])
  answer(200)(request, response, nth)
}

/** Refuses each request with more than ten messages as too large. */
const small: Script = (request, response, nth) => {
  if (idsOf(request).length > 10) answer(413)(request, response, nth)
  else accept(request, response, nth)
}

/** Answers 207, and refuses each message of a request whose token isn't valid. */
const guarded: Script = (request, response, nth) => {
  const token = String(request.headers.authorization).replace('Bearer ', '')
  if (login.valid.has(token)) accept(request, response, nth)
  else answer(207, json, JSON.stringify(idsOf(request).map(() => 401)))(request, response, nth)
}

/** Answers 207, and refuses one message, whatever the token is. */
const picky: Script = (request, response, nth) => {
  const statuses = idsOf(request).map((id) => (id === 'picky-3' ? 401 : 200))
  answer(207, json, JSON.stringify(statuses))(request, response, nth)
}

function idsOf({ body }: ReceivedRequest): string[] {
  const messages: { messageId: string }[] = JSON.parse(body.toString())
  return messages.map(({ messageId }) => messageId)
}

async function send(source: string, ids: readonly string[]): Promise<void> {
  await sluice.send(
    source,
    ids.map((messageId) => ({
      key: 'user',
      value: { type: 'track', userId: 'user', event: 'Ping', messageId },
    })),
  )
}

function named(name: string, many: number): string[] {
  return Array.from({ length: many }, (_, at) => `${name}-${at}`)
}

test.each(Object.keys(firstAnswers))('an answer that settles nothing (%s) loses nothing', async (name) => {
  const ids = named(name, count)
  await send(name, ids)
  await until('all are accepted', () => accepted.get(`/${name}`)?.length === count)
  expect(accepted.get(`/${name}`)?.toSorted()).toEqual(ids.toSorted())
  expect(server.requestsTo(`/${name}`)).toHaveLength(2)
})

test('an endpoint that takes fewer messages at once than a batch has gets all of them', async () => {
  const ids = named('small', 1_000)
  await send('small', ids)
  await until('all are accepted', () => accepted.get('/small')?.length === 1_000, { timeoutMs: 60_000 })
  expect(await sluice.read('dead-letters')).toEqual([])
})

test('a 207 that refuses each message with 401 is a refused token: the batch comes once more, with another one', async () => {
  const [before, ids] = [named('before', count), named('guarded', count)]
  await send('guarded', before)
  await until('there is a token', () => accepted.get('/guarded')?.length === count)
  const given = login.given
  login.revoke()
  await send('guarded', ids)
  await until('all are accepted', () => accepted.get('/guarded')?.length === 2 * count)
  expect(accepted.get('/guarded')?.toSorted()).toEqual([...before, ...ids].toSorted())
  const [, refused, again, ...others] = server.requestsTo('/guarded')
  expect(others).toEqual([])
  expect(again?.body).toEqual(refused?.body)
  expect(again?.headers).toEqual({ ...refused?.headers, authorization: again?.headers.authorization })
  expect(again?.headers.authorization).not.toBe(refused?.headers.authorization)
  expect(login.given).toBe(given + 1)
  expect(await sluice.read('retry.1s')).not.toContainEqual(
    expect.objectContaining({ headers: expect.objectContaining({ 'destination-id': 'guarded' }) }),
  )
})

test('a 401 beside other statuses is about its message, and costs no token', async () => {
  const given = login.given
  await send('picky', named('picky', count))
  const letters = await until('it is a dead letter', async () => {
    const all = await sluice.read('dead-letters')
    return all.length > 0 ? all : undefined
  })
  expect(letters.map(({ headers }) => headers['message-id'])).toEqual(['picky-3'])
  expect(server.requestsTo('/picky')).toHaveLength(1)
  expect(login.given).toBe(given + 1)
})
