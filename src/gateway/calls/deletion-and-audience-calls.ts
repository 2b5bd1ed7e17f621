import { randomUUID } from 'node:crypto'
import { propertyName } from '../../audience/records/property-name.ts'
import type { Source } from '../../catalog/catalog.ts'
import {
  propertyChangeCheck,
  propertyChangeChecks,
  type PropertyChange,
} from '../../message/audience-change.ts'
import { deletionCheck } from '../../message/deletion.ts'
import { partitionOf } from '../../message/partitioner.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { measureStructure } from '../../message/depth-and-keys.ts'
import { parseTimestamp } from '../../message/timestamp.ts'
import { type Answer, problem, success } from './answer.ts'
import { isJsonObject, type JsonObject, readBody } from '../messages/body.ts'
import { type Arrival, arrivalAt, occasionOf } from '../messages/clock.ts'
import { maxBatchBytes, maxBatchMessages, maxMessageBytes } from '../messages/request-limits.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { type Parcel, recordBytes } from '../outbox/parcel.ts'
import type { Sources } from './sources.ts'
import type { RequestTrace, SendTrace } from './request-tracing.ts'
import { serviceUnavailable } from './service-unavailable.ts'
import { rateLimited, unreadable } from './tracking-refusals.ts'
import { keysOf } from '../messages/write-key.ts'
import { mostAheadMs } from '../../audience/records/record-json.ts'

export type ServerCallsOptions = {
  readonly sources: Sources
  readonly outbox: Outbox
  readonly topics: { readonly deletions: string; readonly audienceChanges: string }
  readonly partitions: number
  /** The worker's limits. The gateway refuses what the worker would refuse because of them. */
  readonly limits: MessageLimits
  /** Returns milliseconds since 1970. */
  readonly now: () => number
}

/**
 * The calls that need a server key. A write key isn't enough for them, because write keys are public. A
 * request is accepted as a whole or not at all. The status 200 means that Kafka has acknowledged all records
 * of the request.
 */
export type ServerCalls = {
  /**
   * If the request is refused because of its `Authorization` header, returns the answer. Returns `undefined`
   * if the answer depends on the body.
   */
  refusal(authorization: string | undefined): Answer | undefined
  deletion(sent: Buffer, authorization: string | undefined, trace?: RequestTrace): Promise<Answer>
  audienceChanges(sent: Buffer, authorization: string | undefined, trace?: RequestTrace): Promise<Answer>
}

/** The value of a record, with the id of its user, which is the record's key. */
type UserText = { readonly userId: string; readonly text: string }
type Headers = Readonly<Record<string, string>>

export function createServerCalls(options: ServerCallsOptions): ServerCalls {
  const { sources, outbox, topics, partitions, limits, now } = options

  type Authorised = { ok: true; body: JsonObject; allowed: readonly Source[] } | { ok: false; answer: Answer }

  function read(sent: Buffer, authorization: string | undefined): Authorised {
    const allowed = sources.withServerKey(keysOf(authorization))
    if (allowed.length === 0) return { ok: false, answer: unknownServerKey }
    const body = readBody(sent, maxBatchBytes)
    if (!body.ok) return { ok: false, answer: unreadable(body.fault, 'batch') }
    return { ok: true, body: body.body, allowed }
  }

  /** Adds records with the headers `own` and the headers of the trace to a parcel. */
  function addAll(parcel: Parcel, texts: readonly UserText[], own: Headers, sending?: SendTrace): void {
    const headers = { ...own, ...sending?.headers }
    const traceBytes = sending?.bytes ?? 0
    for (const { userId, text } of texts) {
      const partition = partitionOf(userId, partitions)
      const bytes = recordBytes(userId, Buffer.byteLength(text)) + traceBytes
      parcel.add({ partition, key: userId, value: text, headers, bytes }, undefined)
    }
  }

  return {
    refusal(authorization) {
      return sources.withServerKey(keysOf(authorization)).length === 0 ? unknownServerKey : undefined
    },

    async deletion(sent, authorization, trace) {
      const request = read(sent, authorization)
      if (!request.ok) return request.answer
      const { body, allowed } = request
      const arrival = arrivalAt(now())
      const deletion = {
        requestId: randomUUID(),
        sources: allowed.map(({ id }) => id),
        ...body,
        requestedAt: arrival.text,
      }
      if (!deletionCheck.Check(deletion)) return refused(deletionCheck.Errors(deletion), '')
      if (!covers(allowed, deletion.sources)) return sourceNotAllowed

      const text = JSON.stringify(deletion)
      if (Buffer.byteLength(text) > limits.maxBytes) return deletionTooLarge(limits.maxBytes)
      const parcel = outbox.parcel(topics.deletions, '', occasionOf(undefined, arrival))
      const sending = trace?.sends(topics.deletions, undefined)
      addAll(parcel, [{ userId: deletion.userId, text }], {}, sending)
      const delivered = await outbox.submit(parcel)
      sending?.end(parcel.records, delivered)
      if (delivered !== 'acknowledged') return serviceUnavailable(delivered, outbox.throttleMs(parcel.topic))
      return { status: 200, body: JSON.stringify({ success: true, requestId: deletion.requestId }) }
    },

    async audienceChanges(sent, authorization, trace) {
      const request = read(sent, authorization)
      if (!request.ok) return request.answer
      const { source, changes: given } = request.body
      const space = spaceOf(request.allowed, source)
      if (space === undefined) return sourceNotAllowed
      if (!Array.isArray(given)) return changesMissing
      if (given.length > maxBatchMessages) return tooManyChanges
      const arrival = arrivalAt(now())
      const changes = readChanges(given, arrival, limits)
      if (!changes.ok) return changes.answer
      const waitMs = sources.take(space, given.length)
      if (waitMs > 0) return rateLimited(waitMs)

      const parcel = outbox.parcel(topics.audienceChanges, '', occasionOf(undefined, arrival))
      const sending = trace?.sends(topics.audienceChanges, space.id)
      addAll(parcel, changes.texts, { 'source-id': space.id }, sending)
      const delivered = await outbox.submit(parcel)
      sending?.end(parcel.records, delivered)
      if (delivered === 'acknowledged') return success
      sources.giveBack(space, given.length)
      return serviceUnavailable(delivered, outbox.throttleMs(parcel.topic))
    },
  }
}

function covers(allowed: readonly Source[], ids: readonly string[]): boolean {
  const known = new Set(allowed.map(({ id }) => id))
  return ids.every((id) => known.has(id))
}

/**
 * Returns the space that a request names. If the request names no space and its key belongs to exactly one
 * space, returns that space.
 */
function spaceOf(allowed: readonly Source[], named: unknown): Source | undefined {
  const spaces = allowed.filter(({ kind }) => kind === 'audiences')
  if (named === undefined) return spaces.length === 1 ? spaces[0] : undefined
  return spaces.find(({ id }) => id === named)
}

type ReadChanges = { ok: true; texts: readonly UserText[] } | { ok: false; answer: Answer }

function readChanges(given: readonly unknown[], arrival: Arrival, limits: MessageLimits): ReadChanges {
  const texts: UserText[] = []
  for (const [index, item] of given.entries()) {
    const where = `changes[${index}]`
    const change = isJsonObject(item) ? { changedAt: arrival.text, ...item } : item
    if (!isPropertyChange(change)) return { ok: false, answer: refusedChange(change, where) }
    const answer = timeFault(change, where, arrival.ms) ?? nameFault(change, where)
    if (answer !== undefined) return { ok: false, answer }
    if (!measureStructure(change, limits).ok) return { ok: false, answer: unwritable(where) }
    const text = JSON.stringify(change)
    const mostBytes = Math.min(maxMessageBytes, limits.maxBytes)
    if (Buffer.byteLength(text) > mostBytes) return { ok: false, answer: changeTooLarge(where, mostBytes) }
    texts.push({ userId: change.userId, text })
  }
  return { ok: true, texts }
}

function isPropertyChange(value: unknown): value is PropertyChange {
  return propertyChangeCheck.Check(value)
}

const unknownServerKey = problem(
  'unknown_server_key',
  'No source has this server key. Send a server key as a Bearer token, or by Basic authentication as its user name.',
)
const sourceNotAllowed = problem(
  'source_not_allowed',
  'Name sources that this key is a server key of; of audience changes one source of the kind audiences.',
)
const changesMissing = problem('invalid_body', 'Send changes as a list.')
const tooManyChanges = problem('too_many_messages', `Send at most ${maxBatchMessages} changes.`)

/**
 * If the worker would refuse the time of a change, returns the answer. The worker compares the time with the
 * broker's clock.
 */
function timeFault({ changedAt }: PropertyChange, where: string, nowMs: number): Answer | undefined {
  const atMs = parseTimestamp(changedAt)
  if (atMs === undefined) return problem('invalid_body', `${where}.changedAt is no day of the calendar.`)
  if (atMs - nowMs <= mostAheadMs) return undefined
  return problem(
    'invalid_body',
    `${where}.changedAt is more than ${mostAheadMs / 60_000} minutes ahead. Set the clock of the program that makes the changes.`,
  )
}

/** If no property name can be made from the name and the key of a change, returns the answer. */
function nameFault(change: PropertyChange, where: string): Answer | undefined {
  const [kind, name, key] =
    change.type === 'membership'
      ? (['audience', change.audienceName, change.audienceKey] as const)
      : (['trait', change.traitName, change.traitKey] as const)
  if (propertyName({ key: key ?? undefined, name }) !== undefined) return undefined
  const fault =
    typeof key === 'string'
      ? `${where}.${kind}Key has only spaces. Send another key, or leave it out.`
      : `${where}.${kind}Name has no letter and no digit. Send another name, or set ${kind}Key.`
  return problem('invalid_body', fault)
}

function unwritable(where: string): Answer {
  return problem('invalid_body', `${where} has too many levels, or a number over 1.7e308, or too many keys.`)
}

function deletionTooLarge(mostBytes: number): Answer {
  return problem('payload_too_large', `The request is over ${mostBytes} bytes. Name fewer sources in each.`)
}

function changeTooLarge(where: string, mostBytes: number): Answer {
  return problem('payload_too_large', `${where} is over ${mostBytes} bytes.`)
}

/** Returns an answer that names a fault of a change, by the schema for the change's `type`. */
function refusedChange(change: unknown, where: string): Answer {
  if (!isJsonObject(change)) return refused(propertyChangeCheck.Errors(change), where)
  const { type } = change
  return type === 'membership' || type === 'trait'
    ? refused(propertyChangeChecks[type].Errors(change), where)
    : problem('invalid_body', `${where}.type must be membership or trait.`)
}

/**
 * Returns an answer that names the first field that violates the schema. The answer never contains the values
 * of fields.
 */
function refused(errors: readonly SchemaError[], where: string): Answer {
  const [first] = errors
  const path = `${where}${(first?.instancePath ?? '').replaceAll('/', '.')}`.replace(/^\./, '')
  // TypeBox reports an unknown field as a violation of the schema `false`.
  const fault = first?.keyword === 'boolean' ? 'is not a known field' : first?.message
  return problem('invalid_body', `${path === '' ? 'The body' : path} ${fault ?? 'is not as it has to be'}.`)
}

type SchemaError = { keyword: string; instancePath: string; message: string }
