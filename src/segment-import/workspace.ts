import { isRecord, isString, listOf, recordOf } from '../catalog/plain-data.ts'

/** An object of Segment's Public API, not checked yet. */
export type Item = Readonly<Record<string, unknown>>

/** The lists of the Public API that are read, with the name of one object of each. */
const lists = {
  sources: 'source',
  destinations: 'destination',
  subscriptions: 'subscription',
  filters: 'filter',
} as const
type List = keyof typeof lists
const listNames: readonly List[] = ['sources', 'destinations', 'subscriptions', 'filters']

/** What answers of the Public API say about a workspace. */
export type Workspace = Readonly<Record<List, readonly Item[]>> & {
  /** The lists that any of the answers has, even if it is empty. */
  readonly known: ReadonlySet<List>
  /** The lists of which an answer names a next page that isn't there. */
  readonly unfinished: ReadonlySet<List>
}

/**
 * Reads answers of the Public API (https://docs.segmentapis.com): `{ data: { sources: [...] } }`, one with
 * `destinations`, `subscriptions` or `filters`, one with a single object, or one object with several lists.
 * Of two objects with the same id, the later one counts.
 */
export function workspaceOf(answers: readonly unknown[]): Workspace {
  const found = new Map(listNames.map((list) => [list, new Map<string, Item>()] as const))
  const known = new Set<List>()
  const pages = new Map<string, List>()
  const read = new Set<string>()
  for (const data of answers.map(dataOf)) {
    for (const list of listNames) {
      const items = itemsOf(data, list)
      if (items === undefined) continue
      known.add(list)
      for (const item of items) found.get(list)?.set(textOf(item, 'id'), item)
      const { current, next } = recordOf(data['pagination'])
      if (isString(current)) read.add(`${list} ${current}`)
      if (isString(next) && next !== '') pages.set(`${list} ${next}`, list)
    }
  }
  const all = (list: List): readonly Item[] => [...(found.get(list)?.values() ?? [])]
  const unfinished = [...pages].flatMap(([page, list]) => (read.has(page) ? [] : [list]))
  return {
    sources: all('sources'),
    destinations: all('destinations'),
    subscriptions: all('subscriptions'),
    filters: all('filters'),
    known,
    unfinished: new Set(unfinished),
  }
}

/** Answers have their objects in `data`, and some programs keep the whole answer in a `data` of their own. */
function dataOf(answer: unknown): Item {
  let data = recordOf(answer)
  while (isRecord(data['data'])) data = data['data']
  return data
}

function itemsOf(data: Item, list: List): readonly Item[] | undefined {
  const one = data[lists[list]]
  if (isRecord(one)) return [one]
  return data[list] === undefined ? undefined : listOf(data[list]).filter(isRecord)
}

/** Returns a text of an object, or '' if it has none. */
export function textOf(item: Item, key: string): string {
  const value = item[key]
  return isString(value) ? value : ''
}

/** Returns the name of an object for people. */
export function nameOf(item: Item): string {
  return textOf(item, 'name') || textOf(recordOf(item['metadata']), 'name') || textOf(item, 'id')
}
