import { type AdminAnswer, done, missing, problem } from '../admin/problem.ts'
import { holdsDestination, holdsSource, isScoped, type TokenScope } from '../admin/scope.ts'
import type { AdminCalls, AdminRequest, Conditions } from '../admin/server.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { faultOf } from '../catalog/fault.ts'
import { mergedDefinition, removedFields, type SilentHook, silentHooks } from '../catalog/hook-patch.ts'
import { isRecord, recordOf } from '../catalog/plain-data.ts'
import type { Definition } from '../catalog-log/definitions.ts'
import type { ChangeAnswer } from '../catalog-log/desk.ts'
import type { ObjectDifference } from '../catalog-log/difference.ts'
import type { Edit } from '../catalog-log/judge.ts'
import { type EntryKind, keyOf, type ObjectName } from '../catalog-log/names.ts'
import { SealError } from '../catalog-log/seal.ts'
import type { Config } from '../config/schema.ts'
import { OtherLogError } from '../kafka/wire/errors.ts'
import { StartError } from './start/start-error.ts'
import { onlyUrls } from './console/only-urls.ts'
import { asked, type Log } from './replay-calls.ts'
import { holdsObject, isTaken, outsideOf } from './operations/catalog-scope.ts'
import { type CatalogDeed, inFile } from './catalog/in-file.ts'
import { faultText, type OpenedDesk, refusalText } from './operations/catalog-desk.ts'
import { shownAnyway } from './operations/catalog-history.ts'

type Calls = Pick<
  AdminCalls,
  'list_sources' | `${'show' | 'put' | 'patch' | 'remove'}_${'destination' | 'source'}`
>

/** Creates the handlers of the calls that read and change the catalog. */
export function catalogCalls(atDesk: AtDesk, catalog: () => Catalog): Calls {
  const calls = new CatalogCalls(atDesk)
  return {
    list_sources: ({ token: { scope } }) => Promise.resolve(done(sourceList(catalog(), scope))),
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

function sourceList(catalog: Catalog, scope: TokenScope): object {
  const sources = [...catalog.sources.values()]
    .filter((source) => holdsSource(scope, source))
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ id, name, kind, enabled }) => {
      const connected = catalog.destinationsBySource.get(id) ?? []
      const destinations = connected.filter((one) => holdsDestination(scope, one)).length
      return { id, name, kind, enabled, destinations }
    })
  return { sources, catalogVersion: catalog.version }
}

/**
 * Answers a request with what it gets at the desk, or with the problem that keeps it from it. `deed`: what is
 * asked for. If the catalog is in a file, the problem says how to do the same there.
 */
export type AtDesk<D = OpenedDesk> = (
  request: Pick<AdminRequest, 'isInForce'>,
  work: (desk: D) => Promise<AdminAnswer>,
  deed?: CatalogDeed,
) => Promise<AdminAnswer>

/** `desk`: `undefined` if the catalog is in a file. `unansweredText`: said if Kafka doesn't answer. */
export function deskCalls<D extends Pick<OpenedDesk, 'change'>>(
  desk: D | undefined,
  config: Config,
  log: Log,
  unansweredText = unanswered,
): AtDesk<D> {
  return ({ isInForce }, work, deed) => {
    if (desk === undefined) return Promise.resolve(problem('conflict', inFile(config, deed)))
    const told = work(whileInForce(desk, isInForce)).catch((error: unknown) => {
      // Trying again doesn't help, as it does if Kafka doesn't answer.
      if (error instanceof OtherLogError || error instanceof SealError || error instanceof StartError)
        return problem('conflict', error.message)
      throw error
    })
    // A change of many objects takes long, and has limits of its own.
    return asked(log, told, (answer) => answer, { detail: unansweredText, withinMs: Infinity })
  }
}

/** A change may wait for others. If its token has ended meanwhile, it isn't made. */
function whileInForce<T extends Pick<OpenedDesk, 'change'>>(desk: T, isInForce: () => boolean): T {
  return { ...desk, change: (order) => desk.change({ ...order, isAllowed: isInForce }) }
}

class CatalogCalls {
  readonly #atDesk: AtDesk

  constructor(atDesk: AtDesk) {
    this.#atDesk = atDesk
  }

  show(kind: EntryKind, request: AdminRequest): Promise<AdminAnswer> {
    const name = nameIn(kind, request)
    const work = async (desk: OpenedDesk): Promise<AdminAnswer> => {
      const object = (await desk.look()).objects.get(keyOf(name))
      if (object === undefined || !holdsObject(request.token.scope, object)) return missing(kind, name.id)
      const shown = desk.shown(object, { showsUrls: request.token.right === 'admin' })
      return done({ version: object.version, [kind]: shown }, 200, { etag: `"${object.version}"` })
    }
    return this.#atDesk(request, work, { deed: 'look', ...name })
  }

  put(kind: EntryKind, request: AdminRequest): Promise<AdminAnswer> {
    const name = nameIn(kind, request)
    const base = baseOf(request.conditions, { mayBeNew: true })
    const given = { id: name.id, ...(isRecord(request.body) ? request.body : {}) }
    const work = (desk: OpenedDesk): Promise<AdminAnswer> => {
      if (base === undefined) return Promise.resolve(problem('no_condition', needsCondition))
      return change(desk, request, { name, op: 'put', given, base })
    }
    return this.#atDesk(request, work, { deed: base === 'none' ? 'make' : 'replace', ...name })
  }

  patch(kind: EntryKind, request: AdminRequest): Promise<AdminAnswer> {
    const name = nameIn(kind, request)
    const base = baseOf(request.conditions, { mayBeNew: false })
    const work = async (desk: OpenedDesk): Promise<AdminAnswer> => {
      if (base === undefined) return problem('no_condition', needsMatch)
      const object = (await desk.look()).objects.get(keyOf(name))
      if (object === undefined || !holdsObject(request.token.scope, object)) return missing(kind, name.id)
      const shown = desk.shown(object, { showsUrls: true })
      const patched = request.token.grants === undefined ? request.body : onlyUrls(shown, request.body)
      if (patched === undefined) return problem('not_allowed', changesUrls)
      const patch = recordOf(patched)
      const silent = silentHooks(shown, patch)
      if (silent.length > 0) return problem('faulty', silentText(name, silent))
      return change(desk, request, { name, op: 'put', given: mergedDefinition(shown, patch), base })
    }
    return this.#atDesk(request, work, patchDeed(name, recordOf(request.body)))
  }

  remove(kind: EntryKind, request: AdminRequest): Promise<AdminAnswer> {
    const name = nameIn(kind, request)
    const base = baseOf(request.conditions, { mayBeNew: false })
    const work = (desk: OpenedDesk): Promise<AdminAnswer> => {
      if (base === undefined) return Promise.resolve(problem('no_condition', needsMatch))
      return change(desk, request, { name, op: 'remove', base })
    }
    return this.#atDesk(request, work, { deed: 'remove', ...name })
  }
}

async function change(desk: OpenedDesk, { token, query }: AdminRequest, edit: Edit): Promise<AdminAnswer> {
  const isDryRun = query['dryRun'] === 'true'
  const { name, scope } = token
  if (isScoped(scope)) {
    const log = await desk.look()
    const outside = outsideOf(scope, log, edit)
    if (outside !== undefined) return outside
    // The edit has to name the version that was looked at. So a change that comes in between refuses it.
    const present = log.objects.get(keyOf(edit.name))
    if (edit.base !== (present?.version ?? 'none'))
      return refusedChange({ ok: false, kind: 'outdated', name: edit.name, present })
  }
  const answer = await desk.change({ edits: [edit], by: name, isDryRun })
  if (!answer.ok) return isScoped(scope) ? refusedWithin(scope, answer, edit) : refusedChange(answer)
  const [changed] = answer.changed
  const { what = 'unchanged', version } = changed ?? {}
  const removed = answer.differences.flatMap((difference) => removedBy(desk, difference))
  const body = { what, version: version ?? null, revision: answer.revision, removed }
  return done(body, 200, version === undefined ? {} : { etag: `"${version}"` })
}

/** Returns the fields that an object has lost. One that is gone as a whole has lost none. */
function removedBy(
  { definitions }: OpenedDesk,
  { name, before, after }: ObjectDifference,
): readonly string[] {
  if (before === undefined || after === undefined) return []
  const shown = (stored: Definition) => shownAnyway(definitions, name, stored, { showsUrls: true })
  return removedFields(shown(before), shown(after))
}

function silentText(name: ObjectName, silent: readonly SilentHook[]): string {
  const faults = silent.map(({ index, former, fields }) =>
    faultOf(
      keyOf(name),
      `takes the place of the hook ${former}, and does not say what becomes of its ${fields.join(', ')}`,
      'send each of them as GET shows it to keep it, or null to remove it',
      `hooks[${index}]`,
    ),
  )
  return faultText(faults)
}

const changesUrls =
  'The link by which you signed in changes only URLs: send {"hooks":[{"id":"main","url":"https://…"}]}, with ids that the destination has.'
const unanswered =
  'Kafka does not answer, or not in time: a change may have been made, so look at it before you repeat it.'
const needsMatch = 'Send If-Match with the ETag of the object that you have seen.'
const needsCondition = `${needsMatch.slice(0, -1)}, or If-None-Match: * to make a new one.`

/** Other fields than the state may be secret, so they aren't written out. */
function patchDeed(name: ObjectName, patch: Readonly<Record<string, unknown>>): CatalogDeed {
  const isOfState = Object.keys(patch).length === 1 && name.kind === 'destination'
  const deed = patch['state'] === 'paused' ? 'pause' : patch['state'] === 'on' ? 'resume' : undefined
  return isOfState && deed !== undefined ? { deed, id: name.id } : { deed: 'replace', ...name }
}

function nameIn(kind: EntryKind, { params }: AdminRequest): ObjectName {
  return { kind, id: params[kind] ?? '' }
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

/** Returns the answer to a refused change. It tells nothing of what the scope doesn't hold. */
function refusedWithin(
  scope: TokenScope,
  answer: Extract<ChangeAnswer, { ok: false }>,
  { name: { kind, id }, base }: Edit,
): AdminAnswer {
  if (answer.kind === 'damaged' || answer.kind === 'halted')
    return problem('conflict', 'The catalog can not be changed now.')
  const isLost =
    answer.kind === 'missing' ||
    (answer.kind === 'outdated' && (answer.present === undefined || !holdsObject(scope, answer.present)))
  if (!isLost) return refusedChange(answer)
  return base === 'none' ? problem('outdated', isTaken(id)) : missing(kind, id)
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
    case 'full':
      return problem('unavailable', detail)
    case 'ended':
      return problem('no_token', detail)
    case 'damaged':
    case 'halted':
    case 'asked':
      return problem('conflict', detail)
  }
}
