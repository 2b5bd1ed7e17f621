import { isJsonObject } from '../conditions/json-value.ts'
import { MappingFault } from './fault.ts'

/**
 * Writes an object as a form (`application/x-www-form-urlencoded`), in the order of its members. Lists and
 * objects are written as JSON, and null as an empty value.
 */
export function formOf(value: unknown): string {
  if (!isJsonObject(value))
    throw new MappingFault(['body'], 'makes no object, and a form needs one', 'map to an object')
  const form = new URLSearchParams()
  for (const [name, member] of Object.entries(value))
    if (member !== undefined) form.append(name, textOf(member))
  return form.toString()
}

function textOf(value: unknown): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
