import { hash } from 'node:crypto'
import isEqual from 'fast-deep-equal'
import { formatPath } from '../catalog/fault.ts'
import { readHookUrl } from '../catalog/hook-url.ts'
import { listOf, recordOf } from '../catalog/plain-data.ts'
import { fillIn, namesVariable, type Variables } from '../catalog/variables.ts'
import { messageOf } from '../kafka/wire/errors.ts'
import type { CatalogKeys } from './keys.ts'
import { keyOf, type ObjectName } from './names.ts'
import { seal, sealedAtMs, SealError, type SealedPlace, sealedWith, unseal } from './seal.ts'
import { type SecretField, withSecretFields } from './secret-fields.ts'

// An object has three forms. Given: as in a catalog file, and `${kept:…}` for what stays as it is. Plain: as
// in a catalog file without variables. Stored: what may be secret is sealed. A URL is stored as its origin, a
// space, and the sealed whole.

export type Definition = Readonly<Record<string, unknown>>

/** A fault of a text that is kept. */
export type KeptFault = { readonly path: string; readonly problem: string; readonly advice: string }

const kept = /\$\{kept:[^}]*?:([0-9a-f]{16})\}/

/** Converts the definitions of objects from one form to another. */
export class Definitions {
  readonly #installation: string
  readonly #keys: CatalogKeys

  constructor(installation: string, keys: CatalogKeys) {
    this.#installation = installation
    this.#keys = keys
  }

  /** Opens what is sealed. Throws if a text can't be opened. */
  plain(name: ObjectName, stored: Definition): Definition {
    return withSecretFields(name.kind, stored, (text, at) => {
      try {
        return escaped(this.#open(text, name, at))
      } catch (error) {
        throw new SealError(`${keyOf(name)}: ${formatPath(at.path)} ${messageOf(error)}`, { cause: error })
      }
    })
  }

  /** Returns true if two stored definitions have the same content, however it is sealed. */
  isSame(name: ObjectName, one: Definition | undefined, other: Definition | undefined): boolean {
    if (one === undefined || other === undefined) return one === other
    return isEqual(one, other) || isEqual(this.plain(name, one), this.plain(name, other))
  }

  /**
   * Returns a definition as people see it: each secret is `${kept:TIME:ID}`, which says since when it is set,
   * and keeps it if it is written back. `showsUrls`: the paths of URLs aren't hidden.
   */
  shown(name: ObjectName, stored: Definition, { showsUrls }: { readonly showsUrls: boolean }): Definition {
    return withSecretFields(name.kind, stored, (text, at) => {
      if (at.field !== 'url') return markOf(text)
      if (showsUrls) return escaped(this.#open(text, name, at))
      const [origin = '', sealed = ''] = text.split(' ')
      return `${origin}/${markOf(sealed)}`
    })
  }

  /**
   * Fills in variables, and what is kept of the earlier definition. Returns the plain form, or the faults of
   * what is kept. Texts with other faults stay as they are: the rules of the catalog find them.
   */
  fill(
    name: ObjectName,
    given: Definition,
    { earlier, variables }: { readonly earlier: Definition | undefined; readonly variables: Variables },
  ): { readonly plain: Definition; readonly faults: readonly KeptFault[] } {
    const known = earlier === undefined ? new Map<string, string>() : sealedOf(name, earlier)
    const faults: KeptFault[] = []
    const plain = withSecretFields(name.kind, given, (text, at) => {
      const hookUrl = originOf(at.hookUrl ?? '', variables)
      const match = kept.exec(text)
      if (match === null) {
        const filled = fillIn(text, variables)
        return filled.ok ? escaped(filled.value) : text
      }
      const found = known.get(match[1] ?? '')
      const place = { ...at, hookUrl }
      const refuse = (problem: string): string => {
        faults.push({ path: formatPath(at.path), problem, advice: 'write the value itself' })
        return text
      }
      if (found === undefined) return refuse('keeps a value that is not set')
      for (const field of fieldsOf(at.field)) {
        try {
          return escaped(this.#open(found, name, { ...place, field }))
        } catch (error) {
          if (!(error instanceof SealError)) throw error
        }
      }
      return refuse('keeps a value that was set for another field or host')
    })
    return { plain: withHookIds(plain, given, variables), faults }
  }

  /** Seals a plain definition. What is the same as in the earlier one keeps its time, and its bytes. */
  stored(
    name: ObjectName,
    plain: Definition,
    { earlier, atMs }: { readonly earlier: Definition | undefined; readonly atMs: number },
  ): Definition {
    const before = earlier === undefined ? new Map<string, string>() : this.#reusable(name, earlier)
    return withSecretFields(name.kind, plain, (text, at) => {
      const filled = fillIn(text, {})
      if (!filled.ok) throw new Error('a text was stored that the rules of the catalog refuse')
      const hookUrl = originOf(at.hookUrl ?? '')
      const place = this.#place(name, { ...at, hookUrl })
      const same = before.get(JSON.stringify([at.field, place.origin, filled.value]))
      if (same !== undefined) return same
      const sealed = seal(filled.value, place, { keys: this.#keys, atMs })
      return at.field === 'url' ? `${hookUrl} ${sealed}` : sealed
    })
  }

  /**
   * Returns the sealed texts of a definition by their field, host and content. Leaves out those that are
   * sealed with a former key, so that they are sealed anew, and those that can't be opened.
   */
  #reusable(name: ObjectName, stored: Definition): ReadonlyMap<string, string> {
    const found = new Map<string, string>()
    withSecretFields(name.kind, stored, (text, at) => {
      if (sealedWith(sealedPart(text, at.field)) !== this.#keys.current.id) return text
      const { origin } = this.#place(name, at)
      try {
        found.set(JSON.stringify([at.field, origin, this.#open(text, name, at)]), text)
      } catch (error) {
        if (!(error instanceof SealError)) throw error
      }
      return text
    })
    return found
  }

  #open(text: string, name: ObjectName, at: Sent): string {
    return unseal(sealedPart(text, at.field), this.#place(name, at), this.#keys)
  }

  /**
   * `hookUrl` may be the stored form of a URL, which begins with the origin. A text for a token endpoint is
   * bound to the host of the hook too, because the tokens that it brings are sent there.
   */
  #place(name: ObjectName, { field, hookUrl = '', tokenUrl }: Sent): SealedPlace {
    const hookOrigin = hookUrl.split(' ')[0] ?? ''
    const origin = tokenUrl === undefined ? hookOrigin : `${hookOrigin} ${originOf(tokenUrl)}`
    return { installation: this.#installation, object: keyOf(name), field, origin }
  }
}

type Sent = Pick<SecretField, 'field' | 'hookUrl' | 'tokenUrl'>

/** Returns the fields from which a field may keep a value. The next secret becomes the secret. */
function fieldsOf(field: string): readonly string[] {
  return field === 'sharedSecret' ? [field, 'nextSharedSecret'] : [field]
}

/** Returns the sealed part of a stored text. */
function sealedPart(text: string, field: string): string {
  return field === 'url' ? (text.split(' ')[1] ?? '') : text
}

/** Returns the origin of a URL that may have what is kept in place of its path. Empty if it isn't a URL. */
function originOf(url: string, variables: Variables = {}): string {
  if (url === '') return ''
  const read = readHookUrl(url.replace(kept, ''), variables)
  return read.ok ? read.origin : ''
}

/**
 * Gives ids to hooks whose URLs had variables: the ids that they have in a file. Otherwise the id would be
 * made from the URL, and change with a secret in it.
 */
function withHookIds(plain: Definition, given: Definition, variables: Variables): Definition {
  if (!Array.isArray(plain['hooks'])) return plain
  const hooks = listOf(plain['hooks']).map((hook, index) => {
    const { url, id } = recordOf(listOf(given['hooks'])[index])
    if (id !== undefined || typeof url !== 'string' || !namesVariable(url)) return hook
    const read = readHookUrl(url, variables)
    return read.ok ? { ...recordOf(hook), id: read.id } : hook
  })
  return { ...plain, hooks }
}

/** A text as a catalog file has it: `${` is written as `$${`. */
function escaped(text: string): string {
  return text.replaceAll('${', () => '$${')
}

function markOf(sealed: string): string {
  return `\${kept:${new Date(sealedAtMs(sealed) ?? 0).toISOString()}:${fingerprintOf(sealed)}}`
}

/** Names a sealed text. It tells nothing about what is sealed. */
function fingerprintOf(sealed: string): string {
  return hash('sha256', sealed).slice(0, 16)
}

/** Returns the sealed texts of a definition by their fingerprints. */
function sealedOf({ kind }: ObjectName, stored: Definition): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  withSecretFields(kind, stored, (text, { field }) => {
    found.set(fingerprintOf(sealedPart(text, field)), text)
    return text
  })
  return found
}
