import type { Logger } from 'pino'
import type { Catalog, Destination } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { ownRequest } from '../../delivery/own-request.ts'
import { createEndpoints } from '../../delivery/endpoint.ts'
import { timeOf } from '../../delivery-log/lines.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { enter } from '../../message/enter.ts'
import { sourceIdOf } from '../../message/record-headers.ts'
import { outgoingOf } from '../../shape/choice.ts'
import { isOwnRequest } from '../../shape/shaper.ts'
import { pipelineSettings, topicNames } from '../start/settings.ts'
import { nameOf, originsOf, type Payload, readPayloads } from './payloads.ts'

/** A record that brought a message, as an answer has it. */
type Event = {
  readonly origin: LogRecord['origin']
  readonly at: string | null
  readonly source: string | null
  readonly body: string | null
  readonly note: string | null
}

/**
 * Reads what a message contains from the records of `events` that brought it. `records` are its states that
 * may be seen.
 */
export async function messageContent(
  { config, log, catalog }: { config: Config; log: Pick<Logger, 'warn'>; catalog: Catalog },
  messageId: string,
  records: readonly LogRecord[],
): Promise<object> {
  const { events } = topicNames(config)
  const sources = new Map(records.map(({ origin, source }) => [nameOf(origin), source]))
  const origins = originsOf(records)
  const ofEvents = origins.filter(({ topic }) => topic === events)
  const silent = { warn: log.warn.bind(log), debug() {} }
  const payloads = await readPayloads(config, silent, messageId, ofEvents)
  const read = payloads.map((payload) =>
    eventOf(payload, { config, messageId, source: sources.get(nameOf(payload.origin)) ?? '' }),
  )
  const others = origins
    .filter(({ topic }) => topic !== events)
    .map((origin): Event => {
      const note = `It was made from a record of ${origin.topic}, which has no message as it is sent.`
      return { origin, at: null, source: null, body: null, note }
    })
  const sent = read.find(({ note }) => note === null)
  return {
    messageId,
    events: [...read, ...others],
    requests: sent?.body == null ? [] : requestsOf(config, catalog, { messageId, body: sent.body, records }),
  }
}

function eventOf(
  { origin, record, payload, note }: Payload,
  { config, messageId, source }: { config: Config; messageId: string; source: string },
): Event {
  const at = record === undefined ? null : timeOf(record.timestampMs)
  const unread = (why: string): Event => ({ origin, at, source: null, body: null, note: why })
  if (record === undefined || payload === undefined) return unread(note ?? 'it can not be read')
  // The record of another source is another message, even if it has no id by which this could be seen.
  if ((sourceIdOf(record.headers) ?? '') !== source) return unread(replaced)
  const { timestampMs } = record
  const entered = enter(Buffer.from(payload), { ...origin, timestampMs }, config.message)
  if (!entered.ok)
    return { origin, at, source, body: payload, note: `It was refused: ${entered.reason}. ${entered.detail}` }
  const { message } = entered
  if (message.messageId !== messageId) return unread(replaced)
  return { origin, at, source, body: message.body.toString(), note: null }
}

const replaced = 'another message is in its place: the topic was recreated, or its partition truncated'

/** The headers whose values are no secrets, and the same in each try. */
const shownHeaders = new Set(['user-agent', 'content-type', 'accept', 'x-sluice-message-id', 'webhook-id'])

/**
 * Returns the requests to those destinations of the states that the catalog still has, as it has them now.
 */
function requestsOf(
  config: Config,
  { destinations }: Catalog,
  { messageId, body, records }: { messageId: string; body: string; records: readonly LogRecord[] },
): object[] {
  const ids = new Set(records.map(({ destination }) => destination))
  const { breaker, namesRequests } = pipelineSettings(config)
  const endpoints = createEndpoints({ breaker, shareOfGroup: () => 1, isNamed: namesRequests })
  return [...ids].flatMap((id) => {
    const destination = destinations.get(id)
    if (destination === undefined) return []
    const endpoint = endpoints.of(destination)
    const bytes = Buffer.from(body)
    const outgoing = outgoingOf(destination.mappings, { body: bytes, isOwed: false })
    const none = outgoing.kind === 'none' || outgoing.kind === 'failed'
    if (none) return []
    const shaped = outgoing.kind === 'shaped' ? outgoing.shaped : undefined
    const sent = shaped?.body ?? bytes
    const isBatched = destination.batch !== undefined && !isOwnRequest(shaped)
    const ofMessage = endpoint.headersOf({ messageId, body: sent, attempts: 1 }, Date.now())
    return endpoint.hooks.map(({ id: hook, target }) => {
      const { method, headers } =
        shaped === undefined ? { method: 'POST', ...target } : ownRequest(target, shaped)
      return {
        destination: id,
        hook,
        method,
        origin: target.origin,
        path: shaped?.path ?? '',
        isBatched,
        headers: headersData([...headers, ...ofMessage], hiddenNames(destination, hook, isBatched)),
        body: shaped === undefined ? null : sent.toString(),
      }
    })
  })
}

/** The headers that have the id of the request, which isn't that of the message if it is in a batch. */
const idHeaders = ['x-sluice-message-id', 'webhook-id']

/** The headers that aren't shown: those of the catalog may be secrets. */
function hiddenNames({ hooks }: Destination, hookId: string, isBatched: boolean): ReadonlySet<string> {
  const hook = hooks.find(({ id }) => id === hookId)
  const own = hook?.headers.map(([name]) => name.toLowerCase()) ?? []
  return new Set([...own, ...(isBatched ? idHeaders : [])])
}

/** `flat`: name, value, name, value. */
function headersData(flat: readonly string[], hidden: ReadonlySet<string>): object[] {
  return flat.flatMap((name, at) => {
    if (at % 2 === 1) return []
    const key = name.toLowerCase()
    const isShown = shownHeaders.has(key) && !hidden.has(key)
    return [{ name, value: isShown ? (flat[at + 1] ?? null) : null }]
  })
}
