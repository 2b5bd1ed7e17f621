import { eachMember } from './json/json-walk.ts'

/** The names in `integrations` by which Sluice decides. All other names are those of other products. */
const namesRead: ReadonlySet<string> = new Set(['Webhooks', 'All', 'all'])

/**
 * Returns the members of a message's `integrations` by which Sluice decides. `text` must be a canonical JSON
 * object. An object or a list has the value true, because its content makes no difference. So the cost
 * depends only on the length of the text.
 */
export function readIntegrations(text: string): Readonly<Record<string, unknown>> {
  const read: Record<string, unknown> = {}
  eachMember(text, 1, (start, valueStart, end) => {
    const name = text.slice(start + 1, valueStart - 2)
    if (namesRead.has(name)) read[name] = valueOf(text.slice(valueStart, end))
  })
  return read
}

function valueOf(text: string): unknown {
  return text.startsWith('{') || text.startsWith('[') ? true : JSON.parse(text)
}
