import type { Destination } from '../../catalog/catalog.ts'
import { parseCatalogData } from '../../catalog/parse.ts'
import { enter } from '../../message/enter.ts'
import type { Entered } from '../../message/entered.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { filterJudge } from '../../routing/route.ts'

// What a filter does with messages, without a destination that has it.

/** A rule that is tried: the fields of a destination with which it decides about messages. */
export type Rule = { readonly filter?: unknown }

/** What a rule does with a message. `refused`: no destination gets the message, because it has a fault. */
export type PreviewResult = 'passes' | 'excluded' | 'missing_field' | 'not_sampled' | 'failed' | 'refused'

export const previewResults: readonly PreviewResult[] = [
  'passes',
  'excluded',
  'missing_field',
  'not_sampled',
  'failed',
  'refused',
]

/** `detail` says why, and is null if there is nothing to say. */
export type Previewed = {
  readonly messageId: string | null
  readonly result: PreviewResult
  readonly detail: string | null
}

export type CheckedRule =
  | { ok: true; destination: Destination }
  /** What is wrong, one sentence each. */
  | { ok: false; faults: readonly string[] }

const place = 'destinations[0].'

/** Checks a rule as the catalog would check it. */
export function checkRule(rule: Rule): CheckedRule {
  const hooks = [{ url: 'https://preview.example/' }]
  const parsed = parseCatalogData(
    { sources: [{ id: 'preview' }], destinations: [{ id: 'preview', sources: ['preview'], hooks, ...rule }] },
    { file: '', version: '' },
  )
  if (!parsed.ok) {
    const faults = parsed.faults.map(
      ({ path, problem, advice }) =>
        `${path.startsWith(place) ? path.slice(place.length) : path} ${problem}: ${advice}.`,
    )
    return { ok: false, faults }
  }
  const [destination] = parsed.catalog.destinations.values()
  return destination === undefined ? { ok: false, faults: ['There is no rule.'] } : { ok: true, destination }
}

/** A message that is tried, as its producer writes it. `atMs`: when it came, in epoch milliseconds. */
export type Tried = { readonly value: Uint8Array | null; readonly atMs: number }

/** Returns what a rule does with each message. */
export function previewOf(
  destination: Destination,
  messages: readonly Tried[],
  limits: MessageLimits,
): readonly Previewed[] {
  return messages.map(({ value, atMs }, offset) => {
    const entered = enter(value, { topic: 'preview', partition: 0, offset, timestampMs: atMs }, limits)
    if (entered.ok) return previewed(destination, entered.message)
    return { messageId: null, result: 'refused', detail: `${entered.reason}: ${entered.detail}` }
  })
}

function previewed({ filter }: Destination, message: Entered): Previewed {
  const { messageId } = message
  const said = filter === undefined ? undefined : filterJudge(message)?.(filter)
  if (said === undefined || said.kind === 'passes') return { messageId, result: 'passes', detail: null }
  if (said.kind === 'failed') return { messageId, result: 'failed', detail: said.detail }
  const detail = said.detail === '' ? null : said.detail
  switch (said.reason) {
    case 'filtered_by_missing_field':
      return { messageId, result: 'missing_field', detail }
    case 'filtered_by_sample':
      return { messageId, result: 'not_sampled', detail }
    case 'destination_off':
    case 'filtered_by_integrations':
    case 'filtered_by_destination':
      return { messageId, result: 'excluded', detail }
  }
}
