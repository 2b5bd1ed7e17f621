import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { adminOpenApi } from '../../../src/admin/openapi.ts'
import { done } from '../../../src/admin/problem.ts'
import { adminRoutes } from '../../../src/admin/routes.ts'
import type { AdminCalls, AdminRequest } from '../../../src/admin/server.ts'
import { createToken, findToken, readTokens } from '../../../src/admin/tokens.ts'
import { sendPipelined } from '../../support/pipelined.ts'
import { serveAdmin } from '../../support/serve-admin.ts'

const { token, line } = createToken('ann', 'admin')
const authorization = `Bearer ${token}`

/** Starts a server that answers each call with `{}`, or as `answer` says, and returns its port. */
async function serve({
  requestTimeoutMs = 10_000,
  onAnswered = () => {},
  answer = async (_request: AdminRequest) => done({}),
  isInForce = (): boolean => true,
} = {}): Promise<number> {
  const read = readTokens(line)
  if (!read.ok) throw new Error(read.problem)
  const calls: unknown = Object.fromEntries(adminRoutes.map(({ call }) => [call, answer]))
  return serveAdmin({
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the routes have all calls
    calls: calls as AdminCalls,
    findToken: (given) => (isInForce() ? findToken(read.tokens, given) : undefined),
    requestTimeoutMs,
    onAnswered,
  })
}

/** Sends a text over a connection, and returns all that comes back until the server closes it. */
async function exchanged(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(text)
  let answered = ''
  socket.on('data', (chunk: Buffer) => (answered += chunk.toString()))
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('close', resolve))
  return answered
}

const posts = adminRoutes
  .filter(({ method }) => method === 'POST')
  .map((route) => ({
    ...route,
    example: route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => route.params?.[name]?.example ?? ''),
  }))

test.each(posts)(
  'the document of $path has every refusal of a body',
  async ({ path, example, maxBodyBytes = 65_536 }) => {
    const port = await serve()
    const statusOf = async (contentType: string, body: string): Promise<number> => {
      const headers = { authorization, 'content-type': contentType }
      return (await fetch(`http://127.0.0.1:${port}${example}`, { method: 'POST', headers, body })).status
    }
    const statuses = [
      await statusOf('text/plain', 'a'),
      await statusOf('application/json', `"${'x'.repeat(maxBodyBytes)}"`),
      await statusOf('application/json', '{'),
    ]
    expect(statuses).toEqual([415, 413, 400])
    const { paths }: { paths?: Record<string, { post?: { responses?: object } }> } = adminOpenApi()
    expect(Object.keys(paths?.[path]?.post?.responses ?? {})).toEqual(
      expect.arrayContaining(statuses.map(String)),
    )
  },
)

test.each(posts.filter(({ body }) => body !== undefined))(
  'a body of $path with 5,000 levels is refused with advice, and no fault of Sluice',
  async ({ example }) => {
    const port = await serve()
    const headers = { authorization, 'content-type': 'application/json' }
    for (const body of [
      `{"message":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
      `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
    ]) {
      const response = await fetch(`http://127.0.0.1:${port}${example}`, { method: 'POST', headers, body })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ detail: expect.stringContaining('at most 1010 levels') })
    }
  },
)

test.each(posts.filter(({ body }) => body === undefined))(
  '$path needs no body, from a client that names a content type for all requests too',
  async ({ example }) => {
    const port = await serve()
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch(`http://127.0.0.1:${port}${example}`, { method: 'POST', headers })
    expect(await response.json()).toEqual({})
  },
)

test.each([
  ['POST', '/v1/log/search', { destinatin: 'erp' }, 'body has the unknown field "destinatin"'],
  [
    'POST',
    '/v1/replays',
    { selection: { of: 'events', form: '2026-01-01' } },
    'body/selection has the unknown field "form"',
  ],
  ['GET', '/v1/audit?limt=1', undefined, 'querystring has the unknown field "limt"'],
])('%s %s with an unknown field is refused by its name', async (method, path, fields, detail) => {
  const port = await serve()
  const headers = { authorization, ...(fields !== undefined && { 'content-type': 'application/json' }) }
  const sent = fields === undefined ? {} : { body: JSON.stringify(fields) }
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, ...sent })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ detail: `${detail}: see /openapi.json.` })
})

test.each([
  ['with too long headers', `GET /v1/health HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ['that is no HTTP', 'hello\r\n\r\n', 400],
  ['that does not come in time', 'GET /v1/health HTTP/1.1\r\nHost: a\r\n', 408],
])('a request %s is refused by a problem', async (_what, text, status) => {
  const port = await serve({ requestTimeoutMs: 200 })
  const answered = await exchanged(port, text)
  const [head = '', body = ''] = answered.split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(head.toLowerCase()).toContain('content-type: application/problem+json')
  expect(JSON.parse(body)).toMatchObject({ status, type: expect.stringMatching(/^\/problems\//) })
})

test('few requests of a client that does not wait for answers are answered', async () => {
  let answers = 0
  const port = await serve({ onAnswered: () => void answers++ })
  await sendPipelined(port, 'GET /openapi.json/none HTTP/1.1\r\nHost: a\r\n\r\n')
  expect(answers).toBe(16)
})

test.each([
  { method: 'GET', path: '/v1/replays', status: 401, what: 'what was read is not shown' },
  { method: 'POST', path: '/v1/replays/r/stop', status: 200, what: 'what was done is told' },
])('if the token ends while a call waits, $what', async ({ method, path, status }) => {
  let isInForce = true
  const port = await serve({
    isInForce: () => isInForce,
    async answer() {
      isInForce = false
      return done({})
    },
  })
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { authorization } })
  expect(response.status).toBe(status)
})

test('if the token ends while the body of a request comes, the call is not made', async () => {
  let isInForce = true
  let calls = 0
  const port = await serve({
    isInForce: () => isInForce,
    async answer() {
      calls++
      return done({})
    },
  })
  const head = `POST /v1/log/search HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`
  const socket = connect(port, '127.0.0.1')
  let answered = ''
  socket.on('data', (chunk: Buffer) => {
    answered += chunk.toString()
    // The head was read, and its token is in force.
    if (answered.includes('100 Continue') && isInForce) {
      isInForce = false
      socket.write('{}')
    }
  })
  socket.write(head)
  await new Promise((resolve) => socket.once('close', resolve))
  expect(answered).toContain('HTTP/1.1 401')
  expect(calls).toBe(0)
})

test('a name with an escape in a body is not read as one of an earlier body', async () => {
  const port = await serve({ answer: async ({ body }: AdminRequest) => done({ body }) })
  const url = `http://127.0.0.1:${port}/v1/destinations/crm`
  const headers = { authorization, 'content-type': 'application/json', 'if-match': '"7"' }
  // Its text: JSON.parse would misread the answer too.
  const sent = async (body: string): Promise<string> =>
    (await fetch(url, { method: 'PATCH', headers, body })).text()
  const body = String.raw`{"mappings":{"fourth":1,"\n":2}}`
  await sent(String.raw`{"mappings":{"fourth":1,"\\":2}}`)
  expect(await sent(body)).toBe(`{"body":${body}}`)
})
