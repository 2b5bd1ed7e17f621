import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts'
import { answer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { type Deployment, type DestinationEntry, deploy } from '../delivery/deployment.ts'

/**
 * What token endpoints can do to a worker, on a real Kafka. Each destination has its own token endpoint, and all get the
 * same messages.
 */

const json = { 'Content-Type': 'application/json' }
const secret = 's3cret-of-it'
const count = 5

/** Writes a body without an end, as fast as it is read. */
const endless: Script = (_request, response) => {
  response.writeHead(200, json)
  const write = (): void => {
    while (!response.destroyed && response.write('x'.repeat(16_384)));
  }
  response.on('drain', write)
  write()
}

/** Begins a token, and never ends it. */
const stalled: Script = (_request, response) => {
  response.writeHead(200, json).write('{"access_token":"a')
}

type Row = { readonly gives: Script; readonly problem: string }
const unread = 'status 200 without an access_token: its body'

/** What each token endpoint does until it is mended, and how Sluice says so. */
const failing: Readonly<Record<string, Row>> = {
  redirecting: {
    gives: (request, response, nth) => elsewhere(307)(request, response, nth),
    problem: 'status 307: Sluice follows no redirects, write the final URL as tokenUrl',
  },
  'redirecting-inside': {
    gives: answer(302, { Location: 'http://169.254.169.254/latest/token' }),
    problem: 'status 302: Sluice follows no redirects, write the final URL as tokenUrl',
  },
  silent: { gives: () => {}, problem: 'timeout' },
  stalled: { gives: stalled, problem: unread },
  large: { gives: answer(200, json, `{"access_token":"${'x'.repeat(1024 * 1024)}"}`), problem: unread },
  endless: { gives: endless, problem: unread },
  garbage: { gives: answer(200, { 'Content-Type': 'text/html' }, '<html>'), problem: unread },
  splitting: {
    gives: answer(200, json, '{"access_token":"a\\r\\nX-Evil: 1"}'),
    problem: 'status 200 with an access_token that no header can have',
  },
  revoked: {
    gives: answer(401, json, '{"error":"invalid_client","error_description":"no client with s3cret-of-it"}'),
    problem: 'status 401 invalid_client no client with [redacted]',
  },
  paced: { gives: answer(429, { 'Retry-After': '2' }), problem: 'status 429' },
}
/** Tokens that end at once, of which Sluice says so without naming the token endpoint. */
const brief = {
  gives: answer(200, json, '{"access_token":"brief","expires_in":0.02}'),
  problem: 'the tokens end within a second: let the token endpoint give a longer expires_in',
}
/** The name of a token endpoint that has a private address until it is mended. */
const insideName = 'login.inside.example'

const oddLives: Readonly<Record<string, string>> = {
  negative: '-3600',
  huge: '1e300',
  text: '"3600"',
  words: '"an hour"',
  nothing: 'null',
}

/** The paths that need no token. */
const isOpen = new Set(['/plain', '/ops'])

let isMended = false
let tokens: Receiver
let hooks: Receiver
let other: Receiver
let dns: DnsServer
let access: AdminTokens
let admin: SluiceProcess
let sluice: Deployment

const elsewhere = (status: number): Script => answer(status, { Location: `${other.origin}/token` })

function giving(life: string): Script {
  return ({ path }, response) =>
    response.writeHead(200, json).end(`{"access_token":"of-${path.slice(1)}","expires_in":${life}}`)
}

beforeAll(async () => {
  const scripts = Object.entries({ ...failing, brief }).map(([name, { gives }]): [string, Script] => [
    `/${name}`,
    (request, response, nth) => (isMended ? giving('3600') : gives)(request, response, nth),
  ])
  const odd = Object.entries(oddLives).map(([name, life]): [string, Script] => [`/${name}`, giving(life)])
  tokens = await startReceiver(Object.fromEntries([...scripts, ...odd, ['/inside', giving('3600')]]))
  hooks = await startReceiver((request, response, nth) => {
    const expected = `Bearer of-${request.path.slice(1)}`
    const isLoggedIn = isOpen.has(request.path) || request.headers.authorization === expected
    answer(isLoggedIn ? 200 : 401)(request, response, nth)
  })
  other = await startReceiver()
  dns = await startDnsServer(({ name, type }) => {
    if (name !== insideName) return 'NXDOMAIN'
    return { addresses: type === 'A' ? [isMended ? '127.0.0.1' : '10.0.0.1'] : [], ttlSeconds: 1 }
  })
  access = await makeTokens()
  sluice = await deploy({
    destinations: [
      { id: 'plain', sources: ['shop'], hooks: [{ url: `${hooks.origin}/plain` }] },
      { id: 'ops', sources: ['sluice'], hooks: [{ url: `${hooks.origin}/ops` }] },
      ...[...Object.keys(failing), 'brief', ...Object.keys(oddLives)].map((name) =>
        to(name, `${tokens.origin}/${name}`),
      ),
      to('inside', `http://${insideName}:${tokens.port}/inside`),
    ],
    variables: {
      SLUICE_DELIVERY_TIMEOUT: '1s',
      SLUICE_NOTICES_FAILING_AFTER: '1s',
      SLUICE_DELIVERY_DNS_SERVERS: dns.address,
      SLUICE_ADMIN_TOKENS_FILE: access.file,
    },
  })
  admin = await startSluice(sluice.settings, { role: 'admin' })
})

afterAll(async () => {
  await admin?.kill()
  await sluice?.stop()
  access?.remove()
  await Promise.all([tokens, hooks, other, dns].map((one) => one?.stop()))
})

function to(id: string, tokenUrl: string): DestinationEntry {
  const login = { kind: 'oauth2', tokenUrl, clientId: 'sluice', clientSecret: secret }
  return { id, sources: ['shop'], hooks: [{ id: 'main', url: `${hooks.origin}/${id}`, login }] }
}

const ids = Array.from({ length: count }, (_, index) => `message-${index}`)
const names = [...Object.keys(failing), 'brief', 'inside']

function cameTo(id: string): string[] {
  return hooks
    .requestsTo(`/${id}`)
    .map(({ body }) => String(JSON.parse(body.toString()).messageId))
    .toSorted()
}

function problemOf(name: string): string {
  if (name === 'brief') return brief.problem
  if (name === 'inside') return `http://${insideName}:${tokens.port}: address not allowed`
  return `${tokens.origin}: ${failing[name]?.problem}`
}

/** Returns the beginning of a text, as much as `problemOf` says of a token endpoint. */
function beginning(text: unknown, name: string): string {
  return String(text).slice(0, problemOf(name).length)
}

async function call(path: string, body?: object) {
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/destinations/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${access.admin}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return JSON.parse(await response.text())
}

describe('while token endpoints give nothing that can be used', () => {
  test('nothing is sent with a login, and destinations without one are not held up', async () => {
    await sluice.send(
      'shop',
      ids.map((messageId) => ({
        key: messageId,
        value: { type: 'track', userId: messageId, event: 'Ping', messageId },
      })),
    )
    await until('the others came', () => cameTo('plain').length === count)
    await until('all that can not be sent wait', async () => {
      const waiting = await sluice.read('waiting')
      return names.every(
        (name) => waiting.filter(({ headers }) => headers['destination-id'] === name).length >= count,
      )
    })
    expect(names.flatMap(cameTo)).toEqual([])
    expect(other.requests).toEqual([])
  })

  test.each(Object.keys(oddLives))('a lifetime of its token that is %s holds nothing up', async (name) => {
    await until('all came', () => cameTo(name).length === count)
    expect(cameTo(name)).toEqual(ids)
    expect(tokens.requestsTo(`/${name}`)).toHaveLength(1)
  })

  test.each(names)('the log says why (%s)', async (name) => {
    const line = await until('it is logged', () =>
      sluice.worker.log.find(({ destination, problem }) => destination === name && problem !== undefined),
    )
    expect(line).toMatchObject({ level: 'warn', hook: 'main' })
    expect(beginning(line['problem'], name)).toBe(problemOf(name))
    expect(JSON.stringify(sluice.worker.log)).not.toContain(secret)
  })

  test.each(names)('the API says why (%s)', async (name) => {
    const told = await until('it is told', async () => (await call(`${name}/health`)).hooks[0].failing)
    expect(beginning(told.loginProblem, name)).toBe(problemOf(name))
  })

  test('the command says the same of all', async () => {
    const { stdout } = await runToEnd(['destinations', 'list', '--json'], sluice.settings)
    const lines = stdout.trim().split('\n')
    const told = new Map(
      lines.map((line) => JSON.parse(line)).map((one) => [one.id, one.hooks[0].failing?.loginProblem]),
    )
    for (const name of names) expect(beginning(told.get(name), name)).toBe(problemOf(name))
    expect(told.has('plain')).toBe(true)
    expect(told.get('plain')).toBeUndefined()
    const counted = await sluice.worker.metric('sluice_token_requests_total', { outcome: 'failed' })
    expect(counted).toBeGreaterThanOrEqual(3 * names.length)
  })

  test.each(names)('the customer gets a notice (%s)', async (name) => {
    const notice = await until('it came', () =>
      hooks
        .requestsTo('/ops')
        .map(({ body }) => JSON.parse(body.toString()))
        .find(({ event, properties }) => event === 'Endpoint Failing' && properties.destination === name),
    )
    expect(beginning(notice.properties.lastOutcome.replace('login failed: ', ''), name)).toBe(problemOf(name))
  })

  test('none of them is asked without a pause', () => {
    for (const name of names) {
      const times = tokens.requestsTo(`/${name}`).map(({ atMs }) => atMs)
      const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0))
      expect(Math.min(...gaps)).toBeGreaterThan(name === 'paced' ? 1_950 : 750)
    }
    expect(tokens.requestsTo('/inside')).toEqual([])
    expect(other.requests).toEqual([])
  })

  test.each(names)('a test of the destination says why (%s)', async (name) => {
    const { hooks: tried, isAccepted } = await call(`${name}/test`, {})
    expect(isAccepted).toBe(false)
    expect(beginning(tried[0].login.problem, name)).toBe(problemOf(name))
    expect(tried[0].outcome).toBe(`login failed: ${tried[0].login.problem}`)
    expect(tried[0].advice).toContain('Check tokenUrl, clientId, clientSecret and scope')
    expect(cameTo(name)).toEqual([])
  })

  test.each(['redirecting', 'large', 'inside'])('a test by the command says the same (%s)', async (name) => {
    const { code, stdout } = await runToEnd(['destinations', 'test', name, '--json'], sluice.settings)
    const { hooks: byCommand } = JSON.parse(stdout)
    const { hooks: byApi } = await call(`${name}/test`, {})
    expect(code).toBe(1)
    expect(byCommand.map(withoutTimes)).toEqual(byApi.map(withoutTimes))
  })
})

describe('once they give tokens', () => {
  beforeAll(() => {
    isMended = true
  })

  test.each(names)('what has waited comes, each message once and as a first attempt (%s)', async (name) => {
    await until('all came', () => cameTo(name).length >= count, { timeoutMs: 90_000 })
    expect(cameTo(name)).toEqual(ids)
    const attempts = hooks.requestsTo(`/${name}`).map(({ headers }) => headers['x-sluice-attempt'])
    expect(new Set(attempts)).toEqual(new Set(['1']))
  })

  test('no message was given up, or had to be tried again', async () => {
    expect(await sluice.read('dead-letters')).toEqual([])
    expect(await sluice.read('retry.1m')).toEqual([])
  })
})

/** Returns the result of a test without what is different each time. */
function withoutTimes(hook: { durationMs: number; login: object }): object {
  return { ...hook, durationMs: 0, login: { ...hook.login, durationMs: 0 } }
}
