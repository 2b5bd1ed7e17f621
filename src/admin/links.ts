import { randomBytes } from 'node:crypto'
import { readScope, scopeData, type TokenScope } from './scope.ts'
import { digestOf, type Grant, grants, type Token } from './tokens.ts'

/** A link by which somebody signs in to the console without a token, for what one label has. */
export type Link = {
  readonly id: string
  /** Who it is for: the audit trail has it. */
  readonly name: string
  /** The SHA-256 hash of its secret, in hexadecimal digits. */
  readonly hash: string
  readonly scope: TokenScope
  readonly grants: readonly Grant[]
  readonly endsAtMs: number
  readonly madeBy: string
  readonly madeAtMs: number
}

/** What the names of sessions of a link begin with. */
export const linkPrefix = 'link:'

type StoredLink = Readonly<Record<string, unknown>>

/** Makes a link, and its secret, of which only the hash is kept. */
export function newLink(order: Omit<Link, 'id' | 'hash' | 'madeAtMs'>): {
  readonly secret: string
  readonly link: Link
} {
  const secret = `sluice_link_${randomBytes(32).toString('base64url')}`
  const id = `link.${randomBytes(12).toString('hex')}`
  return { secret, link: { ...order, id, hash: digestOf(secret).toString('hex'), madeAtMs: Date.now() } }
}

export function storedLink(link: Link): StoredLink {
  const { id, name, hash, scope, endsAtMs, madeBy, madeAtMs } = link
  return {
    id,
    kind: 'link',
    name,
    sha256: hash,
    scope: scopeData(scope),
    grants: link.grants,
    endsAt: new Date(endsAtMs).toISOString(),
    madeBy,
    madeAt: new Date(madeAtMs).toISOString(),
  }
}

const storedFields = new Set([
  'id',
  'kind',
  'name',
  'sha256',
  'scope',
  'grants',
  'endsAt',
  'madeBy',
  'madeAt',
])

/** Reads what is kept. Returns `undefined` for a token, and for what this version doesn't know all of. */
function readStoredLink(stored: StoredLink): Link | undefined {
  const text = (name: string): string => (typeof stored[name] === 'string' ? stored[name] : '')
  if (stored['kind'] !== 'link' || !Object.keys(stored).every((name) => storedFields.has(name)))
    return undefined
  const scope = readScope(stored['scope'])
  const given: readonly unknown[] = Array.isArray(stored['grants']) ? stored['grants'] : []
  const known = grants.filter((grant) => given.includes(grant))
  const [endsAtMs, madeAtMs] = [Date.parse(text('endsAt')), Date.parse(text('madeAt'))]
  if (scope?.label === undefined || known.length !== given.length || Number.isNaN(endsAtMs + madeAtMs))
    return undefined
  return {
    id: text('id'),
    name: text('name'),
    hash: text('sha256'),
    scope,
    grants: known,
    endsAtMs,
    madeBy: text('madeBy'),
    madeAtMs,
  }
}

/** The links that are kept in the topic of the catalog. */
export class LinkBook {
  readonly #kept: () => ReadonlyMap<string, StoredLink>
  /** What `#byHash` was made from. */
  #stored: ReadonlyMap<string, unknown> | undefined
  #byHash = new Map<string, Link>()

  /** @param kept what is kept, with the tokens of the topic: another map after each change. */
  constructor(kept: () => ReadonlyMap<string, StoredLink>) {
    this.#kept = kept
  }

  /** Finds what the holder of a link may do, by its hash. The link may have ended. */
  withHash(hash: string): Token | undefined {
    const link = this.#links.get(hash)
    if (link === undefined) return undefined
    return {
      // No token has such a name, so a link that is named like one can't be taken for it in the audit trail.
      name: `${linkPrefix}${link.name}`,
      right: 'read',
      seesContent: false,
      grants: new Set(link.grants),
      digest: Buffer.from(hash, 'hex'),
      scope: link.scope,
      endsAtMs: link.endsAtMs,
      family: link.id,
    }
  }

  /** Finds what the holder of a link may do, by its secret. The link may have ended. */
  find(secret: string): Token | undefined {
    return this.withHash(digestOf(secret).toString('hex'))
  }

  /** All links that are kept, also those that have ended. */
  get all(): readonly Link[] {
    return [...this.#links.values()]
  }

  get #links(): ReadonlyMap<string, Link> {
    const stored = this.#kept()
    if (stored !== this.#stored) {
      this.#stored = stored
      const links = [...stored.values()].flatMap((one) => readStoredLink(one) ?? [])
      this.#byHash = new Map(links.map((link) => [link.hash, link]))
    }
    return this.#byHash
  }
}
