import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { OAuthLogin } from '../../../src/catalog/features/hook-login.ts'
import { createProxy } from '../../../src/delivery/connect/proxy.ts'
import { createResolver } from '../../../src/delivery/connect/resolver.ts'
import { postLoggedIn } from '../../../src/delivery/login/logged-in-exchange.ts'
import { Logins } from '../../../src/delivery/login/logins.ts'
import type { TokenLogin } from '../../../src/delivery/login/token-login.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type SenderOptions, type Target } from '../../../src/delivery/send/sender.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { guardedBy, type LoginServer, startLoginServer } from '../../support/login-server.ts'
import { answer, neverAnswer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'

/** Tokens of real servers for real requests: how they are asked for, renewed, and replaced. */

const ended: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

type Scene = {
  server: LoginServer
  hook: Receiver
  login: TokenLogin
  /** Posts a message with the login. Resolves once its place is free again. */
  post: (body?: string) => Promise<Outcome>
}

async function scene({
  login: of = {},
  sending = {},
  tls,
  server: started,
  refuses = () => false,
}: {
  login?: Partial<OAuthLogin>
  sending?: Partial<SenderOptions>
  tls?: { ca: string }
  server?: LoginServer
  /** Says of which bodies the hook answers 401, whatever their token. */
  refuses?: (body: string) => boolean
} = {}): Promise<Scene> {
  const server = started ?? (await startLoginServer())
  const guard = guardedBy(() => server)
  const script: Script = (request, response, nth) =>
    (refuses(request.body.toString()) ? answer(401) : guard)(request, response, nth)
  const hook = await startReceiver(script)
  const policy = createAddressPolicy(['127.0.0.1'])
  const sender = createSender({
    policy,
    timeoutMs: 5_000,
    poolIdleMs: 4_000,
    keptAnswerBytes: 2_048,
    ...sending,
  })
  ended.push(
    () => hook.stop(),
    () => server.stop(),
    () => sender.close(),
  )
  const oauth: OAuthLogin = {
    kind: 'oauth2',
    tokenOrigin: server.receiver.origin,
    tokenPath: '/token',
    clientId: 'sluice',
    clientSecret: 'secret',
    clientAuth: 'basic',
    ...of,
  }
  const owner = { destinationId: 'crm', sourceId: 'shop' }
  const origin = tls === undefined ? hook.origin : oauth.tokenOrigin
  const login = new Logins({ sender, now: Date.now }).of(oauth, { id: 'main', origin, tls }, owner)
  const target: Target = { origin: hook.origin, path: '/', headers: [] }
  return {
    server,
    hook,
    login,
    async post(body = '{}') {
      const outcome = Promise.withResolvers<Outcome>()
      const released = Promise.withResolvers<void>()
      let answers = 0
      const exchange = {
        answered(one: Outcome) {
          answers++
          outcome.resolve(one)
        },
        released: () => released.resolve(),
      }
      postLoggedIn(login, (own, by) => sender.post(target, Buffer.from(body), own, by), exchange)
      await released.promise
      expect(answers).toBe(1)
      return outcome.promise
    },
  }
}

const delivered = { kind: 'answer', status: 204 }

/** Returns the pairs of message and token that came more than once. */
function repeated({ requests }: Receiver): readonly string[] {
  const pairs = requests.map(({ body, headers }) => `${body.toString()} ${headers.authorization ?? ''}`)
  return pairs.filter((pair, at) => pairs.indexOf(pair) !== at)
}

test('a request for a token is as RFC 6749 says, and its token is used for all requests', async () => {
  const { server, hook, login, post } = await scene({ login: { scope: 'a b', audience: 'crm' } })
  await login.wait()
  expect(await Promise.all([post('1'), post('2'), post('3')])).toEqual([delivered, delivered, delivered])
  const [request] = server.receiver.requests
  expect(server.receiver.requests.length).toBe(1)
  expect(request?.body.toString()).toBe('grant_type=client_credentials&scope=a+b&audience=crm')
  expect(request?.headers).toMatchObject({
    'content-type': 'application/x-www-form-urlencoded',
    authorization: `Basic ${Buffer.from('sluice:secret').toString('base64')}`,
    'user-agent': 'Sluice/1.0',
  })
  expect(hook.requests.length).toBe(3)
})

test('a token is found after a byte order mark', async () => {
  const { server, login } = await scene()
  server.instead = answer(200, {}, '\ufeff{"access_token":"t"}')
  expect(await login.wait()).toBe('t')
})

test('a client may name itself in the form', async () => {
  const { server, login } = await scene({ login: { clientAuth: 'post', clientSecret: 's&cret' } })
  await login.wait()
  const [request] = server.receiver.requests
  expect(request?.headers.authorization).toBeUndefined()
  expect(Object.fromEntries(new URLSearchParams(request?.body.toString()))).toEqual({
    grant_type: 'client_credentials',
    client_id: 'sluice',
    client_secret: 's&cret',
  })
})

test('tokens that end in flight or are revoked are replaced, and nothing is lost or sent twice with one', async () => {
  const one = await scene()
  const { server, hook, login, post } = one
  await login.wait()
  expect(await post('before')).toEqual(delivered)
  server.revoke()
  const bodies = Array.from({ length: 20 }, (_, index) => `revoked ${index}`)
  const outcomes = await Promise.all(bodies.map((body) => post(body)))
  expect(outcomes.every((outcome) => outcome.kind === 'answer' && outcome.status === 204)).toBe(true)
  expect(server.given).toBe(2)
  expect(repeated(hook)).toEqual([])
  const accepted = hook.requests.filter(({ headers }) =>
    server.valid.has(String(headers.authorization).slice(7)),
  )
  expect(accepted.map(({ body }) => body.toString()).toSorted()).toEqual(bodies.toSorted())
})

test('a lifetime that is shorter than the endpoint says costs no message', async () => {
  const { server, hook, login, post } = await scene()
  // Longer than a moment in which the machine stands still: no second token in a row may have ended.
  server.lifeMs = 3_000
  await login.wait()
  let sent = 0
  await until('tokens have ended', async () => {
    expect(await post(String(sent++))).toEqual(delivered)
    return server.given > 2
  })
  expect(repeated(hook)).toEqual([])
})

describe('a token endpoint that gives no token', () => {
  test.each([
    [
      'refuses',
      answer(401, {}, '{"error":"invalid_client","error_description":"no such client"}'),
      'status 401 invalid_client no such client',
    ],
    ['fails', answer(503), 'status 503'],
    ['answers something else', answer(200, {}, '<html>'), 'status 200 without an access_token: its body'],
    ['answers without one', answer(200, {}, '{}'), 'status 200 without an access_token'],
    [
      'gives one that splits headers',
      answer(200, {}, '{"access_token":"a\\r\\nX-Evil: 1"}'),
      'status 200 with an access_token that no header can have',
    ],
    [
      'gives one that is too large for a header',
      answer(200, {}, JSON.stringify({ access_token: 'x'.repeat(17 * 1_024) })),
      'the access_token is larger than 16 KiB, which hardly any server takes in a header',
    ],
    [
      'redirects',
      answer(307, { Location: 'http://169.254.169.254/token' }),
      'status 307: Sluice follows no redirects',
    ],
    ['is silent', neverAnswer, 'timeout'],
    [
      'closes the connection',
      (_: unknown, response: { destroy(): void }) => response.destroy(),
      'connection',
    ],
  ] as const)('because it %s is told as such, and nothing is sent', async (_, script, problem) => {
    const timeoutMs = script === neverAnswer ? 300 : 30_000
    const { server, hook, login, post } = await scene({ sending: { timeoutMs } })
    server.instead = script
    expect(await login.wait()).toBeUndefined()
    expect(login.state()).toBe('failing')
    const outcome = await post()
    expect(outcome.kind).toBe('login')
    const detail = outcome.kind === 'login' ? outcome.detail : ''
    expect(detail.startsWith(`${server.receiver.origin}: ${problem}`)).toBe(true)
    expect(hook.requests).toEqual([])
  })

  test('and repeats the secret of the client, does not make it public', async () => {
    const { server, login } = await scene({ login: { clientSecret: 'a-long-client-secret' } })
    server.instead = answer(
      400,
      {},
      '{"error":"invalid_client","error_description":"not a-long-client-secret\\n\\u001b[2J"}',
    )
    await login.wait()
    expect(login.problem).toBe(`${server.receiver.origin}: status 400 invalid_client not [redacted] [2J`)
  })

  test('and repeats a form, does not make the secret in it public, however the form spells it', async () => {
    const { server, login } = await scene({ login: { clientSecret: 'se cret +1', clientAuth: 'post' } })
    const error = {
      error: 'invalid_client',
      error_description: 'client_secret=se+cret+%2B1 or se%20cret%20%2b1',
    }
    server.instead = answer(400, {}, JSON.stringify(error))
    await login.wait()
    expect(login.problem).toBe(
      `${server.receiver.origin}: status 400 invalid_client client_secret=[redacted] or [redacted]`,
    )
  })

  test('and recovers, is asked again', async () => {
    const { server, login, post } = await scene()
    server.instead = answer(500)
    expect(await login.wait()).toBeUndefined()
    server.instead = undefined
    await until('there is a token', () => login.wait())
    expect(await post()).toEqual(delivered)
  })

  test.each(['10.0.0.1', '169.254.169.254', '[::1]'])(
    'because its address (%s) is private is never connected to',
    async (host) => {
      const { login, post, hook } = await scene({ login: { tokenOrigin: `http://${host}` } })
      expect(await login.wait()).toBeUndefined()
      expect(login.problem).toBe(`http://${host}: address not allowed`)
      expect((await post()).kind).toBe('login')
      expect(hook.requests).toEqual([])
    },
  )
})

test('a thousand logins whose token endpoint hangs make some requests at once, and hold up no other', async () => {
  const hanging = await startLoginServer()
  hanging.instead = neverAnswer
  const server = await startLoginServer()
  const sender = createSender({
    policy: createAddressPolicy(['127.0.0.1']),
    timeoutMs: 60_000,
    poolIdleMs: 4_000,
  })
  ended.push(
    () => hanging.stop(),
    () => server.stop(),
    () => sender.close(),
  )
  const logins = new Logins({ sender, now: Date.now })
  const loginAt = ({ receiver }: LoginServer, id: string, sourceId: string): TokenLogin =>
    logins.of(
      {
        kind: 'oauth2',
        tokenOrigin: receiver.origin,
        tokenPath: '/token',
        clientId: 'sluice',
        clientSecret: 'secret',
        clientAuth: 'basic',
      },
      { id, origin: 'https://example.com' },
      { destinationId: id, sourceId },
    )
  const many = Array.from({ length: 1_000 }, (_, at) => loginAt(hanging, `d${at}`, `source-${at}`))
  for (const login of many) login.token()
  expect(await loginAt(server, 'crm', 'shop').wait()).toBe('token-1-of-the-server')
  await until('they ask', () => hanging.receiver.requests.length > 30)
  expect(hanging.receiver.requests.length).toBeLessThan(40)
  logins.close()
})

test('a token endpoint is reached through the outbound proxy, as hooks are', async () => {
  const server = await startLoginServer()
  const proxy = await startConnectProxy(() => ({ port: server.receiver.port }))
  const resolver = createResolver()
  const outbound = createProxy({ url: `http://127.0.0.1:${proxy.port}`, resolver, timeoutMs: 5_000 })
  ended.push(
    () => proxy.stop(),
    () => outbound.close(),
    () => resolver.close(),
  )
  const { login } = await scene({
    server,
    login: { tokenOrigin: 'http://login.example' },
    sending: { proxy: outbound, resolver },
  })
  expect(await login.wait()).toBe('token-1-of-the-server')
  expect(proxy.requests.map(({ authority }) => authority)).toEqual(['login.example:80'])
})

test('a token endpoint at the host of the hook is trusted as the hook is', async () => {
  const authority = createAuthority('An authority of a customer with a token endpoint')
  const server = await startLoginServer({ identity: authority.issue({ names: ['127.0.0.1'] }) })
  const { login } = await scene({ server, tls: { ca: authority.cert } })
  expect(await login.wait()).toBe('token-1-of-the-server')
})

test('an endpoint that refuses every token costs no token for each message', async () => {
  const { server, hook, login, post } = await scene()
  await login.wait()
  server.lifeMs = -1
  server.revoke()
  for (let index = 0; index < 10; index++)
    expect(await post(String(index))).toMatchObject({ kind: 'answer', status: 401 })
  expect(server.given).toBe(2)
  expect(repeated(hook)).toEqual([])
})

test('an endpoint that refuses some requests, and accepts others, costs no token for each', async () => {
  const { server, hook, login, post } = await scene({ refuses: (body) => body.startsWith('bad') })
  await login.wait()
  const startedMs = performance.now()
  for (let index = 0; index < 40; index++) {
    expect(await post(`good ${index}`)).toEqual(delivered)
    expect(await post(`bad ${index}`)).toMatchObject({ kind: 'answer', status: 401 })
  }
  const seconds = Math.ceil((performance.now() - startedMs) / 1_000)
  expect(server.given).toBeLessThanOrEqual(1 + 10 + seconds)
  expect(repeated(hook)).toEqual([])
})
