import { AtOnce } from '../admin/at-once.ts'
import { type AdminAnswer, done, problem } from '../admin/problem.ts'
import { holdsDestination, isScoped, sees, type TokenScope } from '../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import { shareOf } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/schema.ts'
import { parseWait } from '../retry/duration.ts'
import {
  BadCursorError,
  isQueryFault,
  type LogFilter,
  type LogQuery,
  QueryBusyError,
} from '../delivery-log/log-query.ts'
import { type Grouping, mostSteps, stepsOf } from '../delivery-log/groups.ts'
import { minutesOf } from '../delivery-log/minutes.ts'
import { messageContent } from './content/message-content.ts'
import { asked, type Log, notTold } from './replay-calls.ts'
import type { ReplayDesk } from './operations/replay-desk.ts'
import { hashedUser, hashedValue, openLogQuery } from './operations/open-log-query.ts'
import {
  deadData,
  filterOf,
  groupsData,
  isoOrNull,
  lifeData,
  minuteData,
  rangeData,
  recordData,
} from './operations/log-text.ts'

export type LogCallsOptions = {
  readonly config: Config
  readonly log: Log
  readonly desk: Pick<ReplayDesk, 'tell'>
  readonly catalog: () => Catalog
  /** Queries an index in this process. If this is absent, the calls ask the index that the settings name. */
  readonly query?: LogQuery | undefined
}

type LogCalls = Pick<
  AdminCalls,
  'show_log' | 'show_message' | 'show_content' | 'summarize_dead_letters' | 'search_log' | 'count_log'
>

/**
 * The number of questions that may run at the same time. It is limited because one reader answers all
 * questions, and a question without a destination may read a week of records.
 */
const questionsAtOnce = { most: 8, mostOfToken: 4, what: 'questions to the delivery log' }
const defaultLimit = 100
const defaultTop = 10

/**
 * Creates the handlers of the admin API's calls that query the delivery log. If there is no index, a handler
 * answers with a problem. A handler rejects only because of a bug in Sluice. The caller must call `close` at
 * the end.
 */
export function logCalls(options: LogCallsOptions): { readonly calls: LogCalls; close(): Promise<void> } {
  const { config, catalog } = options
  const desk = new LogDesk(options)
  const filtered = (
    { body, token }: AdminRequest,
    question: (query: typeof nothing, filter: LogFilter) => Promise<AdminAnswer>,
    sinceMs?: number,
  ): Promise<AdminAnswer> =>
    desk.asked(shareOf(token), (query) => {
      const given = filterOf(body, {
        nowMs: Date.now(),
        sinceMs,
        hashUser: (userId) => hashedUser(config, userId),
        hashValue: (value) => hashedValue(config, value),
      })
      if (typeof given === 'string') return badRequest(given)
      const filter = filterWithin(token.scope, catalog(), given)
      if (filter === undefined) return badRequest(tooManyDestinations)
      return tellSearch(options, filter, token.name).then((told) =>
        told.isProblem ? told : question(filter.destinations?.length === 0 ? nothing : query, filter),
      )
    })
  const calls: LogCalls = {
    show_log: ({ token }) =>
      desk.asked(shareOf(token), async (query) => {
        const { oldestMs, newestMs, rows, behindMs } = await query.status()
        return done({
          oldest: isoOrNull(oldestMs),
          newest: isoOrNull(newestMs),
          records: rows,
          behindMs: behindMs < 0 ? null : behindMs,
        })
      }),
    show_message: showMessage(options, desk),
    show_content: showContent(options, desk),
    search_log: (request) =>
      filtered(request, async (query, filter) => {
        const { records, cursor = null } = await query.search(filter, pageOf(request.body))
        return done({
          ...rangeData(filter),
          records: records.map((record) => recordData(record, request.token)),
          cursor,
        })
      }),
    count_log: (request) =>
      filtered(request, async (query, filter) => {
        const grouping = groupingOf(request.body)
        if (grouping !== undefined) return grouped(query, filter, grouping)
        const minutes = minutesOf(await query.counts(filter), await query.percentiles(filter))
        return done({ ...rangeData(filter), minutes: minutes.map(minuteData) })
      }),
    summarize_dead_letters: (request) => filtered(request, deadLetters(request.body), deadSinceMs),
  }
  return { calls, close: () => desk.close() }
}

/**
 * Writes a search by user or value into the audit trail, because values may say who somebody is. They are
 * named as in the log, by a hash.
 */
async function tellSearch(
  { log, desk }: Pick<LogCallsOptions, 'log' | 'desk'>,
  { user, value }: LogFilter,
  by: string,
): Promise<AdminAnswer> {
  const sought = [user && `user ${user}`, value && `value ${value}`].filter(Boolean)
  if (sought.length === 0) return done({})
  const told = desk.tell({ action: 'user_searched', by, detail: sought.join(', ') })
  return asked(log, told, () => done({}), { detail: notTold })
}

function showMessage({ catalog }: LogCallsOptions, desk: LogDesk): LogCalls['show_message'] {
  return ({ params: { message = '' }, token }) =>
    desk.asked(shareOf(token), async (query) => {
      const all = await query.find(message)
      const records = all.filter(({ destination }) => sees(token.scope, catalog(), destination))
      return records.length === 0
        ? problem('not_found', unknownMessage)
        : done(lifeData(message, records, token))
    })
}

/** Creates the handler that shows what a message contains. Who asks is written into the audit trail first. */
function showContent(
  { config, log, desk: replays, catalog }: LogCallsOptions,
  desk: LogDesk,
): LogCalls['show_content'] {
  return ({ params: { message = '' }, token }) =>
    desk.asked(shareOf(token), async (query) => {
      const all = await query.find(message)
      const records = all.filter(({ destination }) => sees(token.scope, catalog(), destination))
      const [first] = records
      if (first === undefined) return problem('not_found', unknownMessage)
      const deed = { action: 'content_read', by: token.name, detail: `message ${message}` } as const
      const destination = first.destination === '' ? undefined : first.destination
      const told = await asked(log, replays.tell({ ...deed, destination }), () => done({}), {
        detail: notTold,
      })
      if (told.isProblem) return told
      return done(await messageContent({ config, log, catalog: catalog() }, message, records))
    })
}

/** Returns how the counts are to be grouped. `undefined`: by the minute, as a list. */
function groupingOf(body: unknown): Grouping | undefined {
  const given: { step?: string; groupBy?: Grouping['by']; top?: number } = Object(body)
  const { step, groupBy: by, top = defaultTop } = given
  if (step === undefined && by === undefined) return undefined
  return { stepMs: parseWait(step ?? '1m') ?? 60_000, by: by ?? 'all', top }
}

async function grouped(
  query: Pick<LogQuery, 'groups'>,
  filter: LogFilter,
  grouping: Grouping,
): Promise<AdminAnswer> {
  const { steps } = stepsOf(filter, grouping.stepMs)
  if (steps > mostSteps)
    return badRequest(`Ask for at most ${mostSteps} steps: for longer steps, or less time.`)
  return done({ ...rangeData(filter), ...groupsData(await query.groups(filter, grouping), grouping.stepMs) })
}

/** How far back a summary of dead letters goes if nobody says how far, in milliseconds: a day. */
const deadSinceMs = 86_400_000
const defaultDeadTop = 100
/** The lengths of steps, in milliseconds. The shortest is used with which the time range has few enough. */
const deadStepsMs = [60_000, 300_000, 900_000, 1_800_000]

/** Creates the question for the dead letters of a time range by destination and reason. */
function deadLetters(body: unknown) {
  const { top = defaultDeadTop }: { top?: number } = Object(body)
  return async (query: Pick<LogQuery, 'groups'>, filter: LogFilter): Promise<AdminAnswer> => {
    const stepMs = deadStepsMs.find((ms) => stepsOf(filter, ms).steps <= mostSteps)
    if (stepMs === undefined) return badRequest('Ask for at most 31 days.')
    const groups = await query.groups({ ...filter, kinds: ['dead'] }, { stepMs, by: 'dead', top })
    return done({
      ...rangeData(filter),
      stepSeconds: stepMs / 1_000,
      ...deadData(groups, { stepMs, ...filter }),
    })
  }
}

/** The most destinations of a question. A longer list would not fit into a request to the index. */
const mostDestinations = 10_000
const tooManyDestinations = `The token may see more than ${mostDestinations} destinations: name one of them.`

/**
 * Adds to a filter that records are of destinations that a scope holds. A filter that none can meet has an
 * empty list. Returns `undefined` if the list would be too long.
 */
function filterWithin(scope: TokenScope, catalog: Catalog, filter: LogFilter): LogFilter | undefined {
  if (!isScoped(scope)) return filter
  const { destination } = filter
  if (destination !== undefined)
    return { ...filter, destinations: sees(scope, catalog, destination) ? [destination] : [] }
  const destinations = [...catalog.destinations.values()].flatMap((one) =>
    holdsDestination(scope, one) ? [one.id] : [],
  )
  return destinations.length > mostDestinations ? undefined : { ...filter, destinations }
}

/** A log without records. */
const nothing: Pick<LogQuery, 'search' | 'counts' | 'percentiles' | 'groups'> = {
  search: async () => ({ records: [] }),
  counts: async () => [],
  percentiles: async () => [],
  groups: async (filter, { stepMs }) => ({ ...stepsOf(filter, stepMs), groups: [], others: 0 }),
}

const badRequest = (detail: string): Promise<AdminAnswer> => Promise.resolve(problem('bad_request', detail))
const unknownMessage =
  'The log has nothing of this message: it is not written yet, too old, or a success that was sampled out.'
const badCursor = 'cursor: this log gave no such cursor. Pass one from an answer, or none.'

/** Asks the delivery log's index. Limits the questions at the same time to `questionsAtOnce`. */
class LogDesk {
  readonly #options: LogCallsOptions
  /** The index in files or in ClickHouse, open for queries. The first question opens it. */
  #ofFolder: Promise<LogQuery> | undefined
  readonly #atOnce = new AtOnce(questionsAtOnce)

  constructor(options: LogCallsOptions) {
    this.#options = options
  }

  /** `share`: names the tokens with which the token of the question shares its limit. */
  asked(share: string, question: (query: LogQuery) => Promise<AdminAnswer>): Promise<AdminAnswer> {
    return this.#atOnce.run(share, () => this.#answer(question))
  }

  async close(): Promise<void> {
    const query = await this.#ofFolder?.catch(() => undefined)
    await query?.close()
  }

  async #answer(question: (query: LogQuery) => Promise<AdminAnswer>): Promise<AdminAnswer> {
    try {
      return await question(await this.#open())
    } catch (error) {
      if (error instanceof BadCursorError) return problem('bad_request', badCursor)
      if (error instanceof QueryBusyError) return problem('busy', error.message)
      // The server logs this error, and answers that an internal error has occurred.
      if (isQueryFault(error)) throw error
      this.#options.log.warn({ err: error }, 'the delivery log can not be queried')
      return problem('log_unavailable', error instanceof Error ? error.message : String(error))
    }
  }

  /**
   * Opens the index for queries. If the index is asked over HTTP, it is opened again for each question. This
   * costs nothing, and the token may have changed since the last question.
   */
  #open(): Promise<LogQuery> {
    const { config, query } = this.#options
    if (query !== undefined) return Promise.resolve(query)
    if (config.index.url !== undefined) return openLogQuery(config)
    this.#ofFolder ??= openLogQuery(config).catch((error: unknown) => {
      this.#ofFolder = undefined
      throw error
    })
    return this.#ofFolder
  }
}

function pageOf(body: unknown): { limit: number; cursor?: string } {
  const { limit = defaultLimit, cursor }: { limit?: number; cursor?: string } = Object(body)
  return { limit, ...(cursor !== undefined && { cursor }) }
}
