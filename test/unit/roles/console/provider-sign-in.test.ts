import { expect, test } from 'vitest'
import { WrongSecrets } from '../../../../src/admin/console/wrong-secrets.ts'
import { PeopleBook } from '../../../../src/admin/provider/people.ts'
import { Provider } from '../../../../src/admin/provider/provider.ts'
import { SessionBook } from '../../../../src/admin/sessions.ts'
import { TokenBook } from '../../../../src/admin/token-book.ts'
import { providerSignIn } from '../../../../src/roles/console/provider-sign-in.ts'
import { sessionsInMemory } from '../../../../src/roles/console/session-store.ts'

test('while the OpenID provider does not answer, nobody is sent there, and that is told', async () => {
  const store = sessionsInMemory()
  const limits = { lastsMs: 10_000, idleMs: 4_000 }
  const ofTopic = new Map()
  const tokens = new TokenBook({ ofFile: () => [], ofTopic: () => ofTopic })
  const told: string[] = []
  const signIn = providerSignIn({
    provider: new Provider({
      issuer: 'http://127.0.0.1:1',
      clientId: 'sluice',
      secret: async () => undefined,
      scopes: 'openid',
      redirectUri: 'http://127.0.0.1/console/oidc/callback',
      claim: 'groups',
      nameClaim: 'email',
    }),
    people: new PeopleBook(store.kept, []),
    sessions: new SessionBook({ kept: store.kept, tokens, limits }),
    store,
    limits,
    wrong: new WrongSecrets(),
    log: { warn: (_fields, message) => void told.push(message) },
  })
  const caller = { address: '192.0.2.1', secret: undefined, keep: () => ({}) }
  expect(await signIn.begin('', caller)).toEqual({ why: 'failed' })
  expect(told).toEqual(['the OpenID provider can not be asked'])
})
