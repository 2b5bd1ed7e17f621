import type { DestinationDefinition } from '../delivery/endpoint.ts'
import { type Outgoing, outgoingAgain, outgoingOf } from '../shape/choice.ts'
import { undecidedMapping } from '../retry/retry-state.ts'
import { messageKinds } from '../message/message-schemas.ts'
import { type FilterSaid, judgeOf } from '../routing/route.ts'
import type { Delivery } from './delivery.ts'

/**
 * Decides what a delivery sends. Its first try decides for all later ones: the mapping of that try is kept in
 * the delivery's headers, so that each retry makes the same bytes of the same message, whatever the catalog
 * has by then.
 */
export function outgoing(delivery: Delivery, { mappings }: DestinationDefinition): Outgoing {
  const { mapping, body, kind, property } = delivery
  if (mapping === undecidedMapping) {
    if (mappings === undefined) return plain
    return outgoingOf(mappings, { body, isOwed: kind === 'delete' || property !== undefined })
  }
  if (mapping === '') return plain
  try {
    return outgoingAgain(mapping, body)
  } catch {
    // Another program wrote the header, or a newer version of Sluice with other directives.
    const detail = "the mapping of the first try (the record's header mapping) can't be read"
    return { kind: 'failed', reason: 'mapping_failed', detail }
  }
}

/** Returns true if a mapping makes the request of a delivery. If not, it costs nothing. */
export function isShaped({ mapping }: Delivery, { mappings }: DestinationDefinition): boolean {
  return mapping === undecidedMapping ? mappings !== undefined : mapping !== ''
}

/** Says whether a destination gets a message, by its present filter. */
export function judgeAgain(
  { kind, body }: Delivery,
  definition: DestinationDefinition,
): Exclude<FilterSaid, { kind: 'waits' }> {
  const type = messageKinds.find((known) => known === kind)
  const said = type === undefined ? undefined : judgeOf({ type, body })?.(definition)
  return said === undefined || said.kind === 'waits' ? { kind: 'passes' } : said
}

const plain: Outgoing = { kind: 'plain' }
