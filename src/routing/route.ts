import { conditionOf, type Said } from '../conditions/condition.ts'
import { MessageView } from '../conditions/message-view.ts'
import { filtering, type MessageFilter } from '../message/message-filter.ts'
import type { MessageKind } from '../message/message-schemas.ts'
import { chooseMapping } from '../shape/choice.ts'
import type { Mapping } from '../shape/definition.ts'

/**
 * The fields of a destination that routing needs. Messages are also routed to a destination that is `paused`
 * or `auto_paused`. Its deliveries wait in its queue until the destination is `on` again.
 */
export type Routable = {
  id: string
  state: 'on' | 'off' | 'paused' | 'auto_paused'
  filter?: MessageFilter | undefined
  /** Those of which one must be for the message. `undefined`: there are none, and all messages are sent. */
  mappings?: readonly Mapping[] | undefined
}

/** The fields of a message that routing needs. */
export type Routed = {
  type: MessageKind
  integrations?: Readonly<Record<string, unknown>> | null | undefined
  /**
   * The canonical body of a message from the topic of events. A message that Sluice makes itself has none
   * here, so no filter applies to it. These are the Identifies of audiences, and each `delete` of a deletion
   * request.
   */
  body?: Uint8Array
}

/**
 * The reason why a connected destination doesn't get a message. Reasons are values of a metric label.
 * `filtered_by_missing_field`: its condition reads a field that the message lacks, or that has another type.
 * `filtered_by_sample`: the user of the message isn't in its sample.
 */
export type SkipReason =
  | 'destination_off'
  | 'filtered_by_integrations'
  | 'filtered_by_destination'
  | 'filtered_by_missing_field'
  | 'filtered_by_sample'

/** A connected destination that doesn't get a message. */
export type Skipped<D extends Routable> = { readonly destination: D; readonly reason: SkipReason }

/** A connected destination one of whose conditions can't be evaluated for a message. */
export type Failed<D extends Routable> = { readonly destination: D } & ConditionFailure

/**
 * The result of routing. `to`: the destinations that get the message; it may be the given list itself.
 * `failed`: those of which it isn't known whether they should get it. `skipped`: all other destinations. One
 * that is off always has `destination_off`.
 */
export type Route<D extends Routable> = {
  to: readonly D[]
  /** Those in `to` whose conditions weren't asked, because the destination has to wait (`RouteMeter`). */
  unjudged: readonly D[]
  skipped: readonly Skipped<D>[]
  failed: readonly Failed<D>[]
}

const none: readonly never[] = Object.freeze([])

/** Measures what the conditions of each destination cost. */
export type RouteMeter = {
  /** Returns a number above 0 if the destination has to wait, because its conditions cost too much. */
  waitMs(destinationId: string): number
  /** Returns the result of `work`, whose time the destination is charged with. */
  measure<T>(destinationId: string, work: () => T): T
}

/**
 * Decides which destinations get a message. `destinations` are the destinations that are connected to the
 * message's source. If the message's `integrations` exclude webhooks, no destination gets the message.
 * Otherwise each destination gets the message that isn't off, and whose filter lets the message pass. `to`
 * keeps their order. A `delete` is sent whatever `integrations` and filters say.
 */
export function route<D extends Routable>(
  message: Routed,
  destinations: readonly D[],
  meter?: RouteMeter,
): Route<D> {
  const isForbidden = message.type !== 'delete' && !allowsWebhooks(message.integrations)
  if (!isForbidden && takeAll(destinations))
    return { to: destinations, unjudged: none, skipped: none, failed: none }
  const judge = isForbidden ? undefined : judgeOf(message, meter)
  const to: D[] = []
  const unjudged: D[] = []
  const skipped: Skipped<D>[] = []
  const failed: Failed<D>[] = []
  for (const destination of destinations) {
    const { state } = destination
    if (state === 'off') skipped.push({ destination, reason: 'destination_off' })
    else if (isForbidden) skipped.push({ destination, reason: 'filtered_by_integrations' })
    else {
      const said = judge?.(destination) ?? passes
      if (said.kind === 'passes') to.push(destination)
      else if (said.kind === 'waits') {
        to.push(destination)
        unjudged.push(destination)
      } else if (said.kind === 'skipped') skipped.push({ destination, reason: said.reason })
      else failed.push({ destination, of: said.of, detail: said.detail })
    }
  }
  return { to, unjudged, skipped, failed }
}

/** Returns true if no destination is off or has a filter or mappings, which is the usual case. */
function takeAll(destinations: readonly Routable[]): boolean {
  for (const { state, filter, mappings } of destinations)
    if (state === 'off' || filter !== undefined || mappings !== undefined) return false
  return true
}

/** A condition that can't be evaluated for a message: whose it is, and why. */
export type ConditionFailure = { readonly of: 'filter' | 'mapping'; readonly detail: string }

/** What the filter and the mappings of a destination say about a message. */
export type FilterSaid =
  | { readonly kind: 'passes' }
  /** Its conditions weren't asked, because the destination has to wait. */
  | { readonly kind: 'waits' }
  | { readonly kind: 'skipped'; readonly reason: SkipReason; readonly detail: string }
  | ({ readonly kind: 'failed' } & ConditionFailure)

const passes: FilterSaid = { kind: 'passes' }
const waits: FilterSaid = { kind: 'waits' }
const excluded: FilterSaid = { kind: 'skipped', reason: 'filtered_by_destination', detail: '' }
const unsampled: FilterSaid = { kind: 'skipped', reason: 'filtered_by_sample', detail: '' }

/**
 * Returns a function that says whether the filter of a destination lets the message pass, and whether one of
 * its mappings is for it. The message is parsed at most once for all destinations, and only if one of them
 * has a condition. Returns `undefined` if all destinations get the message.
 */
export function judgeOf(
  { type, body }: Routed,
  meter?: RouteMeter,
): ((destination: Judged) => FilterSaid) | undefined {
  if (body === undefined || type === 'delete') return undefined
  const filtered = filtering(type, body)
  const view = new MessageView(body)
  return (destination) => {
    const { filter } = destination
    const said = filter === undefined ? 'passes' : filtered(filter)
    if (said !== 'passes') return said === 'unsampled' ? unsampled : excluded
    if (!hasConditions(destination)) return passes
    if (meter === undefined) return askConditions(destination, view)
    if (meter.waitMs(destination.id) > 0) return waits
    // What all destinations share isn't charged to the first of them.
    void view.fields
    return meter.measure(destination.id, () => askConditions(destination, view))
  }
}

type Judged = Pick<Routable, 'id' | 'filter' | 'mappings'>

/** Returns true if conditions decide whether the destination gets a message. */
function hasConditions({ filter, mappings }: Judged): boolean {
  if (filter?.condition !== undefined) return true
  return mappings !== undefined && mappings.every(({ condition }) => condition !== undefined)
}

function askConditions({ filter, mappings }: Judged, view: MessageView): FilterSaid {
  if (filter?.condition !== undefined) {
    const said = saidBy(conditionOf(filter.condition).of(view))
    if (said.kind !== 'passes') return said
  }
  if (mappings === undefined) return passes
  const choice = chooseMapping(mappings, view)
  if (choice.kind === 'failed') return { kind: 'failed', of: 'mapping', detail: choice.detail }
  return choice.kind === 'none' ? excluded : passes
}

function saidBy(judged: Said): FilterSaid {
  switch (judged.kind) {
    case 'matches':
      return passes
    case 'differs':
      return excluded
    case 'lacks':
      return { kind: 'skipped', reason: 'filtered_by_missing_field', detail: judged.detail }
    case 'failed':
      return { kind: 'failed', of: 'filter', detail: judged.detail }
  }
}

/**
 * Returns true if a message's `integrations` allow webhooks for the message (the specification, section 4.2).
 * If `Webhooks` is present, its value decides: true or an object of options allows webhooks. If `Webhooks` is
 * absent, `All: false` forbids webhooks. Names are case sensitive, but `all` is accepted too, because
 * analytics-go v3 writes it.
 */
function allowsWebhooks(integrations: Routed['integrations']): boolean {
  if (integrations === undefined || integrations === null) return true
  const webhooks = integrations['Webhooks'] ?? undefined
  if (webhooks !== undefined) return Boolean(webhooks)
  return (integrations['All'] ?? integrations['all']) !== false
}
