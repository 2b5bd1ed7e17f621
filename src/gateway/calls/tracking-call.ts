import type { MessageLimits } from '../../message/limits.ts'
import { RawObject } from '../../message/message-outline.ts'
import type { AddressContexts } from '../messages/address-contexts.ts'
import type { Answer } from './answer.ts'
import { arrivalAt, occasionOf } from '../messages/clock.ts'
import { type ItemContext, type Call, isEmptyList, type Items } from '../messages/item.ts'
import { maxBatchMessages, maxMessageBytes } from '../messages/request-limits.ts'
import type { RequestWork } from '../messages/request-work.ts'
import type { ScannedBody } from '../messages/scan-body.ts'
import { SharedObject, withIp } from '../messages/shared-object.ts'
import { contextTooLarge, notAList, notObjects, tooManyMessages, unreadable } from './tracking-refusals.ts'

export type ReadCall = {
  readonly ok: true
  readonly items: Items
  readonly surroundings: ItemContext
  readonly work: RequestWork
  /** The number of whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
}

/** The values that `readCall` needs in addition to the call itself. */
export type CallSetting = {
  readonly limits: MessageLimits
  /** Returns milliseconds since 1970. */
  readonly now: () => number
  readonly addressContexts: AddressContexts
}

type CallClient = { readonly ip: string | undefined; readonly keepsTimes?: boolean }

/**
 * Reads the messages of a call, and the values that all of them share. A missing `batch` is read as an empty
 * list.
 */
export function readCall(
  call: Call,
  { body, items, lostDigits }: ScannedBody,
  { client: { ip, keepsTimes = false }, work }: { readonly client: CallClient; readonly work: RequestWork },
  { limits, now, addressContexts }: CallSetting,
): ReadCall | { readonly ok: false; readonly answer: Answer } {
  const arrival = arrivalAt(now(), !keepsTimes)
  if (call !== 'batch') {
    // A single message has its own `sentAt`, so there is no shared one.
    const context = ip === undefined ? undefined : addressContexts.of(ip)
    const own = { ...occasionOf(undefined, arrival), context, integrations: undefined }
    return { ok: true, items, work, lostDigits, surroundings: { ...own, kind: call, limits } }
  }
  const { batch = [], sentAt } = body
  const [context, integrations] = [orAbsent(body['context']), orAbsent(body['integrations'])]
  if (!Array.isArray(batch ?? [])) return { ok: false, answer: notAList }
  if (items.length > maxBatchMessages) return { ok: false, answer: tooManyMessages }
  if (!isObjectOrAbsent(context) || !isObjectOrAbsent(integrations)) return { ok: false, answer: notObjects }
  const shared = {
    context: contextOf(context, ip, { limits, addressContexts }),
    integrations: sharedOf(integrations, limits),
  }
  if (isLarge(shared.context) || isLarge(shared.integrations)) return { ok: false, answer: contextTooLarge }
  const sharedBytes = (shared.context?.bytes ?? 0) + (shared.integrations?.bytes ?? 0)
  if (!work.shares(items.length, sharedBytes)) return { ok: false, answer: unreadable('too_dense', call) }
  return {
    ok: true,
    items,
    work,
    lostDigits,
    surroundings: { ...occasionOf(sentAt, arrival), ...shared, kind: undefined, limits },
  }
}

function orAbsent(value: unknown): unknown {
  return isEmptyList(value) ? undefined : value
}

function isObjectOrAbsent(value: unknown): value is RawObject | null | undefined {
  return value === undefined || value === null || value instanceof RawObject
}

function sharedOf(value: RawObject | null | undefined, limits: MessageLimits): SharedObject | undefined {
  return hasMembers(value) ? new SharedObject(value, limits) : undefined
}

function hasMembers(value: RawObject | null | undefined): value is RawObject {
  return value !== undefined && value !== null && value.text !== '{}'
}

/**
 * Returns the context that all messages of a request get, with the address of the request. If the batch has a
 * context with an `ip`, that `ip` stays.
 */
function contextOf(
  context: RawObject | null | undefined,
  ip: string | undefined,
  { limits, addressContexts }: Pick<CallSetting, 'limits' | 'addressContexts'>,
): SharedObject | undefined {
  if (ip === undefined) return sharedOf(context, limits)
  return hasMembers(context) ? new SharedObject(withIp(context, ip), limits) : addressContexts.of(ip)
}

/**
 * Returns true if a shared object alone is larger than a message may be. Such an object would be written into
 * every message of the batch.
 */
function isLarge(shared: SharedObject | undefined): boolean {
  return shared !== undefined && shared.bytes > maxMessageBytes
}
