import { propertyName } from '../audience/records/property-name.ts'
import { propertyChangeCheck, type PropertyChange, userIdCheck } from '../message/audience-change.ts'
import { holdsInfinite, parseJson } from '../message/json/json.ts'
import type { MessageLimits } from '../message/limits.ts'
import { findExcess } from '../message/depth-and-keys.ts'
import { parseTimestamp } from '../message/timestamp.ts'
import { userIdProblem } from './users.ts'

/**
 * The longest time in milliseconds that a `changedAt` or `snapshotAt` may be in the future. The worker
 * refuses times that are further ahead of the broker's clock.
 */
const mostAheadMs = 5 * 60_000

/** The key (`userId`) and the value of a record of `audience-changes`, or the problem with a change. */
export type ReadyChange = { ok: true; userId: string; value: string } | { ok: false; problem: string }

/**
 * Checks a change by the worker's rules. `text` is the JSON of the change. `nowMs` is the present time in
 * epoch milliseconds.
 */
export function readChange(
  text: string,
  { limits, nowMs }: { limits: MessageLimits; nowMs: number },
): ReadyChange {
  const parsed = parseJson(text)
  if (!parsed.ok) return refuse('is no JSON: write a change as one JSON object on a line of its own')
  const change = parsed.value
  if (!isPropertyChange(change)) return refuse(shapeProblem(change))
  const excess = findExcess(text, change, limits)
  if (excess === 'nested_too_deep') {
    return refuse(`has more than ${limits.maxDepth} levels of nested arrays and objects: send fewer`)
  }
  if (excess === 'too_many_keys') return refuse(`has more than ${limits.maxKeys} keys: send fewer`)
  const problem = userIdProblem(change.userId) ?? timeProblem('changedAt', change.changedAt, nowMs)
  if (problem !== undefined) return refuse(problem)
  if (propertyName(namesOf(change)) === undefined) {
    return refuse('has a name without a letter or a digit, of which no property can be named: give it a key')
  }
  if (holdsInfinite(change)) {
    return refuse('has a number over 1.7e308: send larger ones as text')
  }
  const value = JSON.stringify(change)
  if (Buffer.byteLength(value) > limits.maxBytes) {
    return refuse(`is over ${limits.maxBytes} bytes: send less, or raise message.maxBytes`)
  }
  return { ok: true, userId: change.userId, value }
}

/**
 * Returns the reason why `text` is no valid time for a `changedAt` or `snapshotAt`. Returns `undefined` if
 * `text` is valid.
 */
export function timeProblem(field: string, text: string, nowMs: number): string | undefined {
  const timeMs = parseTimestamp(text)
  if (timeMs === undefined) return noTime(field)
  if (timeMs - nowMs > mostAheadMs) {
    return `has a ${field} more than ${mostAheadMs / 60_000} minutes ahead: it would be refused`
  }
  return undefined
}

function noTime(field: string): string {
  return `has a ${field} that is no time: write ISO 8601, such as 2026-01-31T12:00:00.000Z`
}

function refuse(problem: string): ReadyChange {
  return { ok: false, problem }
}

function namesOf(change: PropertyChange): Parameters<typeof propertyName>[0] {
  return change.type === 'membership'
    ? { key: change.audienceKey ?? undefined, name: change.audienceName }
    : { key: change.traitKey ?? undefined, name: change.traitName }
}

function isPropertyChange(value: unknown): value is PropertyChange {
  return propertyChangeCheck.Check(value)
}

const kinds = {
  membership: ['audienceId', 'audienceName', 'userId', 'member', 'changedAt'],
  trait: ['traitId', 'traitName', 'userId', 'value', 'changedAt'],
} as const

/**
 * Describes what is wrong with the fields of a change. Reads `type` first, because the schema's own errors
 * would name the fields of both types of change.
 */
function shapeProblem(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'is no object: write a change'
  const fields = new Map<string, unknown>(Object.entries(value))
  const type = fields.get('type')
  if (type === 'sync') return 'is a part of a sync: send whole audiences with sluice audience sync'
  if (type !== 'membership' && type !== 'trait') return 'has no type membership or trait: set it'
  const missing = kinds[type].filter((field) => !fields.has(field))
  if (missing.length > 0) return `has no ${missing.join(', ')}: a change of type ${type} needs it`
  const optional = type === 'membership' ? 'audienceKey' : 'traitKey'
  const known = new Set<string>(['type', optional, ...kinds[type]])
  const unknown = [...fields.keys()].find((field) => !known.has(field))
  if (unknown !== undefined) {
    return `has a field ${JSON.stringify(unknown.slice(0, 40))} that a change of type ${type} does not have: leave it out`
  }
  if (typeof fields.get('member') !== 'boolean' && type === 'membership') {
    return 'has a member that is neither true nor false'
  }
  // All texts of a change have to follow the rules for a user id.
  const text = [...fields].find(
    ([field, held]) =>
      field !== 'value' &&
      field !== 'member' &&
      !(field === optional && held === null) &&
      !userIdCheck.Check(held),
  )
  if (text !== undefined) return `needs text of 1 to 1,000 characters as ${text[0]}`
  return noTime('changedAt')
}
