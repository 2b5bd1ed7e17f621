import { labelKeyPattern, labelValuePattern } from '../catalog/labels.ts'
import { isString, listOf, recordOf } from '../catalog/plain-data.ts'
import type { Entry, Ids } from './entries.ts'
import type { Note } from './note.ts'
import { type Item, nameOf, textOf } from './workspace.ts'

const labelKey = new RegExp(labelKeyPattern)
const labelValue = new RegExp(labelValuePattern)

/** Makes a source of one at Segment. It has the same write keys, so clients need only another host. */
export function sourceOf(item: Item, ids: Ids): Entry {
  const name = nameOf(item)
  const id = ids.of(textOf(item, 'slug') || name, textOf(item, 'id'))
  const about = `source ${JSON.stringify(name)}`
  const metadata = recordOf(item['metadata'])
  const isOfAudiences = /^(?:personas|engage|unify)/i.test(textOf(metadata, 'slug'))
  const writeKeys = listOf(item['writeKeys']).filter(isString)
  const labels = labelsOf(item)
  return {
    definition: {
      id,
      ...(name !== id && { name: name.slice(0, 200) }),
      ...(item['enabled'] === false && { enabled: false }),
      ...(isOfAudiences ? { kind: 'audiences' } : writeKeys.length > 0 && { writeKeys }),
      ...(Object.keys(labels.kept).length > 0 && { labels: labels.kept }),
    },
    about,
    variables: new Map(),
    notes: [
      ...notesOn(metadata, { about, isOfAudiences, hasKeys: writeKeys.length > 0 }),
      ...labels.others.map((label): Note => {
        const problem = `its label ${JSON.stringify(label)} is spelled in a way that labels can't be`
        return { kind: 'left out', about, problem, way: 'label it otherwise (docs/catalog.md)' }
      }),
    ],
  }
}

function notesOn(
  metadata: Item,
  { about, isOfAudiences, hasKeys }: { about: string; isOfAudiences: boolean; hasKeys: boolean },
): readonly Note[] {
  if (isOfAudiences) {
    const problem = 'its audiences and computed traits are made at Segment'
    const way = 'give it serverKeys, and send changes of yours (docs/producing-audience-changes.md)'
    return [{ kind: 'to do', about, problem, way }]
  }
  if (metadata['isCloudEventSource'] === true) {
    const problem = `Segment fetches its messages from ${nameOf(metadata) || 'another service'}`
    return [
      { kind: 'to do', about, problem, way: 'send them to the gateway or to Kafka by a program of yours' },
    ]
  }
  if (hasKeys) return []
  const problem =
    'the file has none of its write keys, which the Public API gives only to tokens of a source admin'
  return [{ kind: 'to do', about, problem, way: 'write them into writeKeys' }]
}

/** `others`: labels that can't be labels of the catalog. */
function labelsOf(item: Item): { kept: Readonly<Record<string, string>>; others: readonly string[] } {
  const kept: Record<string, string> = {}
  const others: string[] = []
  for (const label of listOf(item['labels']).map(recordOf)) {
    const key = textOf(label, 'key').toLowerCase()
    const value = textOf(label, 'value')
    if (labelKey.test(key) && labelValue.test(value)) kept[key] = value
    else others.push(`${key}=${value}`)
  }
  return { kept, others }
}
