import type { Caller } from '../../admin/console/browser.ts'
import type { BrowserSignIn, SignInEnd, SignInRefusal } from '../../admin/console/sign-in-pages.ts'
import type { WrongSecrets } from '../../admin/console/wrong-secrets.ts'
import { type PeopleBook, type Person, personOf, storedPerson } from '../../admin/provider/people.ts'
import type { Provider } from '../../admin/provider/provider.ts'
import { newSession, type SessionBook, type SessionLimits, storedSession } from '../../admin/sessions.ts'
import { type SessionStore, sweptBy } from './session-store.ts'

export type ProviderSignInOptions = {
  readonly provider: Pick<Provider, 'begin' | 'finish'>
  readonly people: PeopleBook
  readonly sessions: SessionBook
  readonly store: SessionStore
  readonly limits: SessionLimits
  readonly wrong: WrongSecrets
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

const secretCharacters = 43
const mostSwept = 100

/** Signs browsers in at the OpenID provider: what it says of a person becomes a session. */
export function providerSignIn(options: ProviderSignInOptions): BrowserSignIn {
  const { provider, people, wrong, log } = options

  async function begin(to: string, caller: Caller) {
    if (wrong.waitMs(caller.address) > 0) return { why: 'busy' as const }
    try {
      const { url, secret } = await provider.begin()
      return { url, kept: `${secret}.${Buffer.from(to).toString('base64url')}` }
    } catch (error) {
      log.warn({ err: error }, 'the OpenID provider can not be asked')
      return { why: 'failed' as const }
    }
  }

  async function finish(
    query: URLSearchParams,
    kept: string | undefined,
    caller: Caller,
  ): Promise<SignInEnd> {
    if (wrong.waitMs(caller.address) > 0) return refused('busy')
    const [secret = '', to = ''] = (kept ?? '').split('.', 2)
    const person = secret.length === secretCharacters ? await personIn(query, secret) : 'stale'
    if (typeof person === 'string') {
      wrong.note(caller.address)
      return refused(person)
    }
    try {
      const headers = await signedIn(options, person, caller)
      return headers === undefined
        ? refused('no_right')
        : { ok: true, headers, to: Buffer.from(to, 'base64url').toString() }
    } catch (error) {
      log.warn({ err: error }, 'a session could not be kept, since Kafka does not answer')
      return refused('unavailable')
    }
  }

  async function personIn(query: URLSearchParams, secret: string): Promise<Person | SignInRefusal> {
    try {
      const answer = await provider.finish(query, secret)
      if (!answer.ok) return answer.why
      const { claimed, ...named } = answer.named
      const person = personOf(named, people.valuesIn(claimed))
      if (person.values.length > 0) return person
      log.warn({ name: person.name }, 'somebody has signed in at the OpenID provider who has no right here')
      return 'no_right'
    } catch (error) {
      log.warn({ err: error }, 'the OpenID provider has not answered as it should')
      return 'failed'
    }
  }

  return { begin, finish }
}

function refused(why: SignInRefusal): SignInEnd {
  return { ok: false, why }
}

/** Begins a session of a person, as a sign-in with a token does. Rejects if it can't be kept. */
async function signedIn(
  { people, sessions, store, limits }: ProviderSignInOptions,
  person: Person,
  caller: Caller,
): Promise<Readonly<Record<string, string>> | undefined> {
  const token = people.tokenOf(person)
  if (token === undefined) return undefined
  const former = caller.secret === undefined ? undefined : sessions.find('session', caller.secret)?.session.id
  const { secret, session } = newSession('session', token, limits)
  const inUse = new Set(sessions.all.filter((one) => !sessions.hasEnded(one)).map(({ of }) => of))
  const isMade = await store.change({
    put: storedSession(session),
    person: storedPerson(person),
    sweep: [
      ...sweptBy(sessions, session.of),
      ...(former === undefined ? [] : [former]),
      ...people.othersThan(inUse.add(person.hash)).slice(0, mostSwept),
    ],
    by: person.name,
    deed: 'signed_in',
    note: `signed in: ${person.name}`,
  })
  return isMade ? caller.keep(secret) : undefined
}
