import { expect, test } from 'vitest'
import { createEndpoints, type DestinationDefinition } from '../../../src/delivery/endpoint.ts'

const breaker = { failureShare: 0.5, minResults: 10, windowMs: 30_000, openMs: 5_000, maxOpenMs: 60_000 }
const definition: DestinationDefinition = {
  id: 'crm',
  state: 'on',
  filter: undefined,
  sharedSecret: undefined,
  nextSharedSecret: undefined,
  standardWebhooks: false,
  strategy: 'all',
  maxInFlight: 64,
  rateLimit: undefined,
  hooks: [{ id: 'main', origin: 'https://example.com', path: '/', headers: [] }],
}
const message = { messageId: 'order-1', body: Buffer.from('{}'), attempts: 2 }

function endpointOf(given: Partial<DestinationDefinition>, isNamed: boolean) {
  return createEndpoints({ breaker, shareOfGroup: () => 1, isNamed }).of({ ...definition, ...given })
}

test('a request names its message and the number of the attempt, after the signature', () => {
  const names = ['X-Sluice-Message-Id', 'order-1', 'X-Sluice-Attempt', '2']
  expect(endpointOf({}, true).headersOf(message, 0)).toEqual(names)
  const signed = endpointOf({ sharedSecret: 'a' }, true).headersOf(message, 0)
  expect(signed).toEqual(['X-Signature', expect.stringMatching(/^[0-9a-f]{40}$/), ...names])
})

test('by the setting, only a signature is added', () => {
  expect(endpointOf({}, false).headersOf(message, 0)).toEqual([])
  expect(endpointOf({ sharedSecret: 'a' }, false).headersOf(message, 0).length).toBe(2)
})

test('an id that no header can carry is named by its hash, as webhook-id is', () => {
  const given = { sharedSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', standardWebhooks: true }
  const headers = endpointOf(given, true).headersOf({ ...message, messageId: 'é\n' }, 0)
  const name = headers[headers.indexOf('X-Sluice-Message-Id') + 1]
  expect(name).toMatch(/^[\w-]{43}$/)
  expect(headers[headers.indexOf('webhook-id') + 1]).toBe(name)
})

test('a request accepts any answer, unless its hook says what it accepts', () => {
  const [plain] = endpointOf({}, true).hooks
  expect(plain?.target.headers.slice(-2)).toEqual(['Accept', '*/*'])
  const hook = {
    id: 'main',
    origin: 'https://example.com',
    path: '/',
    headers: [['ACCEPT', 'text/csv']] as const,
  }
  const [own] = endpointOf({ hooks: [hook] }, true).hooks
  expect(own?.target.headers.filter((value) => /^accept$/i.test(value))).toEqual(['ACCEPT'])
})
