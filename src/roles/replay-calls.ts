import type { Logger } from 'pino'
import { AtOnce } from '../admin/at-once.ts'
import { limitOf } from '../admin/limited.ts'
import { type AdminAnswer, done, noToken, problem } from '../admin/problem.ts'
import { holdsDestination, isScoped, scopeData, sees, type TokenScope } from '../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import { shareOf } from '../admin/tokens.ts'
import { within } from '../async/within.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Once } from '../catalog-log/desk.ts'
import { rememberedMs } from '../catalog-log/log.ts'
import { SilentKafkaError } from '../kafka/wire/errors.ts'
import { parseTimestamp } from '../message/timestamp.ts'
import type { AuditEntry } from '../replay/job.ts'
import { type Job, stateOf } from '../replay/jobs.ts'
import { faultsOf, replaySources, type Selection, takesEverything } from '../replay/selection.ts'
import { buildInfo } from '../telemetry/build-info.ts'
import type { LiveReplay } from './console/open-live.ts'
import { onceOf, otherRequest } from './once.ts'
import { auditData, groupData, jobData, selectionData, tallyData } from './operations/replay-text.ts'
import {
  type DeskAnswer,
  type DeskRefusal,
  defaultPerSecond,
  notConnected,
  type Preview,
  type ReplayDesk,
  unknownDestination,
  unknownReplay,
} from './operations/replay-desk.ts'

/**
 * How long counting the records of a selection may take, in milliseconds. The request that asks for the count
 * waits meanwhile.
 */
const countWithinMs = 20_000
/**
 * How many counts of selected records may run at the same time. Each count reads from Kafka as fast as it
 * can.
 */
const countsAtOnce = { most: 4, mostOfToken: 2, what: 'counts, which read much of Kafka,' }

export type Log = Pick<Logger, 'info' | 'warn'>

/**
 * Creates the handlers of the admin API's calls about replays. When Kafka doesn't answer, a handler answers
 * with a problem instead of rejecting.
 */
export function replayCalls(
  desk: ReplayDesk,
  catalog: () => Catalog,
  log: Log,
): Pick<AdminCalls, Lookups | Deeds> {
  return { ...lookups(desk, catalog, log), ...deeds(desk, catalog, log) }
}

type Lookups = 'health' | 'list_replays' | 'show_replay' | 'list_audit'
type Deeds = 'preview_replay' | 'create_replay' | 'stop_replay' | 'resume_replay'

function lookups(desk: ReplayDesk, catalog: () => Catalog, log: Log): Pick<AdminCalls, Lookups> {
  return {
    health: async ({ token: { name, right, seesContent, scope, endsAtMs } }) => {
      const { version, commit } = buildInfo()
      const expiresAt = endsAtMs === undefined ? null : new Date(endsAtMs).toISOString()
      const token = { name, right, content: seesContent, scope: scopeData(scope), expiresAt }
      return done({ status: 'ok', version, commit, token })
    },
    list_replays: ({ query, token: { scope } }) =>
      asked(log, desk.list(), (jobs) => {
        const { state, cursor } = query
        const meant = jobs.filter(
          (job) =>
            (state === undefined || stateOf(job) === state) &&
            isAfter(job, cursor) &&
            seesReplay(scope, catalog(), job),
        )
        const page = meant.slice(0, limitOf(query))
        const last = page.length < meant.length ? page.at(-1) : undefined
        const replays = page.map((job) => shownTo(scope, job))
        return done({ replays, cursor: last === undefined ? null : placeOf(last) })
      }),
    show_replay: ({ params, token: { scope } }) =>
      asked(log, desk.show(params['replay'] ?? ''), (found) => {
        const job = seenOf(found, { scope, catalog: catalog() })
        return job.ok ? done(shownTo(scope, job.value)) : refused(job)
      }),
    list_audit: ({ query, token: { scope } }) => {
      const isMeant = isScoped(scope)
        ? ({ destination }: AuditEntry, replay: Job | undefined): boolean =>
            sees(scope, catalog(), destination ?? replay?.order.selection.destinationId)
        : undefined
      return listAudit(desk, log, query, isMeant)
    },
  }
}

/** Returns true if a replay sends only to a destination that a scope holds. */
function seesReplay(scope: TokenScope, catalog: Catalog, { order }: Job): boolean {
  return sees(scope, catalog, order.selection.destinationId)
}

/** Returns the answer about a replay to a token: what it may not see doesn't exist. */
function seenOf(
  found: DeskAnswer<Job>,
  { scope, catalog }: { readonly scope: TokenScope; readonly catalog: Catalog },
): DeskAnswer<Job> {
  return found.ok && !seesReplay(scope, catalog, found.value) ? unknownReplay(found.value.order.id) : found
}

/** Returns a replay as an answer has it. How long the topics are is nothing for tokens with a scope. */
function shownTo(scope: TokenScope, job: Job): object {
  const data = jobData(job)
  if (!isScoped(scope)) return data
  const { offsets, of } = data.read
  return { ...data, read: { offsets: of === 0 ? 0 : Math.floor((100 * offsets) / of), of: 100 }, owner: null }
}

/** Returns a function that lists the replays for live views. */
export function liveReplays(
  desk: Pick<ReplayDesk, 'list'>,
  catalog: () => Catalog,
): () => Promise<readonly LiveReplay[]> {
  return async () =>
    (await desk.list()).map((job) => ({
      id: job.order.id,
      destination: job.order.selection.destinationId,
      shownTo: (scope) => (seesReplay(scope, catalog(), job) ? shownTo(scope, job) : undefined),
    }))
}

/** Returns the place of a replay in the list of replays, newest first, as a cursor says it. */
function placeOf({ order: { atMs, id } }: Job): string {
  return `${atMs}.${id}`
}

function isAfter({ order }: Job, cursor: string | undefined): boolean {
  if (cursor === undefined) return true
  const dot = cursor.indexOf('.')
  const [atMs, id] = [Number(cursor.slice(0, dot)), cursor.slice(dot + 1)]
  return order.atMs < atMs || (order.atMs === atMs && order.id < id)
}

async function listAudit(
  desk: ReplayDesk,
  log: Log,
  query: AdminRequest['query'],
  isMeant: Parameters<ReplayDesk['audit']>[1],
): Promise<AdminAnswer> {
  const range = rangeOf(query['from'], query['to'])
  if (range === undefined) return problem('bad_request', noTimes)
  const { replay: job, cursor } = query
  const before = cursor === undefined ? undefined : Number(cursor)
  const asking = desk.audit({ ...range, job, before, limit: limitOf(query) }, isMeant)
  return asked(log, asking, ({ entries, next, completeSinceMs }) =>
    done({
      entries: entries.map(auditData),
      cursor: next === undefined ? null : String(next),
      completeSince: completeSinceMs === undefined ? null : new Date(completeSinceMs).toISOString(),
    }),
  )
}

function deeds(desk: ReplayDesk, catalog: () => Catalog, log: Log): Pick<AdminCalls, Deeds> {
  const counts = new Counts(desk, catalog, log)
  const turns = new TurnsOfKeys()

  async function createReplay(request: AdminRequest, once: Once | undefined): Promise<AdminAnswer> {
    const { body, token } = request
    const { selection, perSecond = defaultPerSecond, all = false } = orderOf(body)
    if (!all && isEverything(selectionOf(selection))) return problem('bad_request', takesAll)
    return counts.counted(request, async (preview) => {
      if (preview.isComplete && preview.tally.records === 0) return problem('conflict', nothingMatches)
      log.info({ by: token.name, perSecond, ...selectionData(preview.selection) }, 'a replay was requested')
      return asked(
        log,
        desk.create(preview, { perSecond, by: token.name, once }),
        (job) => createdAnswer(token.scope, job),
        { detail: mayBeCreated },
      )
    })
  }

  function wish(state: 'run' | 'stop') {
    return ({ params, token: { name, scope } }: AdminRequest): Promise<AdminAnswer> => {
      const { replay = '' } = params
      async function wished(): Promise<DeskAnswer<Job>> {
        const job = seenOf(await desk.show(replay), { scope, catalog: catalog() })
        if (!job.ok) return job
        log.info({ replay, by: name, state }, 'a replay was asked to stop or to resume')
        return desk.wish(replay, state, name)
      }
      return asked(log, wished(), (job) => (job.ok ? done(shownTo(scope, job.value)) : refused(job)))
    }
  }

  return {
    preview_replay: (request) => counts.counted(request, async (preview) => done(previewAnswer(preview))),
    create_replay: (request) => {
      const once = onceOf('create_replay', request)
      const created = (): Promise<AdminAnswer> => createReplay(request, once)
      return once === undefined
        ? created()
        : turns.run(once.changeId, () => createdOnce({ desk, catalog, log, request, once }, created))
    },
    stop_replay: wish('stop'),
    resume_replay: wish('run'),
  }
}

function createdAnswer(scope: TokenScope, job: Job): AdminAnswer {
  return done(shownTo(scope, job), 201, { location: `/v1/replays/${job.order.id}` })
}

/**
 * Answers with the replay that the same request has created within the last day, as it is now, or creates
 * one. Two processes that get the same request at the same moment may both create one. The second of them
 * sends nothing, because it leaves out what the first one sends (`src/replay/other-replays.ts`).
 */
function createdOnce(
  {
    desk,
    catalog,
    log,
    request: { token },
    once: { changeId, request },
  }: {
    readonly desk: ReplayDesk
    readonly catalog: () => Catalog
    readonly log: Log
    readonly request: AdminRequest
    readonly once: Once
  },
  create: () => Promise<AdminAnswer>,
): Promise<AdminAnswer> {
  async function look(): Promise<AdminAnswer> {
    const sinceMs = Date.now() - rememberedMs
    const before = (await desk.list()).find(
      ({ order }) => order.once?.changeId === changeId && order.atMs > sinceMs,
    )
    if (before === undefined) return create()
    if (before.order.once?.request !== request) return otherRequest
    // Its destination may have left the scope of the token since.
    const seen = seenOf({ ok: true, value: before }, { scope: token.scope, catalog: catalog() })
    return seen.ok ? createdAnswer(token.scope, seen.value) : refused(seen)
  }
  return asked(log, look(), (answer) => answer)
}

/** Carries out requests with the same key one after the other. */
class TurnsOfKeys {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work)
    this.#last.set(key, turn)
    try {
      return await turn
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key)
    }
  }
}

/**
 * Counts the records that the body of a request selects. Refuses a count while too many others are under way.
 */
class Counts {
  readonly #desk: ReplayDesk
  readonly #catalog: () => Catalog
  readonly #log: Log
  readonly #atOnce = new AtOnce(countsAtOnce)

  constructor(desk: ReplayDesk, catalog: () => Catalog, log: Log) {
    this.#desk = desk
    this.#catalog = catalog
    this.#log = log
  }

  async counted(
    { body, token, isInForce }: AdminRequest,
    answer: (preview: Preview) => Promise<AdminAnswer>,
  ): Promise<AdminAnswer> {
    const order = orderOf(body)
    const { again: isAgain = false } = order
    const selection = selectionOf(order.selection)
    if (typeof selection === 'string') return problem('bad_request', selection)
    const outside = this.#outside(selection, token.scope)
    if (outside !== undefined) return outside
    let preview: DeskAnswer<Preview> | undefined
    const failed = await this.#atOnce.run(shareOf(token), () => {
      const counting = this.#desk.preview(selection, { isAgain, untilMs: performance.now() + countWithinMs })
      return asked(this.#log, counting, (given) => {
        preview = given
        return done({})
      })
    })
    if (preview === undefined) return failed
    if (!preview.ok) return refused(preview)
    // The count may have taken long.
    if (!isInForce()) return noToken
    return this.#outside(selection, token.scope) ?? answer(preview.value)
  }

  /** Returns why a token may not select this. What it may not see is answered like what doesn't exist. */
  #outside({ from, destinationId, sourceId }: Selection, scope: TokenScope): AdminAnswer | undefined {
    if (!isScoped(scope)) return undefined
    if (destinationId === undefined) return problem('bad_request', needsDestination)
    const destination = this.#catalog().destinations.get(destinationId)
    if (destination === undefined || !holdsDestination(scope, destination))
      return problem('bad_request', unknownDestination(destinationId))
    const isOther = from === 'events' && sourceId !== undefined && !destination.sources.includes(sourceId)
    return isOther ? problem('bad_request', notConnected(destinationId, sourceId)) : undefined
  }
}

const needsDestination =
  'selection.destination: name one, because the token has a scope, and what belongs to no destination is not in it.'

const nothingMatches =
  'Nothing matches: ask for a preview, which says what is left out, or for more. What a replay has sent already is sent with "again": true.'
const takesAll =
  'This takes everything that Kafka still has: limit it by a field of the selection, or add "all": true to the body.'

/** Returns true if a selection without faults takes everything. */
function isEverything(selection: Selection | string): boolean {
  if (typeof selection === 'string' || faultsOf(selection).length > 0) return false
  return takesEverything(selection)
}

function previewAnswer({ selection, tally, groups, isAgain, isComplete }: Preview) {
  return {
    selection: selectionData(selection),
    counted: tallyData(tally),
    groups: groups.map(groupData),
    again: isAgain,
    isComplete,
  }
}

const unavailable = 'Kafka does not answer, or not in time: try again; the log of sluice admin says why.'

export const notTold =
  'Kafka does not answer, so this can not be written into the audit trail, and is not done: try again.'

const mayBeCreated =
  'Kafka did not answer in time, and may have stored the replay: list the replays before you ask again.'

/**
 * The longest time for which a request waits for Kafka, in milliseconds. A reading that a quota of the
 * brokers slows down takes longer, and may never end. Its client, or a proxy, would give up without an
 * answer.
 */
const answeredWithinMs = 60_000

/**
 * Waits for the promise `work`, which carries out a request. Returns the answer that `answer` makes of the
 * result. If `work` rejects because Kafka doesn't answer, or isn't over in time, returns a problem. If it
 * rejects with an error of JavaScript itself, such as a TypeError, throws this error, because it is a bug in
 * Sluice.
 */
export async function asked<T>(
  log: Log,
  work: Promise<T>,
  answer: (value: T) => AdminAnswer,
  { detail = unavailable, withinMs = answeredWithinMs }: { detail?: string; withinMs?: number } = {},
): Promise<AdminAnswer> {
  try {
    if (await within(withinMs, work)) return answer(await work)
    throw new SilentKafkaError(`this was not over within ${withinMs / 1_000} s`)
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
      throw error
    log.warn({ err: error }, 'a request could not be answered, since Kafka does not answer')
    return problem('unavailable', detail)
  }
}

export function refused({ kind, problem: detail }: DeskRefusal): AdminAnswer {
  switch (kind) {
    case 'notFound':
      return problem('not_found', detail)
    case 'conflict':
      return problem('conflict', detail)
    case 'invalid':
      return problem('bad_request', detail)
  }
}

const noTimes = 'from and to are times, ISO 8601, such as 2026-01-31T12:00:00Z.'

type TimeRange = { readonly fromMs: number | undefined; readonly toMs: number | undefined }

/** Returns the times that two texts stand for. `undefined` if one of them is no time. */
function rangeOf(from: string | undefined, to: string | undefined): TimeRange | undefined {
  const fromMs = from === undefined ? undefined : parseTimestamp(from)
  const toMs = to === undefined ? undefined : parseTimestamp(to)
  const isFaulty = (from !== undefined && fromMs === undefined) || (to !== undefined && toMs === undefined)
  return isFaulty ? undefined : { fromMs, toMs }
}

type Fields = Readonly<Record<string, unknown>>

/** Returns the fields of a body that has passed schema validation. */
function orderOf(body: unknown): { selection?: unknown; perSecond?: number; again?: boolean; all?: boolean } {
  return typeof body === 'object' && body !== null ? body : {}
}

/**
 * Returns the selection of a body that has passed schema validation. If one of the selection's times is
 * invalid, returns a text that says so.
 */
function selectionOf(body: unknown): Selection | string {
  const given: Fields = typeof body === 'object' && body !== null ? { ...body } : {}
  const text = (name: string): string | undefined => {
    const value = given[name]
    return typeof value === 'string' ? value : undefined
  }
  const range = rangeOf(text('from'), text('to'))
  if (range === undefined) return noTimes
  return {
    from: replaySources.find((known) => known === given['of']) ?? 'dead-letters',
    destinationId: text('destination'),
    sourceId: text('source'),
    reason: text('reason'),
    messageId: text('messageId'),
    ...range,
  }
}
