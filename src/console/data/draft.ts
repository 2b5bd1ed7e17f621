import type { Destination, Hook } from './types.ts'

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
  readonly perSecond: string
  readonly maxInFlight: string
  readonly autoPause: string
  readonly strategy: 'all' | 'failover'
  readonly isStandard: boolean
  /** `key=value`, one a line. */
  readonly labels: string
  readonly rest: Destination
}

/** `headers` has one `Name: value` a line. */
export type DraftHook = { readonly url: string; readonly id: string; readonly headers: string }

export const noDestination: Destination = { id: '', sources: [], hooks: [{ url: '' }] }

export function draftOf(destination: Destination): Draft {
  const filter = objectAt(destination, 'filter')
  const { sources, hooks, labels = {}, state = 'on', id, name = '' } = destination
  return {
    id,
    name,
    state,
    sources: sources.join(', '),
    hooks: hooks.map((hook) => ({
      url: hook.url,
      id: hook.id ?? '',
      headers: pairs(hook.headers ?? {}, ': '),
    })),
    types: listAt(filter, 'types').join(', '),
    events: listAt(filter, 'events').join('\n'),
    perSecond: textAt(objectAt(destination, 'rateLimit'), 'perSecond'),
    maxInFlight: textAt(destination, 'maxInFlight'),
    autoPause: textAt(destination, 'autoPause'),
    strategy: destination['strategy'] === 'failover' ? 'failover' : 'all',
    isStandard: objectAt(destination, 'signing')['standardWebhooks'] === true,
    labels: pairs(labels, '='),
    rest: destination,
  }
}

/** Returns the destination that a form describes. Fields that are empty are left out. */
export function destinationOf(draft: Draft): Destination {
  const { rest } = draft
  const types = words(draft.types)
  const events = lines(draft.events)
  const filter = {
    ...without(objectAt(rest, 'filter'), ['types', 'events']),
    ...(types.length === 0 ? {} : { types }),
    ...(events.length === 0 ? {} : { events }),
  }
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
    id: draft.id.trim(),
    name: textOf(draft.name),
    state: draft.state === 'on' && rest.state === undefined ? undefined : draft.state,
    sources: words(draft.sources),
    hooks: draft.hooks.map(hookOf),
    filter: ifAny(filter),
    signing: ifAny(signing),
    rateLimit: ifAny(rateLimit),
    labels: ifAny(labels),
    maxInFlight: draft.maxInFlight.trim() === '' ? undefined : numberOf(draft.maxInFlight),
    autoPause: textOf(draft.autoPause),
    strategy: draft.strategy === 'all' && rest['strategy'] === undefined ? undefined : draft.strategy,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only fields without a value were left out
  return Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) as Destination
}

function hookOf({ url, id, headers }: DraftHook): Hook {
  const given = lines(headers).map((line) => pairOf(line, ':'))
  return {
    url: url.trim(),
    ...(id.trim() === '' ? {} : { id: id.trim() }),
    ...(given.length === 0 ? {} : { headers: Object.fromEntries(given) }),
  }
}

function pairOf(line: string, separator: string): readonly [string, string] {
  const at = line.indexOf(separator)
  return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

function pairs(values: Readonly<Record<string, string>>, separator: string): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}${separator}${value}`)
    .join('\n')
}

function words(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '')
}

function lines(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** Returns the number, or the text as it is, which the server then refuses with its reason. */
function numberOf(text: string): number | string {
  const number = Number(text)
  return Number.isNaN(number) ? text : number
}

function textOf(text: string): string | undefined {
  return text.trim() === '' ? undefined : text.trim()
}

function ifAny<T extends object>(value: T): T | undefined {
  return Object.keys(value).length === 0 ? undefined : value
}

function without(
  value: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)))
}

function objectAt(value: object, key: string): Record<string, unknown> {
  const found: unknown = Reflect.get(value, key)
  return typeof found === 'object' && found !== null ? { ...found } : {}
}

function listAt(value: object, key: string): readonly string[] {
  const found: unknown = Reflect.get(value, key)
  return Array.isArray(found) ? found.map(String) : []
}

function textAt(value: object, key: string): string {
  const found: unknown = Reflect.get(value, key)
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}
