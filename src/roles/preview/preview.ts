import { Breath } from '../../async/breath.ts'
import type { Pace } from '../../async/pace.ts'
import type { Destination } from '../../catalog/catalog.ts'
import { parseCatalogData } from '../../catalog/parse.ts'
import { MessageView } from '../../conditions/message-view.ts'
import { enter } from '../../message/enter.ts'
import type { Entered } from '../../message/entered.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { judgeOf } from '../../routing/route.ts'
import { chooseMapping, type Outgoing, outgoingOf, saidOfEach } from '../../shape/choice.ts'
import type { Mapping } from '../../shape/definition.ts'
import { isOwnRequest } from '../../shape/shaper.ts'

// What a filter and mappings do with messages, without a destination that has them.

/** A rule that is tried: the fields of a destination with which it decides about messages. */
export type Rule = { readonly filter?: unknown; readonly mappings?: unknown }

/** What a rule does with a message. `refused`: no destination gets the message, because it has a fault. */
export type PreviewResult =
  | 'passes'
  | 'excluded'
  | 'missing_field'
  | 'not_sampled'
  | 'failed'
  | 'mapping_failed'
  | 'refused'

/** `detail` says why, and is null if there is nothing to say. */
export type Previewed = {
  readonly messageId: string | null
  /** The body that is sent without a mapping. Null if the message was refused. */
  readonly message: string | null
  readonly result: PreviewResult
  readonly detail: string | null
  /** The mapping that is for the message, or whose condition can't be evaluated. Null: there is none. */
  readonly mapping: PreviewedMapping | null
  /** The request, if there would be one. */
  readonly request: PreviewedRequest | null
}

/** `place`: its place in the list of mappings, from 0. */
export type PreviewedMapping = { readonly place: number; readonly name: string | null }

/**
 * `path`: what is added to the path of the URL. `isAlone`: true if the message would have a request of its
 * own also if its destination had batches.
 */
export type PreviewedRequest = {
  readonly method: string
  readonly path: string
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly body: string
  readonly isAlone: boolean
}

export type CheckedRule =
  | { ok: true; destination: Destination }
  /** What is wrong, one sentence each. */
  | { ok: false; faults: readonly string[] }

const place = 'destinations[0].'
/** The usual length of a piece of a preview, in milliseconds. */
export const pieceMs = 10

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
  return messages.map((message, offset) => previewOfOne(destination, { ...message, offset }, limits))
}

/** Returns what a rule does with a message. `offset`: its place among the messages that are tried. */
function previewOfOne(
  destination: Destination,
  { value, atMs, offset }: Tried & { readonly offset: number },
  limits: MessageLimits,
): Previewed {
  const entered = enter(value, { topic: 'preview', partition: 0, offset, timestampMs: atMs }, limits)
  if (entered.ok) return previewed(destination, entered.message)
  const detail = `${entered.reason}: ${entered.detail}`
  return { messageId: null, message: null, result: 'refused', detail, mapping: null, request: null }
}

export type PreviewBounds = {
  /** What all previews together may take of the time of the process. */
  readonly pace: Pace
  /** The most milliseconds that the messages may take, without the rests between them. */
  readonly mostMs: number
  /** The most characters of all results. */
  readonly mostCharacters: number
}

/** `after`: how many messages were tried until a bound was reached. */
export type BoundedPreview =
  | { readonly ok: true; readonly results: readonly Previewed[] }
  | { readonly ok: false; readonly bound: 'time' | 'characters'; readonly after: number }

/**
 * Returns what a rule does with each message, as `previewOf`, within bounds: somebody else has written the
 * rule, and others wait for the process. Between two messages, the event loop does what else waits.
 */
export async function boundedPreviewOf(
  destination: Destination,
  messages: readonly Tried[],
  limits: MessageLimits,
  { pace, mostMs, mostCharacters }: PreviewBounds,
): Promise<BoundedPreview> {
  const breath = new Breath(pieceMs, pace)
  const results: Previewed[] = []
  let [tookMs, characters] = [0, 0]
  for (const [offset, message] of messages.entries()) {
    const startedMs = performance.now()
    const result = previewOfOne(destination, { ...message, offset }, limits)
    tookMs += performance.now() - startedMs
    characters += (result.message?.length ?? 0) + (result.request?.body.length ?? 0)
    const after = offset + 1
    if (characters > mostCharacters) return { ok: false, bound: 'characters', after }
    results.push(result)
    if (after === messages.length) break
    if (tookMs > mostMs) return { ok: false, bound: 'time', after }
    await breath.take()
  }
  return { ok: true, results }
}

function previewed(destination: Destination, message: Entered): Previewed {
  const none = { ...shown(message), mapping: null, request: null }
  // The mappings are asked afterwards, so that it can be told which of them is meant.
  const said = judgeOf(message)?.({ ...destination, mappings: undefined })
  if (said === undefined || said.kind === 'passes' || said.kind === 'waits') return sent(destination, message)
  if (said.kind === 'failed') return { ...none, result: 'failed', detail: said.detail }
  const detail = said.detail === '' ? null : said.detail
  switch (said.reason) {
    case 'filtered_by_missing_field':
      return { ...none, result: 'missing_field', detail }
    case 'filtered_by_sample':
      return { ...none, result: 'not_sampled', detail }
    case 'destination_off':
    case 'filtered_by_integrations':
    case 'filtered_by_destination':
      return { ...none, result: 'excluded', detail }
  }
}

function shown({ messageId, body }: Entered): Pick<Previewed, 'messageId' | 'message'> {
  return { messageId, message: body.toString() }
}

function sent({ mappings }: Destination, message: Entered): Previewed {
  const { type, body } = message
  const about = { ...shown(message), mapping: mappingOf(mappings, body) }
  const outgoing = outgoingOf(mappings, { body, isOwed: type === 'delete' })
  switch (outgoing.kind) {
    case 'none':
      return { ...about, result: 'excluded', detail: whyNone(mappings ?? [], body), request: null }
    case 'failed': {
      const result = outgoing.reason === 'filter_failed' ? 'failed' : 'mapping_failed'
      return { ...about, result, detail: outgoing.detail, request: null }
    }
    case 'plain':
    case 'shaped':
      return { ...about, result: 'passes', detail: null, request: requestOf(outgoing, body) }
  }
}

function mappingOf(mappings: Destination['mappings'], body: Buffer): PreviewedMapping | null {
  const choice = mappings && chooseMapping(mappings, new MessageView(body))
  if (mappings === undefined || choice === undefined || choice.kind === 'none') return null
  return { place: mappings.indexOf(choice.mapping), name: choice.mapping.name ?? null }
}

/** Says of each mapping why it isn't for a message. */
function whyNone(mappings: readonly Mapping[], body: Buffer): string {
  const why = saidOfEach(mappings, new MessageView(body)).map((said, index) => {
    const name = mappings[index]?.name ?? `mapping ${index + 1}`
    return said.kind === 'lacks' ? `${name}: ${said.detail}` : `${name}: its condition is not met`
  })
  return `no mapping is for it (${why.join('; ')})`
}

function requestOf(outgoing: Outgoing & { kind: 'plain' | 'shaped' }, body: Buffer): PreviewedRequest {
  if (outgoing.kind === 'plain') {
    const headers = [{ name: 'Content-Type', value: 'application/json' }]
    return { method: 'POST', path: '', headers, body: body.toString(), isAlone: false }
  }
  const { method, path, contentType, headers, body: shaped } = outgoing.shaped
  const flat = ['Content-Type', contentType, ...headers]
  const named = flat.flatMap((name, at) => (at % 2 === 0 ? [{ name, value: flat[at + 1] ?? '' }] : []))
  const isAlone = isOwnRequest(outgoing.shaped)
  return { method, path, headers: named, body: shaped.toString(), isAlone }
}
