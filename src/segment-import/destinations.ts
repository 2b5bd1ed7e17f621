import { recordOf } from '../catalog/plain-data.ts'
import { actionOf, extensibleLogin } from './actions.ts'
import { classicHooks, urlNotes } from './classic.ts'
import { type Definition, type Entry, Ids, Secrets } from './entries.ts'
import { type Filtered, filtersOf } from './filters.ts'
import { LeftOut, type Note } from './note.ts'
import { type Item, nameOf, textOf, type Workspace } from './workspace.ts'

type Kind = 'webhooks' | 'webhooks-actions' | 'extensible' | 'other'

/** The types of destinations that are webhooks, by the ids and slugs of their metadata at Segment. */
const kinds: ReadonlyMap<string, Kind> = new Map([
  ['54521fdc25e721e32a72ef04', 'webhooks'],
  ['webhooks', 'webhooks'],
  ['614a3c7d791c91c41bae7599', 'webhooks-actions'],
  ['actions-webhook', 'webhooks-actions'],
  ['66b1f528d26440823fb27af9', 'extensible'],
  ['actions-webhook-extensible', 'extensible'],
])

function kindOf(item: Item): Kind {
  const metadata = recordOf(item['metadata'])
  return kinds.get(textOf(metadata, 'id')) ?? kinds.get(textOf(metadata, 'slug')) ?? 'other'
}

/** What a destination of the catalog is made of. */
type Part = {
  readonly item: Item
  readonly kind: Kind
  readonly subscription: Item | undefined
  readonly about: string
  readonly name: string
  readonly source: string
  readonly filters: readonly Item[]
}

/** Makes the destinations of a workspace. `sourceIds`: the ids of the catalog by those at Segment. */
export function destinationsOf(
  workspace: Workspace,
  sourceIds: ReadonlyMap<string, string>,
): { readonly entries: readonly Entry[]; readonly notes: readonly Note[] } {
  const ids = new Ids()
  const entries: Entry[] = []
  const notes: Note[] = []
  for (const item of workspace.destinations) {
    const parts = partsOf(item, workspace, sourceIds)
    if (!parts.ok) notes.push(parts.note)
    else
      for (const part of parts.parts) {
        const entry = entryOf(part, ids)
        if ('definition' in entry) entries.push(entry)
        else notes.push(entry)
      }
  }
  return { entries, notes }
}

/** A destination of mappings becomes one for each mapping, because each makes requests of its own. */
function partsOf(
  item: Item,
  { subscriptions, filters }: Workspace,
  sourceIds: ReadonlyMap<string, string>,
): { ok: true; parts: readonly Part[] } | { ok: false; note: Note } {
  const name = nameOf(item)
  const id = textOf(item, 'id')
  const about = `destination ${JSON.stringify(name)}`
  const kind = kindOf(item)
  const refused = (problem: string, way: string) =>
    ({ ok: false, note: { kind: 'left out', about, problem, way } }) as const
  if (kind === 'other') {
    const type = nameOf(recordOf(item['metadata'])) || 'an unknown type'
    const way = 'write mappings to its HTTP API (docs/mappings.md), or leave it at Segment'
    return refused(`it is no webhook, but ${type}`, way)
  }
  const source = sourceIds.get(textOf(item, 'sourceId'))
  if (source === undefined)
    return refused('its source is not in the file', 'add the answer of GET /sources, with all its pages')
  const ofItem = (other: Item) => textOf(other, 'destinationId') === id
  const common = { item, kind, source, filters: filters.filter(ofItem) }
  if (kind === 'webhooks') return { ok: true, parts: [{ ...common, about, name, subscription: undefined }] }
  const own = subscriptions.filter(ofItem)
  if (own.length === 0)
    return refused('the file has no mapping of it', `add the answer of GET /destinations/${id}/subscriptions`)
  const parts = own.map((subscription) => ({
    ...common,
    subscription,
    about: `mapping ${JSON.stringify(nameOf(subscription))} of ${about}`,
    name: own.length === 1 ? name : `${name} ${nameOf(subscription)}`,
  }))
  return { ok: true, parts }
}

/** Makes one destination, or a note why it is left out. */
function entryOf(part: Part, ids: Ids): Entry | Note {
  const { item, about, name, subscription } = part
  const id = ids.of(name, textOf(item, 'id'))
  const secrets = new Secrets(id)
  try {
    const { definition, notes } = definitionOf(part, secrets)
    const isDisabled = item['enabled'] === false || subscription?.['enabled'] === false
    return {
      definition: { id, ...(name !== id && { name: name.slice(0, 200) }), state: 'off', ...definition },
      about,
      variables: secrets.values,
      notes: [...notes, ...secretNotes(secrets, about), ...(isDisabled ? [disabledNote(about)] : [])],
    }
  } catch (error) {
    if (!(error instanceof LeftOut)) throw error
    return { kind: 'left out', about, problem: error.message, way: error.way }
  }
}

function definitionOf(
  part: Part,
  secrets: Secrets,
): { readonly definition: Definition; readonly notes: readonly Note[] } {
  const { item, about, source, subscription } = part
  const settings = recordOf(item['settings'])
  const filtered = filtersOf(part.filters, about)
  const sharedSecret = textOf(settings, 'sharedSecret')
  const made =
    subscription === undefined
      ? classicOf(settings, secrets, filtered)
      : ofMapping(part, { subscription, settings, secrets, filtered })
  const { hooks, ...others } = made.definition
  const { filter } = filtered
  return {
    definition: {
      sources: [source],
      ...(Object.keys(filter).length > 0 && { filter }),
      ...others,
      ...(sharedSecret !== '' && { sharedSecret: secrets.put('SECRET', sharedSecret) }),
      hooks,
    },
    notes: [...filtered.notes, ...made.notes, ...urlNotes(made.hooks, about)],
  }
}

type Made = {
  readonly definition: Definition
  readonly hooks: readonly Definition[]
  readonly notes: readonly Note[]
}

function classicOf(settings: Item, secrets: Secrets, { fields }: Filtered): Made {
  const hooks = classicHooks(settings, secrets)
  return { definition: { ...mappingsOf(fields), hooks }, hooks, notes: [] }
}

function ofMapping(
  { kind, about }: Part,
  {
    subscription,
    settings,
    secrets,
    filtered,
  }: { subscription: Item; settings: Item; secrets: Secrets; filtered: Filtered },
): Made {
  const { hook, mapping, batch, notes } = actionOf(subscription, secrets, about)
  const login = kind === 'extensible' ? extensibleLogin(settings, secrets) : {}
  const headers = { ...recordOf(hook['headers']), ...recordOf(login['headers']) }
  const hooks = [{ ...hook, ...(Object.keys(headers).length > 0 && { headers }) }]
  const mappings = mappingsOf({ ...mapping, ...filtered.fields })
  return { definition: { ...mappings, ...(batch && { batch }), hooks }, hooks, notes }
}

/** A mapping without any field would say nothing. */
function mappingsOf(mapping: Definition): Definition {
  return Object.keys(mapping).length === 0 ? {} : { mappings: [mapping] }
}

function secretNotes({ missing }: Secrets, about: string): readonly Note[] {
  if (missing.length === 0) return []
  const problem = `the file has stars instead of ${missing.join(', ')}`
  return [{ kind: 'to do', about, problem, way: 'copy what Segment shows in its settings' }]
}

function disabledNote(about: string): Note {
  const problem = 'it is disabled at Segment too'
  return { kind: 'to do', about, problem, way: 'leave it off, or remove it' }
}
