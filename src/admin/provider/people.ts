import { digestOf, type Token } from '../tokens.ts'
import type { ProviderRight } from './provider-rights.ts'

/** Somebody who has signed in at the OpenID provider. */
export type Person = {
  readonly id: string
  /** For the audit trail. */
  readonly name: string
  /** The hash of the issuer and of the subject, by which sessions name the person. */
  readonly hash: string
  /** What the provider sent in the claim, as far as the settings gave rights for it. */
  readonly values: readonly string[]
}

type StoredPerson = Readonly<Record<string, unknown>>

/** What the names of sessions of people begin with. No token has such a name. */
export const personPrefix = 'oidc:'
const mostNameCharacters = 100

/** Makes a person from what the provider says. The same subject of the same issuer is the same person. */
export function personOf(
  { issuer, subject, name }: { readonly issuer: string; readonly subject: string; readonly name: string },
  values: readonly string[],
): Person {
  const hash = digestOf(JSON.stringify([issuer, subject])).toString('hex')
  // Names are in logs and in the audit trail, where those of tokens have the same characters.
  const plain = name.replaceAll(/[^A-Za-z0-9._@+-]/g, '_').slice(0, mostNameCharacters)
  return { id: personId(hash), name: `${personPrefix}${plain}`, hash, values }
}

/** Returns the id of a person, by the hash that sessions have. */
export function personId(hash: string): string {
  return `person.${hash.slice(0, 24)}`
}

export function storedPerson({ id, name, hash, values }: Person): StoredPerson {
  return { id, kind: 'person', name, sha256: hash, values }
}

const storedFields = new Set(['id', 'kind', 'name', 'sha256', 'values'])

/** Reads what is kept. Returns `undefined` for others, and for what this version doesn't know all of. */
function readStoredPerson(stored: StoredPerson): Person | undefined {
  const { id, kind, name, sha256: hash, values } = stored
  const isKnown = kind === 'person' && Object.keys(stored).every((field) => storedFields.has(field))
  if (!isKnown || typeof id !== 'string' || typeof name !== 'string' || typeof hash !== 'string')
    return undefined
  const texts = Array.isArray(values) ? values.filter((one) => typeof one === 'string') : []
  return { id, name, hash, values: texts }
}

/** The people who have signed in at the provider, and what they may do by the settings of now. */
export class PeopleBook {
  readonly #kept: () => ReadonlyMap<string, StoredPerson>
  readonly #rights: readonly ProviderRight[]
  /** What `#byHash` was made from. */
  #stored: ReadonlyMap<string, unknown> | undefined
  #byHash = new Map<string, Person>()

  /** `rights`: the first one that fits a person counts. Empty: nobody may do anything. */
  constructor(kept: () => ReadonlyMap<string, StoredPerson>, rights: readonly ProviderRight[]) {
    this.#kept = kept
    this.#rights = rights
  }

  /** The values of a claim for which there are rights. */
  valuesIn(claimed: readonly string[]): readonly string[] {
    return this.#rights.map(({ value }) => value).filter((value) => claimed.includes(value))
  }

  /** Returns what a person may do. `undefined`: nothing. */
  tokenOf({ name, hash, values }: Person): Token | undefined {
    const given = this.#rights.find(({ value }) => values.includes(value))
    if (given === undefined) return undefined
    const { right, seesContent, scope } = given
    const digest = Buffer.from(hash, 'hex')
    return { name, right, seesContent, digest, scope, endsAtMs: undefined, family: name }
  }

  /** Finds what somebody may do who has signed in, by the hash that the session has. */
  withHash(hash: string): Token | undefined {
    const person = this.#people.get(hash)
    return person && this.tokenOf(person)
  }

  /** Returns the ids of people to whom none of these hashes belongs. */
  othersThan(hashes: ReadonlySet<string>): readonly string[] {
    return [...this.#people.values()].flatMap(({ id, hash }) => (hashes.has(hash) ? [] : [id]))
  }

  get #people(): ReadonlyMap<string, Person> {
    const stored = this.#kept()
    if (stored !== this.#stored) {
      this.#stored = stored
      const people = [...stored.values()].flatMap((one) => readStoredPerson(one) ?? [])
      this.#byHash = new Map(people.map((person) => [person.hash, person]))
    }
    return this.#byHash
  }
}
