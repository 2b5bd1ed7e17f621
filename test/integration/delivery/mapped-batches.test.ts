import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { guardedBy, type LoginServer, startLoginServer } from '../../support/login-server.ts'
import { answer, type ReceivedRequest, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** Mappings in batches, and through logins, on a real Kafka and to real servers. */

const secret = 'of the mapped ones'
let login: LoginServer
let server: Receiver
let sluice: Deployment
let catalog: DestinationEntry[]
/** While it is true, the path `/edited` answers 503. */
let isDown = true

/** The two shapes of most destinations here. */
const orders = { condition: 'event == "Order"', body: { order: { '@path': '$.messageId' } } }
const others = { body: { what: { '@template': '{{event}} "{{messageId}}"\n' } } }

beforeAll(async () => {
  login = await startLoginServer()
  const guard = guardedBy(() => login)
  server = await startReceiver((request, response, nth) => {
    if (request.path.startsWith('/guarded')) guard(request, response, nth)
    else answer(isDown && request.path.startsWith('/edited') ? 503 : 200)(request, response, nth)
  })
  const oauth = { kind: 'oauth2', tokenUrl: login.tokenUrl, clientId: 'sluice', clientSecret: 'secret' }
  const batch = { maxMessages: 6, maxWait: '5s' } as const
  catalog = [
    to('json', { batch, mappings: [orders, others] }),
    to('lines', { batch: { ...batch, format: 'ndjson' }, mappings: [orders, others] }),
    to('mixed', {
      batch: { maxMessages: 6, maxWait: '300ms' },
      mappings: [
        { condition: 'event == "Path"', path: '/of/{{userId}}', method: 'PUT', ...bodyOf('messageId') },
        { condition: 'event == "Header"', headers: { 'X-Id': path('messageId') }, ...bodyOf('messageId') },
        { condition: 'event == "Form"', format: 'form', body: { id: path('messageId'), a: 'b c' } },
        others,
      ],
    }),
    to('edited', { batch: { maxMessages: 4, maxWait: '300ms' }, mappings: [orders, others] }),
    to('guarded', {
      hooks: [{ url: `${server.origin}/guarded?key=1`, login: oauth }],
      mappings: [
        {
          method: 'PATCH',
          path: '/of/{{userId}}',
          headers: { 'X-Id': path('messageId') },
          ...bodyOf('event'),
        },
      ],
    }),
    to('guarded-batch', {
      hooks: [{ url: `${server.origin}/guarded-batch`, login: oauth }],
      batch: { maxMessages: 4, maxWait: '5s' },
      mappings: [orders, others],
    }),
  ]
  sluice = await deploy({
    destinations: catalog,
    variables: {
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
  await login?.stop()
})

function path(name: string): object {
  return { '@path': `$.${name}` }
}

function bodyOf(name: string): object {
  return { body: { [name]: path(name) } }
}

function to(id: string, rest: Partial<DestinationEntry>): DestinationEntry {
  return { id, sources: [id], sharedSecret: secret, hooks: [{ url: `${server.origin}/${id}` }], ...rest }
}

/** Sends messages of one user, whose ids begin with their events: `Order-1` is an `Order`. */
async function send(source: string, ids: readonly string[]): Promise<void> {
  await sluice.send(
    source,
    ids.map((messageId) => ({
      key: 'user',
      value: { type: 'track', userId: 'user', event: messageId.split('-')[0], messageId },
    })),
  )
}

function isSignedAsSent({ headers, body }: ReceivedRequest): boolean {
  return headers['x-signature'] === createHmac('sha1', secret).update(body).digest('hex')
}

function cameTo(prefix: string): ReceivedRequest[] {
  return server.requests.filter((request) => request.path.startsWith(prefix))
}

function idOf({ headers }: ReceivedRequest): string {
  return String(headers['x-sluice-message-id'])
}

/** Returns the ids of the messages of which a request was made, by its body. */
function messagesIn({ body }: ReceivedRequest): string[] {
  return [...body.toString().matchAll(/(?:Seen|Path|Header|Form)-\d/g)].map(([id]) => id)
}

describe('in a batch', () => {
  const ids = ['Order-1', 'Seen-1', 'Seen-2', 'Order-2', 'Order-3', 'Seen-3']
  const shaped = ids.map((id) =>
    id.startsWith('Order') ? { order: id } : { what: `${id.split('-')[0]} "${id}"\n` },
  )

  test.each([
    ['json', 'application/json', JSON.stringify(shaped)],
    ['lines', 'application/x-ndjson', shaped.map((one) => `${JSON.stringify(one)}\n`).join('')],
  ])(
    'of %s, each message has the body of its mapping, and all are signed as sent',
    async (id, type, body) => {
      await send(id, ids)
      const [request] = await until('it came', () => {
        const came = server.requestsTo(`/${id}`)
        return came.length > 0 ? came : undefined
      })
      expect(request?.body.toString()).toBe(body)
      expect(request?.headers['content-type']).toBe(type)
      expect(request?.headers['x-sluice-message-id']).toMatch(/^batch_/)
      expect(request && isSignedAsSent(request)).toBe(true)
      expect(server.requestsTo(`/${id}`)).toHaveLength(1)
    },
  )

  test('messages with a path, a header or a form of their own are sent alone, and no others', async () => {
    const sent = ['Seen-1', 'Seen-2', 'Path-1', 'Seen-3', 'Header-1', 'Form-1', 'Seen-4', 'Seen-5']
    await send('mixed', sent)
    const alone = (id: string) => cameTo('/mixed').find((request) => idOf(request) === id)
    await until('all came', () => cameTo('/mixed').flatMap(messagesIn).length >= sent.length)
    expect(cameTo('/mixed').flatMap(messagesIn).toSorted()).toEqual(sent.toSorted())
    expect(alone('Path-1')).toMatchObject({
      method: 'PUT',
      path: '/mixed/of/user',
      body: Buffer.from('{"messageId":"Path-1"}'),
    })
    expect(alone('Header-1')).toMatchObject({
      method: 'POST',
      path: '/mixed',
      headers: { 'x-id': 'Header-1' },
    })
    expect(alone('Form-1')).toMatchObject({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: Buffer.from('id=Form-1&a=b+c'),
    })
    const together = cameTo('/mixed').filter((request) => idOf(request).startsWith('batch_'))
    expect(together.flatMap(messagesIn).every((id) => id.startsWith('Seen'))).toBe(true)
    expect(together.every(({ method, headers }) => method === 'POST' && headers['x-id'] === undefined)).toBe(
      true,
    )
    expect(cameTo('/mixed').every(isSignedAsSent)).toBe(true)
  })

  test('a retry sends the bytes of the first try after an edit, and new messages have the new mapping', async () => {
    await send('edited', ['Order-1', 'Seen-1', 'Order-2', 'Seen-2'])
    const [first] = await until('it was tried', () => {
      const came = server.requestsTo('/edited')
      return came.length > 0 ? came : undefined
    })
    const anew = [{ body: { anew: path('messageId') } }]
    catalog = catalog.map((one) => (one.id === 'edited' ? { ...one, mappings: anew } : one))
    sluice.recatalog(catalog)
    let sent = 0
    await until('the edit is in force', async () => {
      await send('edited', [`New-${sent++}`])
      return cameTo('/edited').some(({ body }) => body.toString().includes('{"anew":"New-'))
    })
    isDown = false
    const before = cameTo('/edited').length
    const parts = ['{"order":"Order-1"}', '{"what":"Seen \\"Seen-1\\"\\n"}', '{"order":"Order-2"}']
    await until('all came again', () => {
      const later = cameTo('/edited')
        .slice(before)
        .map(({ body }) => body.toString())
        .join('')
      return parts.every((part) => later.includes(part))
    })
    expect(parts.every((part) => first?.body.toString().includes(part))).toBe(true)
    // No message of before the edit has the shape of after it, in any try.
    expect(cameTo('/edited').some(({ body }) => /\{"anew":"(?:Order|Seen)/.test(body.toString()))).toBe(false)
    expect(cameTo('/edited').every(isSignedAsSent)).toBe(true)
  })
})

function tokenOf({ headers }: ReceivedRequest): string {
  return String(headers.authorization)
}

/** Sends messages after the token was revoked, and returns the two requests that were made of them. */
async function aroundRevocation(source: string, ids: readonly string[], isOfThem: RegExp) {
  const accepted = (): ReceivedRequest[] =>
    cameTo(`/${source}`).filter(
      (request) => (login.valid.get(tokenOf(request).replace('Bearer ', '')) ?? 0) > Date.now(),
    )
  const warmUp = ids.map((id) => `Order-warm-${id}`)
  await send(source, warmUp)
  await until('the first ones came', () => accepted().length > 0)
  const given = login.given
  login.revoke()
  await send(source, ids)
  const requests = await until('they came', () => {
    const came = cameTo(`/${source}`).filter(({ body, headers }) =>
      isOfThem.test(`${String(headers['x-id'])} ${body.toString()}`),
    )
    return came.length >= 2 ? came : undefined
  })
  expect(login.given).toBe(given + 1)
  expect(requests).toHaveLength(2)
  expect(accepted()).toHaveLength(1)
  return requests
}

describe('through a login by OAuth 2', () => {
  test('a request that a mapping has made is made once more after a 401, the same but for its token', async () => {
    const [first, again] = await aroundRevocation('guarded', ['Seen-1'], /^Seen-1 /)
    if (first === undefined || again === undefined) throw new Error('two requests are missing')
    const { authorization: refused, ...headers } = first.headers
    expect(again).toMatchObject({ method: first.method, path: first.path, body: first.body, headers })
    expect(again.headers.authorization).not.toBe(refused)
    expect(first).toMatchObject({ method: 'PATCH', path: '/guarded/of/user?key=1' })
    expect(first.body.toString()).toBe('{"event":"Seen"}')
    expect([first, again].every(isSignedAsSent)).toBe(true)
    expect(again.headers['x-sluice-attempt']).toBe('1')
    expect(again.rawHeaders.filter((name) => name.toLowerCase() === 'authorization')).toHaveLength(1)
  })

  test('a batch of mapped messages is sent once more after a 401, as a whole and with the same bytes', async () => {
    const ids = ['Order-1', 'Seen-1', 'Order-2', 'Seen-2']
    const [first, again] = await aroundRevocation('guarded-batch', ids, /"Order-1"/)
    if (first === undefined || again === undefined) throw new Error('two requests are missing')
    expect(JSON.parse(first.body.toString())).toHaveLength(4)
    const { authorization: refused, ...headers } = first.headers
    expect(again).toMatchObject({ body: first.body, headers })
    expect(again.headers.authorization).not.toBe(refused)
    expect([first, again].every(isSignedAsSent)).toBe(true)
    expect(again.headers['x-sluice-attempt']).toBe('1')
  })

  test('no message became a dead letter, and none had to be tried again', async () => {
    expect(await sluice.read('dead-letters')).toEqual([])
    const retried = await sluice.read('retry.1s')
    expect(retried.filter(({ headers }) => String(headers['destination-id']).startsWith('guarded'))).toEqual(
      [],
    )
  })
})
