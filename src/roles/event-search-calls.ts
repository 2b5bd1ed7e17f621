import { AtOnce } from '../admin/at-once.ts'
import { type AdminAnswer, done, missing, noToken, problem } from '../admin/problem.ts'
import { holdsSource, type TokenScope } from '../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import { shareOf } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { timeOf } from '../delivery-log/lines.ts'
import { createPartitionReader, offsetRanges } from '../kafka/read/partition-reader.ts'
import { parseTimestamp } from '../message/timestamp.ts'
import type { ContentCallsOptions } from './content-calls.ts'
import { readCondition } from './content/body-condition.ts'
import { openJudge, type Wanted } from './content/event-judge.ts'
import { cursorOf, placeIn, placeOf, readOf, type SearchPlace, searchPart } from './content/event-search.ts'
import { asked, notTold } from './replay-calls.ts'
import { clientOf } from './start/ask-kafka.ts'
import { kafkaSettings, topicNames } from './start/settings.ts'
import { WrongUseError } from './start/start-error.ts'

/** How many parts of searches may run at the same time. Each reads as much of Kafka as it can. */
const searchesAtOnce = { most: 3, mostOfToken: 1, what: 'searches of events' }
const defaultLimit = 50
const hourMs = 3_600_000

/** A body that has passed schema validation. */
type SearchBody = {
  readonly conditions?: readonly string[]
  readonly text?: string
  readonly source?: string
  readonly from?: string
  readonly to?: string
  readonly limit?: number
  readonly cursor?: string
}

/**
 * Creates the handler of the call that finds events by what they say. Each part of a search is written into
 * the audit trail first, so without Kafka nothing is shown.
 */
export function eventSearchCalls(options: ContentCallsOptions): Pick<AdminCalls, 'search_events'> {
  const { log, desk, catalog } = options
  const atOnce = new AtOnce(searchesAtOnce)
  return {
    async search_events({ body, token, isInForce }: AdminRequest) {
      const given: SearchBody = Object(body)
      const wanted = wantedIn(given, catalog(), token.scope)
      if ('status' in wanted) return wanted
      return atOnce.run(shareOf(token), async () => {
        if (!isInForce()) return noToken
        const deed = { action: 'content_read', by: token.name, detail: detailOf(given, wanted) } as const
        const told = await asked(log, desk.tell(deed), () => done({}), { detail: notTold })
        return told.isProblem ? told : asked(log, search(options, given, wanted), (answer) => answer)
      })
    },
  }
}

/** Says in the audit trail what was looked for, without values: they may be about people, and stay there. */
function detailOf({ text, source, cursor }: SearchBody, { conditions }: Wanted): string {
  const fields = conditions.map(({ path }) => path.join('.'))
  const by = [...fields, ...(text === undefined ? [] : ['a text'])].join(', ')
  const where = source === undefined ? '' : ` of source ${source}`
  return `events${where} by ${by}${cursor === undefined ? '' : ', read on'}`
}

function wantedIn(
  { conditions = [], text, source }: SearchBody,
  { sources }: Catalog,
  scope: TokenScope,
): Wanted | AdminAnswer {
  if (conditions.length === 0 && text === undefined) return problem('bad_request', nothingWanted)
  const seen = new Set([...sources.values()].flatMap((one) => (holdsSource(scope, one) ? [one.id] : [])))
  if (source !== undefined && !seen.has(source)) return missing('source', source)
  try {
    return {
      conditions: conditions.map(readCondition),
      text,
      isSource: (id) => (source === undefined ? seen.has(id) : id === source),
    }
  } catch (error) {
    if (error instanceof WrongUseError) return problem('bad_request', error.message)
    throw error
  }
}

async function search(
  { config, log }: ContentCallsOptions,
  given: SearchBody,
  wanted: Wanted,
): Promise<AdminAnswer> {
  const kafka = clientOf(kafkaSettings(config), { ...log, debug: () => undefined })
  const topic = topicNames(config).events
  const place = await beginningOf(given, (times) => offsetRanges(kafka, topic, times))
  if (typeof place === 'string') return problem('bad_request', place)
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const judge = await openJudge(config, topic, wanted)
  try {
    const { limit = defaultLimit } = given
    const { found, next } = await searchPart(reader, judge, { topic, place, limit })
    return done({
      events: found.map(({ partition, offset, timestampMs, source, ...event }) => ({
        origin: { topic, partition, offset },
        at: timeOf(timestampMs),
        source: source === '' ? null : source,
        ...event,
      })),
      read: next === undefined ? place.of : readOf(next),
      of: place.of,
      cursor: next === undefined ? null : cursorOf(next),
    })
  } finally {
    judge.stop()
    await reader.stop()
  }
}

type Ranges = Awaited<ReturnType<typeof offsetRanges>>

/** Returns where a search begins or goes on, or what is wrong with it. */
async function beginningOf(
  { from, to, cursor }: SearchBody,
  rangesOf: (times: { fromMs?: number; toMs?: number }) => Promise<Ranges>,
): Promise<SearchPlace | string> {
  if (cursor !== undefined) {
    const place = placeIn(cursor)
    const present = await rangesOf({})
    if (place === undefined || place.rests.length !== present.length) return badCursor
    // What Kafka has deleted meanwhile can't be read.
    const rests = place.rests.map((rest, partition) => {
      const { start = 0, end = 0 } = present[partition] ?? {}
      return { from: Math.max(rest.from, start), to: Math.min(rest.to, end) }
    })
    return { ...place, rests }
  }
  const nowMs = Date.now()
  const fromMs = from === undefined ? nowMs - hourMs : parseTimestamp(from)
  // Producers may set the times of records, so some may be later than now.
  const toMs = to === undefined ? nowMs + hourMs : parseTimestamp(to)
  if (fromMs === undefined || toMs === undefined || fromMs < 0) return badTimes
  if (fromMs >= toMs) return 'from has to be before to.'
  return placeOf(await rangesOf({ fromMs, ...(to !== undefined && { toMs }) }), { fromMs, toMs })
}

const nothingWanted = 'Send conditions, such as ["properties.orderId=4711"], or a text.'
const badCursor = 'cursor: pass one from an answer to the same question, or none.'
const badTimes = 'from, to: write a time in ISO 8601, such as 2026-07-23T14:00:00Z.'
