import { readJson } from '../data/json.ts'
import type { Destination } from '../data/types.ts'
import { type DraftHook, draftHookOf, hookOf } from './draft-hook.ts'
import {
  given,
  ifAny,
  lines,
  listAt,
  numberOf,
  objectAt,
  pairOf,
  pairs,
  textAt,
  textOf,
  without,
  words,
} from './draft-text.ts'

/**
 * A destination as a form has it: all texts, as they are typed. Fields that the form lacks stay in `rest`.
 */
export type Draft = {
  readonly id: string
  readonly name: string
  readonly state: 'on' | 'off' | 'paused'
  /** Ids, separated by commas or spaces. */
  readonly sources: string
  readonly hooks: readonly DraftHook[]
  /** Types of messages, separated by commas or spaces. */
  readonly types: string
  /** Names of events, one a line. */
  readonly events: string
  readonly condition: string
  /** A percentage of users. */
  readonly sample: string
  /** A list in JSON. */
  readonly mappings: string
  readonly perSecond: string
  readonly maxInFlight: string
  readonly timeout: string
  readonly autoPause: string
  readonly strategy: 'all' | 'failover'
  readonly isStandard: boolean
  readonly batch: DraftBatch
  /** `key=value`, one a line. */
  readonly labels: string
  readonly rest: Destination
}

/** How messages are sent together. `isOn`: false if each has a request of its own. */
export type DraftBatch = {
  readonly isOn: boolean
  readonly maxMessages: string
  readonly maxBytes: string
  readonly maxWait: string
  readonly format: 'json' | 'ndjson'
}

export const noDestination: Destination = { id: '', sources: [], hooks: [{ url: '' }] }

export function draftOf(destination: Destination): Draft {
  const filter = objectAt(destination, 'filter')
  const { sources, hooks, labels = {}, state = 'on', id, name = '', mappings } = destination
  return {
    id,
    name,
    state,
    sources: sources.join(', '),
    hooks: hooks.map(draftHookOf),
    types: listAt(filter, 'types').join(', '),
    events: listAt(filter, 'events').join('\n'),
    condition: textAt(filter, 'condition'),
    sample: textAt(objectAt(filter, 'sample'), 'percent'),
    mappings: mappings === undefined ? '' : JSON.stringify(mappings, null, 2),
    perSecond: textAt(objectAt(destination, 'rateLimit'), 'perSecond'),
    maxInFlight: textAt(destination, 'maxInFlight'),
    timeout: textAt(destination, 'timeout'),
    autoPause: textAt(destination, 'autoPause'),
    strategy: destination['strategy'] === 'failover' ? 'failover' : 'all',
    isStandard: objectAt(destination, 'signing')['standardWebhooks'] === true,
    batch: draftBatchOf(destination),
    labels: pairs(labels, '='),
    rest: destination,
  }
}

function draftBatchOf(destination: Destination): DraftBatch {
  const batch = objectAt(destination, 'batch')
  return {
    isOn: 'batch' in destination,
    maxMessages: textAt(batch, 'maxMessages'),
    maxBytes: textAt(batch, 'maxBytes'),
    maxWait: textAt(batch, 'maxWait'),
    format: batch['format'] === 'ndjson' ? 'ndjson' : 'json',
  }
}

/** Returns the destination that a form describes. Fields that are empty are left out. */
export function destinationOf(draft: Draft): Destination {
  const { rest } = draft
  const signing = {
    ...without(objectAt(rest, 'signing'), ['standardWebhooks']),
    ...(draft.isStandard ? { standardWebhooks: true } : {}),
  }
  const rateLimit =
    draft.perSecond.trim() === ''
      ? {}
      : { ...objectAt(rest, 'rateLimit'), perSecond: numberOf(draft.perSecond) }
  const labels = Object.fromEntries(lines(draft.labels).map((line) => pairOf(line, '=')))
  const own = {
    ...rest,
    ...ruleOf(draft),
    id: draft.id.trim(),
    name: textOf(draft.name),
    state: draft.state === 'on' && rest.state === undefined ? undefined : draft.state,
    sources: words(draft.sources),
    hooks: draft.hooks.map(hookOf),
    signing: ifAny(signing),
    rateLimit: ifAny(rateLimit),
    labels: ifAny(labels),
    maxInFlight: draft.maxInFlight.trim() === '' ? undefined : numberOf(draft.maxInFlight),
    timeout: textOf(draft.timeout),
    autoPause: textOf(draft.autoPause),
    strategy: draft.strategy === 'all' && rest['strategy'] === undefined ? undefined : draft.strategy,
    batch: batchOf(draft),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only fields without a value were left out
  return given(own) as Destination
}

/** With what a destination decides about messages. `mappings` is a text as long as it is no JSON. */
export type Rule = {
  readonly filter: Record<string, unknown> | undefined
  readonly mappings: unknown
}

/** Returns the filter and the mappings that a form describes. */
export function ruleOf(draft: Draft): Rule {
  const before = objectAt(draft.rest, 'filter')
  const [types, events] = [words(draft.types), lines(draft.events)]
  const filter = given({
    ...without(before, ['types', 'events', 'condition', 'sample']),
    types: types.length === 0 ? undefined : types,
    events: events.length === 0 ? undefined : events,
    condition: textOf(draft.condition),
    sample:
      draft.sample.trim() === ''
        ? undefined
        : { ...objectAt(before, 'sample'), percent: numberOf(draft.sample) },
  })
  const text = textOf(draft.mappings)
  // What is no JSON is passed on, and the server says that it is no list.
  const mappings = text === undefined ? undefined : (readJson(text) ?? text)
  return { filter: ifAny(filter), mappings }
}

function batchOf({
  batch: { isOn, maxMessages, maxBytes, maxWait, format },
  rest,
}: Draft): object | undefined {
  if (!isOn) return undefined
  const before = objectAt(rest, 'batch')
  return given({
    maxMessages: maxMessages.trim() === '' ? undefined : numberOf(maxMessages),
    maxBytes: maxBytes.trim() === '' ? undefined : numberOf(maxBytes),
    maxWait: textOf(maxWait),
    format: format === 'json' && before['format'] === undefined ? undefined : format,
  })
}
