import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuthenticationProviderArgs, Mechanism } from 'kafkajs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ReportedTroubles } from '../../../src/kafka/login-error.ts'
import { createLogin } from '../../../src/kafka/sasl.ts'

/** Starts a token endpoint that answers with these statuses. Each token lives for 16 s. */
async function tokenEndpoint(statuses: readonly number[]): Promise<string> {
  const left = [...statuses]
  const server = createServer((_request, response) => {
    response.writeHead(left.shift() ?? 500, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ access_token: 'token', expires_in: 16 }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
}

async function logIn(mechanism: Mechanism | undefined): Promise<void> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the login uses no other members
  const args = { host: 'broker', port: 9092, saslAuthenticate: async () => '' } as unknown
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
  await mechanism?.authenticationProvider(args as AuthenticationProviderArgs).authenticate()
}

test('a token that can not be renewed is reported by the newest client', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const settings = {
    brokers: ['broker:9092'],
    clientId: 'sluice',
    ssl: false,
    saslMechanism: 'oauthbearer' as const,
    saslUsername: undefined,
    saslPassword: undefined,
    oauthTokenUrl: await tokenEndpoint([200, 503]),
    oauthClientId: 'sluice',
    oauthClientSecret: 'secret',
  }
  // A role first looks at the brokers with a client that logs nothing.
  await logIn(createLogin(settings, new ReportedTroubles(() => undefined)))
  const logged: string[] = []
  const login = createLogin(settings, new ReportedTroubles((message) => void logged.push(message)))
  vi.setSystemTime(Date.now() + 2_000)
  await logIn(login)
  expect(logged).toEqual([expect.stringContaining('the previous token stays in use until it expires')])
})
