import { WrongSecrets } from '../../admin/console/wrong-secrets.ts'
import type { AdminServerOptions } from '../../admin/server.ts'
import { PeopleBook } from '../../admin/provider/people.ts'
import { SessionBook } from '../../admin/sessions.ts'
import type { TokenBook } from '../../admin/token-book.ts'
import type { Token } from '../../admin/tokens.ts'
import type { Config } from '../../config/schema.ts'
import type { OpenedDesk } from '../operations/catalog-desk.ts'
import type { CatalogTopic } from '../catalog/followed-topic.ts'
import { LinkBook } from '../../admin/links.ts'
import { heldSessionCalls } from './held-sessions.ts'
import { linkCalls } from './link-calls.ts'
import { openProvider } from './open-provider.ts'
import { providerSignIn } from './provider-sign-in.ts'
import { themeOf } from './theme.ts'
import { openBundle } from './open-bundle.ts'
import { makeCode, Renewals, sessionCalls, type SessionCallsOptions } from './session-calls.ts'
import { sessionsInMemory, sessionsInTopic } from './session-store.ts'

export type OpenConsoleOptions = {
  readonly config: Config
  readonly log: Record<'info' | 'warn', (fields: object, message: string) => void>
  readonly tokens: TokenBook
  /** Both are `undefined` if the catalog is in a file. */
  readonly desk: Pick<OpenedDesk, 'change' | 'look'> | undefined
  readonly topic: Pick<CatalogTopic, 'revision' | 'tokens'> | undefined
  readonly onSignIn: SessionCallsOptions['onSignIn']
}

/** What the server of the admin API gets from the console. */
export type OpenedConsole = {
  readonly calls: ReturnType<typeof sessionCalls> &
    ReturnType<typeof linkCalls> &
    ReturnType<typeof heldSessionCalls>
  readonly ofServer: Pick<AdminServerOptions, 'findSession' | 'browsers' | 'console' | 'provider'>
  readonly codeOf: (token: Token) => Promise<string>
  /** The number of sessions that are in force, without codes. */
  readonly sessions: () => number
}

/** Opens the sign-in and the pages of the console. */
export function openConsole(options: OpenConsoleOptions): OpenedConsole {
  const { config, log, tokens, desk, topic, onSignIn } = options
  const { publicUrl, trustedProxies, sessionTimeoutMs, sessionIdleTimeoutMs } = config.admin
  const limits = { lastsMs: sessionTimeoutMs, idleMs: sessionIdleTimeoutMs }
  const store = desk === undefined || topic === undefined ? sessionsInMemory() : sessionsInTopic(desk, topic)
  const links = new LinkBook(store.kept)
  const opened = openProvider(config)
  const people = new PeopleBook(store.kept, opened?.rights ?? [])
  const sessions = new SessionBook({
    kept: store.kept,
    tokens: {
      withHash: (hash) => tokens.withHash(hash) ?? links.withHash(hash) ?? people.withHash(hash),
      hasEnded: (token) => tokens.hasEnded(token),
    },
    limits,
  })
  const renewals = new Renewals({ store, sessions, log })
  const base = publicUrl?.replace(/\/+$/, '') ?? ''
  const home = `${base}/console/`
  const prefix = base === '' ? '' : new URL(base).pathname.replace(/\/+$/, '')
  const theme = themeOf(config)
  const wrong = new WrongSecrets()
  const ofTopic = topic === undefined ? undefined : store
  return {
    calls: {
      ...sessionCalls({
        tokens,
        links,
        sessions,
        store,
        limits,
        wrong,
        home,
        theme: theme?.shown ?? null,
        catalog: config.catalog.source,
        onSignIn,
        log,
      }),
      ...linkCalls({ links, store: ofTopic, home, log }),
      ...heldSessionCalls({ sessions, store, log }),
    },
    ofServer: {
      findSession: (secret) => renewals.find(secret),
      browsers: { publicUrl, trustedProxies },
      provider:
        opened && providerSignIn({ provider: opened.provider, people, sessions, store, limits, wrong, log }),
      console: {
        bundle: openBundle(prefix, log),
        logo: theme?.logo,
        onViolation: (violation) =>
          log.warn(violation, 'a browser has refused a part of the console, which its policy forbids'),
      },
    },
    codeOf: async (token) => (await makeCode({ store, sessions }, token)).code,
    sessions: () => sessions.count,
  }
}
