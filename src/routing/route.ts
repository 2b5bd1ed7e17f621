import type { MessageKind } from '../message/message-schemas.ts'

/**
 * The fields of a destination that routing needs. Messages are also routed to a destination that is `paused`
 * or `auto_paused`. The deliveries of a `paused` destination wait on the retry ladder until the destination
 * is `on` again. The deliveries of an `auto_paused` destination become dead letters.
 */
export type Routable = { id: string; state: 'on' | 'off' | 'paused' | 'auto_paused' }

/** The fields of a message that routing needs. */
export type Routed = {
  type: MessageKind
  integrations?: Readonly<Record<string, unknown>> | null | undefined
}

/** The reason why a connected destination doesn't get a message. Reasons are values of a metric label. */
export type SkipReason = 'destination_off' | 'filtered_by_integrations'

/**
 * The result of routing. `to`: the destinations that get the message; it may be the given list itself.
 * `skipped`: the number of other destinations by reason. One that is off always has `destination_off`.
 */
export type Route<D extends Routable> = { to: readonly D[]; skipped: Readonly<Record<SkipReason, number>> }

const NONE_SKIPPED: Route<Routable>['skipped'] = Object.freeze({
  destination_off: 0,
  filtered_by_integrations: 0,
})

/**
 * Decides which destinations get a message. `destinations` are the destinations that are connected to the
 * message's source. If the message's `integrations` exclude webhooks, no destination gets the message.
 * Otherwise all destinations that aren't off get the message, and `to` keeps their order. For a `delete`,
 * `integrations` is ignored.
 */
export function route<D extends Routable>(message: Routed, destinations: readonly D[]): Route<D> {
  const off = countOff(destinations)
  if (message.type !== 'delete' && !allowsWebhooks(message.integrations)) {
    const filtered = destinations.length - off
    return { to: [], skipped: { destination_off: off, filtered_by_integrations: filtered } }
  }
  if (off === 0) return { to: destinations, skipped: NONE_SKIPPED }
  return {
    to: destinations.filter((destination) => destination.state !== 'off'),
    skipped: { destination_off: off, filtered_by_integrations: 0 },
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

function countOff(destinations: readonly Routable[]): number {
  let off = 0
  for (const destination of destinations) if (destination.state === 'off') off += 1
  return off
}
