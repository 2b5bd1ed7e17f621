import { type AdminAnswer, done, problem } from '../admin/problem.ts'
import type { AdminCalls, AdminRequest, Conditions } from '../admin/server.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { isRecord } from '../catalog/plain-data.ts'
import type { ChangeAnswer } from '../catalog-log/desk.ts'
import type { Edit } from '../catalog-log/judge.ts'
import { keyOf, type ObjectKind, type ObjectName } from '../catalog-log/names.ts'
import { SealError } from '../catalog-log/seal.ts'
import type { Config } from '../config/schema.ts'
import { OtherLogError } from '../kafka/wire/errors.ts'
import { StartError } from './start/start-error.ts'
import { asked, type Log } from './replay-calls.ts'
import { inFile, type OpenedDesk, refusalText } from './operations/catalog-desk.ts'

type Calls = Pick<
  AdminCalls,
  'list_sources' | `${'show' | 'put' | 'patch' | 'remove'}_${'destination' | 'source'}`
>

/** Creates the handlers of the calls that read and change the catalog. */
export function catalogCalls(atDesk: AtDesk, catalog: () => Catalog): Calls {
  const calls = new CatalogCalls(atDesk)
  return {
    list_sources: () => Promise.resolve(done(sourceList(catalog()))),
    show_destination: (request) => calls.show('destination', request),
    put_destination: (request) => calls.put('destination', request),
    patch_destination: (request) => calls.patch('destination', request),
    remove_destination: (request) => calls.remove('destination', request),
    show_source: (request) => calls.show('source', request),
    put_source: (request) => calls.put('source', request),
    patch_source: (request) => calls.patch('source', request),
    remove_source: (request) => calls.remove('source', request),
  }
}

function sourceList(catalog: Catalog): object {
  const sources = [...catalog.sources.values()]
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ id, name, kind, enabled }) => {
      const destinations = catalog.destinationsBySource.get(id)?.length ?? 0
      return { id, name, kind, enabled, destinations }
    })
  return { sources, catalogVersion: catalog.version }
}

/** Answers a request with what it gets at the desk, or with the problem that keeps it from it. */
export type AtDesk = (work: (desk: OpenedDesk) => Promise<AdminAnswer>) => Promise<AdminAnswer>

/** `desk`: `undefined` if the catalog is in a file. */
export function deskCalls(desk: OpenedDesk | undefined, config: Config, log: Log): AtDesk {
  return (work) => {
    if (desk === undefined) return Promise.resolve(problem('conflict', inFile(config)))
    const told = work(desk).catch((error: unknown) => {
      // Trying again doesn't help, as it does if Kafka doesn't answer.
      if (error instanceof OtherLogError || error instanceof SealError || error instanceof StartError)
        return problem('conflict', error.message)
      throw error
    })
    return asked(log, told, (answer) => answer, unanswered)
  }
}

class CatalogCalls {
  readonly #atDesk: AtDesk

  constructor(atDesk: AtDesk) {
    this.#atDesk = atDesk
  }

  show(kind: ObjectKind, request: AdminRequest): Promise<AdminAnswer> {
    return this.#atDesk(async (desk) => {
      const name = nameIn(kind, request)
      const object = (await desk.look()).objects.get(keyOf(name))
      if (object === undefined) return missing(name)
      const shown = desk.shown(object, { showsUrls: request.token.right === 'admin' })
      return done({ version: object.version, [kind]: shown }, 200, { etag: `"${object.version}"` })
    })
  }

  put(kind: ObjectKind, request: AdminRequest): Promise<AdminAnswer> {
    const name = nameIn(kind, request)
    const base = baseOf(request.conditions, { mayBeNew: true })
    const given = { id: name.id, ...(isRecord(request.body) ? request.body : {}) }
    return this.#atDesk((desk) => {
      if (base === undefined) return Promise.resolve(problem('no_condition', needsCondition))
      return change(desk, request, { name, op: 'put', given, base })
    })
  }

  patch(kind: ObjectKind, request: AdminRequest): Promise<AdminAnswer> {
    const name = nameIn(kind, request)
    const base = baseOf(request.conditions, { mayBeNew: false })
    return this.#atDesk(async (desk) => {
      if (base === undefined) return problem('no_condition', needsMatch)
      const object = (await desk.look()).objects.get(keyOf(name))
      if (object === undefined) return missing(name)
      const given = merged(desk.shown(object, { showsUrls: true }), request.body)
      return change(desk, request, { name, op: 'put', given: isRecord(given) ? given : {}, base })
    })
  }

  remove(kind: ObjectKind, request: AdminRequest): Promise<AdminAnswer> {
    const name = nameIn(kind, request)
    const base = baseOf(request.conditions, { mayBeNew: false })
    return this.#atDesk((desk) => {
      if (base === undefined) return Promise.resolve(problem('no_condition', needsMatch))
      return change(desk, request, { name, op: 'remove', base })
    })
  }
}

async function change(desk: OpenedDesk, { token, query }: AdminRequest, edit: Edit): Promise<AdminAnswer> {
  const isDryRun = query['dryRun'] === 'true'
  const answer = await desk.change({ edits: [edit], by: token.name, isDryRun })
  if (!answer.ok) return refusedChange(answer)
  const [changed] = answer.changed
  const { what = 'unchanged', version } = changed ?? {}
  const body = { what, version: version ?? null, revision: answer.revision }
  return done(body, 200, version === undefined ? {} : { etag: `"${version}"` })
}

const unanswered =
  'Kafka does not answer, or not in time: a change may have been made, so look at it before you repeat it.'
const needsMatch = 'Send If-Match with the ETag of the object that you have seen.'
const needsCondition = `${needsMatch.slice(0, -1)}, or If-None-Match: * to make a new one.`

function nameIn(kind: ObjectKind, { params }: AdminRequest): ObjectName {
  return { kind, id: params[kind] ?? '' }
}

function missing({ kind, id }: ObjectName): AdminAnswer {
  return problem('not_found', `There is no ${kind} ${JSON.stringify(id)}: list those that there are.`)
}

/**
 * Returns the version that a change is based on. An entity tag that isn't one of ours is no version of the
 * object, so the change is outdated. Returns `undefined` if there is no condition.
 */
function baseOf(
  { ifMatch, ifNoneMatch }: Conditions,
  { mayBeNew }: { readonly mayBeNew: boolean },
): number | 'none' | undefined {
  if (ifMatch !== undefined) return Number(/^(?:W\/)?"(\d{1,15})"$/.exec(ifMatch)?.[1] ?? -1)
  return mayBeNew && ifNoneMatch === '*' ? 'none' : undefined
}

export function refusedChange(answer: Extract<ChangeAnswer, { ok: false }>): AdminAnswer {
  const detail = refusalText(answer)
  switch (answer.kind) {
    case 'outdated': {
      const refused = problem('outdated', detail)
      const { present } = answer
      return present === undefined
        ? refused
        : { ...refused, headers: { ...refused.headers, etag: `"${present.version}"` } }
    }
    case 'missing':
      return problem('not_found', detail)
    case 'faulty':
      return problem('faulty', detail)
    case 'busy':
      return problem('unavailable', detail)
    case 'damaged':
    case 'asked':
      return problem('conflict', detail)
  }
}

/** Applies a JSON merge patch (RFC 7396). */
function merged(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  }
  return result
}
