import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuthenticationProviderArgs, Mechanism } from 'kafkajs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ReportedTroubles } from '../../../../src/http/login-error.ts'
import { createLogin } from '../../../../src/kafka/login/sasl.ts'

const token = 'eyJhbGciOiJub25lIn0.planted-token.'

/**
 * Starts a token endpoint that answers with these statuses, and repeats the login. Each token lives for 16 s.
 */
async function tokenEndpoint(statuses: readonly number[]): Promise<string> {
  const left = [...statuses]
  const server = createServer(({ headers: { authorization = '' } }, response) => {
    const login = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()
    response.writeHead(left.shift() ?? 500, { 'content-type': 'application/json' })
    const error = { error: 'invalid_client', error_description: `${authorization} is ${login}` }
    response.end(JSON.stringify({ access_token: token, expires_in: 16, ...error }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
}

function settingsOf(oauthTokenUrl: string) {
  return {
    brokers: ['broker:9092'],
    clientId: 'sluice',
    ssl: false,
    saslMechanism: 'oauthbearer' as const,
    saslUsername: undefined,
    saslPassword: undefined,
    oauthTokenUrl,
    oauthClientId: 'sluice',
    oauthClientSecret: 'planted secret',
  }
}

async function logIn(mechanism: Mechanism | undefined, refusal = ''): Promise<void> {
  const args = { host: 'broker', port: 9092, saslAuthenticate: async () => refusal } as unknown
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
  await mechanism?.authenticationProvider(args as AuthenticationProviderArgs).authenticate()
}

test('a token that can not be renewed is reported by the newest client', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const settings = settingsOf(await tokenEndpoint([200, 503]))
  // A role first looks at the brokers with a client that logs nothing.
  await logIn(createLogin(settings, new ReportedTroubles(() => undefined)))
  const logged: string[] = []
  const login = createLogin(settings, new ReportedTroubles((message) => void logged.push(message)))
  vi.setSystemTime(Date.now() + 2_000)
  await logIn(login)
  expect(logged).toEqual([expect.stringContaining('the previous token stays in use until it expires')])
})

test('neither the login nor the token is in what a token endpoint or a broker is said to have answered', async () => {
  const logged: string[] = []
  const troubles = new ReportedTroubles((message) => void logged.push(message))
  await expect(logIn(createLogin(settingsOf(await tokenEndpoint([401])), troubles))).rejects.toThrow(
    'answered 401 invalid_client [redacted] is [redacted]',
  )
  const login = createLogin(settingsOf(await tokenEndpoint([200])), troubles)
  await expect(logIn(login, `{"status":"invalid_token: ${token}"}`)).rejects.toThrow(
    'the broker answered {"status":"invalid_token: [redacted]"}',
  )
  expect(logged.join()).not.toMatch(/planted|cGxhbnRlZ/)
})
