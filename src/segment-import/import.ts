import { parseCatalogData } from '../catalog/parse.ts'
import { destinationsOf } from './destinations.ts'
import { type Definition, type Entry, Ids } from './entries.ts'
import type { Note } from './note.ts'
import { sourceOf } from './sources.ts'
import { textOf, type Workspace } from './workspace.ts'

/** The catalog of a workspace, without faults. */
export type Imported = {
  readonly catalog: { readonly sources: readonly Definition[]; readonly destinations: readonly Definition[] }
  /** The secrets by the names of their variables. `undefined`: the answers don't have the secret. */
  readonly variables: ReadonlyMap<string, string | undefined>
  readonly notes: readonly Note[]
}

/**
 * Makes the catalog that does what the webhooks of a workspace do. All destinations are off. What has no form
 * in the catalog is left out as a whole, and told: half of a destination might send what it must not send.
 */
export function importWorkspace(workspace: Workspace): Imported {
  const ids = new Ids()
  const sources = new Map(workspace.sources.map((item) => [textOf(item, 'id'), sourceOf(item, ids)]))
  const sourceIds = new Map(
    [...sources].map(([id, { definition }]) => [id, String(definition['id'])] as const),
  )
  const made = destinationsOf(workspace, sourceIds)
  const sound = withoutFaults({ sources: [...sources.values()], destinations: made.entries })
  const entries = [...sound.sources, ...sound.destinations]
  return {
    catalog: {
      sources: sound.sources.map(({ definition }) => definition),
      destinations: sound.destinations.map(({ definition }) => definition),
    },
    variables: new Map(entries.flatMap(({ variables }) => [...variables])),
    notes: [...notesOn(workspace), ...made.notes, ...entries.flatMap(({ notes }) => notes), ...sound.notes],
  }
}

function notesOn({ known, unfinished, destinations }: Workspace): readonly Note[] {
  const pages = [...unfinished].map((list): Note => {
    const way = 'add the answer of the next page (pagination.cursor)'
    return { kind: 'to do', about: `the ${list}`, problem: 'the file has only some of them', way }
  })
  if (known.has('filters') || destinations.length === 0) return pages
  const problem = 'the file has none, so the catalog filters less if the workspace has any'
  const way = 'add the answers of GET /destination/ID/filters'
  return [...pages, { kind: 'to do', about: 'the destination filters', problem, way }]
}

type Entries = { readonly sources: readonly Entry[]; readonly destinations: readonly Entry[] }

/** Leaves out the entries that the rules of the catalog refuse, as often as that makes others faulty. */
function withoutFaults(given: Entries): Entries & { readonly notes: readonly Note[] } {
  const notes: Note[] = []
  let { sources, destinations } = given
  for (;;) {
    const faults = faultsIn({ sources, destinations })
    if (faults.size === 0) return { sources, destinations, notes }
    const isSound = (list: keyof Entries) => (entry: Entry, index: number) => {
      const fault = faults.get(`${list}[${index}]`)
      if (fault !== undefined) notes.push({ kind: 'left out', about: entry.about, ...fault })
      return fault === undefined
    }
    sources = sources.filter(isSound('sources'))
    destinations = destinations.filter(isSound('destinations'))
  }
}

/** Returns the first fault of each entry, by its place such as `destinations[1]`. */
function faultsIn({ sources, destinations }: Entries): ReadonlyMap<string, Pick<Note, 'problem' | 'way'>> {
  const variables = [...sources, ...destinations].flatMap((entry) => [...entry.variables])
  const parsed = parseCatalogData(
    {
      sources: sources.map(({ definition }) => definition),
      destinations: destinations.map(({ definition }) => definition),
    },
    {
      file: 'the workspace',
      version: 'import',
      variables: Object.fromEntries(variables.map(([name, value]) => [name, value ?? unknownSecret])),
    },
  )
  const found = new Map<string, Pick<Note, 'problem' | 'way'>>()
  for (const { path, problem, advice } of parsed.ok ? [] : parsed.faults) {
    const [place, field] = /^(\w+\[\d+\])\.?(.*)$/.exec(path)?.slice(1) ?? []
    if (place === undefined) throw new Error(`an import made a catalog with a fault: ${path} ${problem}`)
    if (!found.has(place)) found.set(place, { problem: `${field ?? ''} ${problem}`.trim(), way: advice })
  }
  return found
}

/** Stands for a secret that is set later. The rules for secrets and headers allow it. */
const unknownSecret = 'x'.repeat(32)
