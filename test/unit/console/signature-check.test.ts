import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { checksOf } from '../../../src/console/data/signature-check.ts'
import { createSigner } from '../../../src/delivery/signature.ts'

const nowMs = 1_784_816_592_000
const hostile = `{"event":"it's $HOME \`id\` \\"quoted\\" %s \\\\n","name":"Zoë"}`

test.each(['a plain secret', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'])(
  'the commands for a shell compute the signatures that an endpoint gets, with the secret %s',
  (secret) => {
    const signer = createSigner({ sharedSecret: secret, nextSharedSecret: undefined, standardWebhooks: true })
    const flat = signer({ messageId: 'order-1', body: Buffer.from(hostile) }, nowMs)
    const sent = new Map(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : [])))
    const isShown = new Set(['webhook-id'])
    const headers = [...sent].map(([name, value]) => ({ name, value: isShown.has(name) ? value : null }))
    const checks = checksOf({ headers }, hostile)
    expect(checks.map(({ header }) => header)).toEqual(['X-Signature', 'webhook-signature'])
    const time = String(sent.get('webhook-timestamp'))
    for (const { header, command } of checks) {
      const filled = command.replace('TIMESTAMP=…', `TIMESTAMP=${time}`)
      const printed = execFileSync('sh', ['-c', filled], {
        env: { ...process.env, SECRET: secret },
      }).toString()
      const computed = printed.trim().split(/\s/).at(-1) ?? ''
      expect(`${header} ${String(sent.get(header))}`).toContain(computed)
      expect(computed.length).toBeGreaterThan(20)
    }
  },
)
