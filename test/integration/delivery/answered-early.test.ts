import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Target } from '../../../src/delivery/send/sender.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startEarlyReceiver } from '../../support/early-receiver.ts'

const authority = createAuthority('An authority of early answers')
const identity = authority.issue({ names: ['127.0.0.1'] })
setDefaultCACertificates([...getCACertificates(), authority.cert])

/** So many bytes don't fit into the buffers of the kernel, so the client has to write several times. */
const bodyBytes = 8 * 2 ** 20
const rounds = 5
const atOnce = 20
const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

test.each(['http', 'https'] as const)(
  'an answer counts even if the server then closes the connection, so that a write fails, over %s',
  async (scheme) => {
    const server = await startEarlyReceiver(scheme === 'https' ? identity : undefined)
    ended.push(() => server.stop())
    const policy = createAddressPolicy(['127.0.0.1'])
    const by = createSender({ policy, timeoutMs: 20_000, poolIdleMs: 4_000 })
    ended.push(() => by.close())
    const to: Target = { origin: server.origin, path: '/', headers: [] }
    const body = Buffer.alloc(bodyBytes, 'x')
    const post = (): Promise<Outcome> =>
      new Promise((resolve) => {
        by.post(to, body, [], { answered: resolve, released: () => {} })
      })
    const outcomes: Outcome[] = []
    for (let round = 0; round < rounds; round++) {
      outcomes.push(...(await Promise.all(Array.from({ length: atOnce }, post))))
    }
    expect(outcomes).toEqual(outcomes.map(() => ({ kind: 'answer', status: 401 })))
  },
)
