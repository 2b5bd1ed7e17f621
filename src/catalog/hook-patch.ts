import { readHookUrl } from './hook-url.ts'
import { isRecord, listOf, recordOf } from './plain-data.ts'

// Changes of a part of a definition, and what they take away.

type Definition = Readonly<Record<string, unknown>>

/**
 * Applies a JSON merge patch (RFC 7396): a list replaces the one before as a whole. Other than in the RFC,
 * `null` in a hook of the patch says that the hook has no such field.
 */
export function mergedDefinition(present: Definition, patch: Definition): Definition {
  const merged = recordOf(mergedValue(present, patch))
  if (!Array.isArray(patch['hooks'])) return merged
  const hooks = listOf(patch['hooks']).map((hook) => (isRecord(hook) ? mergedValue({}, hook) : hook))
  return { ...merged, hooks }
}

function mergedValue(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = mergedValue(result[key], value)
  }
  return result
}

/** A hook of a patch that doesn't say what becomes of fields of the hook whose place it takes. */
export type SilentHook = {
  /** Its position in the patch. */
  readonly index: number
  /** The id of the hook whose place it takes. */
  readonly former: string
  /** Such as `login` and `headers.Authorization`. */
  readonly fields: readonly string[]
}

/**
 * Returns the hooks of a patch that would take away headers or a login without a word. Whoever sends only the
 * id and a new URL may expect that the rest stays, and nobody can look a secret up to write it again.
 */
export function silentHooks(present: Definition, patch: Definition): readonly SilentHook[] {
  const [before, after] = [hooksOf(present), hooksOf(patch)]
  return formersOf(before, after).flatMap((former, index) => {
    const fields = lostFields(before[former], after[index])
    return fields.length === 0 ? [] : [{ index, former: String(hookIdOf(before[former] ?? {})), fields }]
  })
}

/**
 * Returns the fields that a definition has and the next one hasn't, such as `rateLimit.burst`, `hooks[1]` and
 * `hooks[0].login`. The positions are those before.
 */
export function removedFields(before: Definition, after: Definition): readonly string[] {
  const fields = Object.keys(before).flatMap((field) => {
    if (!Object.hasOwn(after, field)) return [field]
    return field === 'hooks' ? [] : missingIn(before[field], after[field]).map((name) => `${field}.${name}`)
  })
  const [old, now] = [hooksOf(before), hooksOf(after)]
  const formers = formersOf(old, now)
  const ofHooks = old.flatMap((hook, at) => {
    const index = formers.indexOf(at)
    return index < 0 ? [`hooks[${at}]`] : lostFields(hook, now[index]).map((field) => `hooks[${at}].${field}`)
  })
  return Object.hasOwn(after, 'hooks') ? [...fields, ...ofHooks] : fields
}

/** Returns the id of a hook. One without an id has that which is made from its URL. */
export function hookIdOf({ id, url }: Definition): unknown {
  if (id !== undefined || typeof url !== 'string') return id
  const read = readHookUrl(url, {})
  return read.ok ? read.id : undefined
}

function hooksOf(definition: Definition): readonly Definition[] {
  return listOf(definition['hooks']).map(recordOf)
}

/**
 * Returns for each hook the position of the one whose place it takes, or -1: the one with the same id or URL,
 * or else the first one that is left.
 */
function formersOf(before: readonly Definition[], after: readonly Definition[]): readonly number[] {
  const left = new Set(before.keys())
  const same = after.map((hook) => {
    const at = before.findIndex((one, index) => left.has(index) && isSame(one, hook))
    left.delete(at)
    return at
  })
  return same.map((at) => {
    const [next = -1] = at < 0 ? left : []
    left.delete(next)
    return at < 0 ? next : at
  })
}

function isSame(former: Definition, { id, url }: Definition): boolean {
  return typeof id === 'string' ? id === hookIdOf(former) : url === former['url']
}

/** The fields of a hook that have parts of their own. A login is given as a whole. */
const withParts: ReadonlySet<string> = new Set(['headers', 'tls'])

/** Returns the fields of a hook that the next one has neither as a value nor as `null`. */
function lostFields(former: Definition = {}, hook: Definition = {}): readonly string[] {
  return Object.keys(former).flatMap((field) => {
    if (field === 'url') return []
    if (!Object.hasOwn(hook, field)) return [field]
    return withParts.has(field) ? missingIn(former[field], hook[field]).map((name) => `${field}.${name}`) : []
  })
}

/** Returns the keys of a record that another one lacks. The names of headers are the same in any case. */
function missingIn(was: unknown, is: unknown): readonly string[] {
  if (!isRecord(was) || !isRecord(is)) return []
  const names = new Set(Object.keys(is).map((name) => name.toLowerCase()))
  return Object.keys(was).filter((name) => !names.has(name.toLowerCase()))
}
