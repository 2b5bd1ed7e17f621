import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthority } from '../../support/certificates.ts'
import { guardedBy, type LoginServer, startLoginServer } from '../../support/login-server.ts'
import { type Shown, startMutualServer } from '../../support/mutual-server.ts'
import { answer, portOf, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd } from '../../support/worker-process.ts'
import { type Deployment, deploy } from './deployment.ts'

/** A worker that logs in at endpoints, while tokens and certificates come and go. */

const authority = createAuthority('An authority of logins')
let login: LoginServer
let server: Receiver
let mutual: Server
let folder: string
let sluice: Deployment
/** The messages of a test that were accepted with a token that was valid then. */
const accepted = new Set<string>()
/** The messages that came to the server that asks for a certificate, with the name in the certificate. */
const shown: Shown[] = []

beforeAll(async () => {
  login = await startLoginServer()
  login.instead = answer(503)
  const guard = guardedBy(() => login)
  const guarded: Script = (request, response, nth) => {
    guard(request, response, nth)
    const { messageId } = JSON.parse(request.body.toString())
    if (response.statusCode === 204 && messageId.startsWith('ended-')) accepted.add(messageId)
  }
  server = await startReceiver({ '/oauth': guarded, '/plain': answer(200) })
  mutual = await startMutualServer(authority, shown)
  folder = mkdtempSync(join(tmpdir(), 'sluice-logins-'))
  writeCertificate('first')
  const oauth = { kind: 'oauth2', tokenUrl: login.tokenUrl, clientId: 'sluice', clientSecret: 'secret' }
  const tls = { certificate: '${CATALOG_CERTIFICATE}', key: '${CATALOG_KEY}', ca: authority.cert }
  const mutualUrl = `https://127.0.0.1:${portOf(mutual)}/`
  sluice = await deploy({
    destinations: [
      { id: 'oauth', sources: ['shop'], hooks: [{ url: `${server.origin}/oauth`, login: oauth }] },
      { id: 'plain', sources: ['shop'], hooks: [{ url: `${server.origin}/plain` }] },
      { id: 'mutual', sources: ['shop'], hooks: [{ url: mutualUrl, tls }] },
    ],
    variables: { SLUICE_CATALOG_VARIABLES_FOLDER: folder },
  })
})

afterAll(async () => {
  await sluice?.stop()
  mutual?.closeAllConnections()
  mutual?.close()
  await server?.stop()
  await login?.stop()
  rmSync(folder, { recursive: true })
})

/** Replaces the certificate as a program does that renews it: file by file. */
function writeCertificate(subject: string): void {
  const { cert, key } = authority.issue({ names: [subject] })
  writeFileSync(join(folder, 'CATALOG_CERTIFICATE'), cert)
  writeFileSync(join(folder, 'CATALOG_KEY'), `${key}\n`)
}

function messages(name: string, count: number) {
  return Array.from({ length: count }, (_, index) => ({
    key: `user-${index % 20}`,
    value: { type: 'track', userId: `user-${index % 20}`, event: 'Ping', messageId: `${name}-${index}` },
  }))
}

const idsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${name}-${index}`).toSorted()

/** Returns the ids of the messages that a path has accepted with a token that is still valid. */
function acceptedBy(path: '/oauth' | '/plain', name: string): string[] {
  return server
    .requestsTo(path)
    .filter(({ headers }) => path === '/plain' || (login.valid.get(tokenOf(headers)) ?? 0) > 0)
    .map(({ body }) => String(JSON.parse(body.toString()).messageId))
    .filter((id) => id.startsWith(`${name}-`))
    .toSorted()
}

function tokenOf(headers: { readonly authorization?: string | undefined }): string {
  return String(headers.authorization).replace('Bearer ', '')
}

/** Returns the messages that were sent more than once with the same token. */
function repeated(): readonly string[] {
  const pairs = server
    .requestsTo('/oauth')
    .map(({ body, headers }) => `${String(JSON.parse(body.toString()).messageId)} ${tokenOf(headers)}`)
  return pairs.filter((pair, at) => pairs.indexOf(pair) !== at)
}

describe('while the token endpoint fails', () => {
  const count = 40

  test('messages wait in the queue of their destination, and others are not held up', async () => {
    await sluice.send('shop', messages('failing', count))
    await until('the others came', () => acceptedBy('/plain', 'failing').length === count)
    await until('they wait', async () => {
      const records = await sluice.read('waiting')
      return records.filter(({ value }) => String(value).includes('failing-')).length >= count
    })
    expect(server.requestsTo('/oauth')).toEqual([])
    const line = await until('it is logged', () =>
      sluice.worker.log.find(({ destination, problem }) => destination === 'oauth' && problem !== undefined),
    )
    expect(line).toMatchObject({ level: 'warn', problem: `${login.receiver.origin}: status 503` })
  })

  test('the status and a test of the destination say why', async () => {
    const status = await until('it is told', async () => {
      const { stdout } = await runToEnd(['destinations', 'status', 'oauth'], sluice.settings)
      return stdout.includes('login failed') ? stdout : undefined
    })
    expect(status).toContain('status 503')
    const { code, stdout } = await runToEnd(['destinations', 'test', 'oauth'], sluice.settings)
    expect(code).toBe(1)
    expect(stdout).toContain(`login failed: ${login.receiver.origin}: status 503`)
    expect(stdout).toContain('Check tokenUrl, clientId, clientSecret and scope')
    const tested = await runToEnd(['destinations', 'test', 'oauth', '--json'], sluice.settings)
    expect(JSON.parse(tested.stdout).hooks).toMatchObject([
      {
        login: {
          kind: 'oauth2',
          tokenOrigin: login.receiver.origin,
          problem: `${login.receiver.origin}: status 503`,
        },
        certificateEndsAt: null,
      },
    ])
  })

  test('they come when it works again, each once, as first attempts', async () => {
    login.instead = undefined
    await until('all came', () => acceptedBy('/oauth', 'failing').length >= count, { timeoutMs: 90_000 })
    expect(acceptedBy('/oauth', 'failing')).toEqual(idsOf('failing', count))
    const attempts = server.requestsTo('/oauth').map(({ headers }) => headers['x-sluice-attempt'])
    expect(new Set(attempts)).toEqual(new Set(['1']))
    expect(await sluice.read('dead-letters')).toEqual([])
    expect(await sluice.read('retry.1m')).toEqual([])
  })

  test('a test of the destination says then that a token came, and from where', async () => {
    const { stdout } = await runToEnd(['destinations', 'test', 'oauth'], sluice.settings)
    expect(stdout).toMatch(new RegExp(`a token came from ${login.receiver.origin} after \\d+ ms`))
  })
})

test('tokens that are revoked or end early cost no message and no try', async () => {
  const before = login.given
  login.revoke()
  login.lifeMs = 2_000
  let sent = 0
  await until(
    'several tokens have ended',
    async () => {
      const some = messages('ended', sent + 10).slice(sent)
      sent += some.length
      await sluice.send('shop', some)
      await until('they came', () => accepted.size >= sent)
      return login.given >= before + 3
    },
    { timeoutMs: 90_000 },
  )
  login.lifeMs = 3_600_000
  expect([...accepted].toSorted()).toEqual(idsOf('ended', sent))
  expect(repeated()).toEqual([])
  expect(await sluice.read('dead-letters')).toEqual([])
})

test('a certificate that is replaced while messages flow costs none of them', async () => {
  const count = 300
  const sending = (async () => {
    for (let at = 0; at < count; at += 20) {
      await sluice.send('shop', messages('certificate', count).slice(at, at + 20))
      if (at === 100) writeCertificate('second')
    }
  })()
  await sending
  const came = (): string[] => shown.map(({ id }) => id).filter((id) => id.startsWith('certificate-'))
  await until('all came', () => came().length >= count)
  expect(came().toSorted()).toEqual(idsOf('certificate', count))
  let after = 0
  await until('the new one is shown', async () => {
    await sluice.send('shop', messages('after', ++after).slice(-1))
    return shown.some(({ id, subject }) => id.startsWith('after-') && subject === 'second')
  })
  expect(shown[0]?.subject).toBe('first')
  expect(await sluice.read('retry.1m')).toEqual([])
})
