import { isJsonObject, type JsonObject } from '../conditions/json-value.ts'
import { findExcess } from '../message/depth-and-keys.ts'
import { parseJson } from '../message/json/json.ts'
import { MappingFault, type Steps } from './fault.ts'
import { mappingLimits } from './limits.ts'
import { type Make, type Parts, type Place, put } from './part.ts'
import { stepsOf, valueAt } from './path.ts'
import { fillTemplate, partsOf, type TemplatePart, textOf } from './template.ts'

// The directives of Segment's mapping-kit, each as Segment documents it and as its tests show it.

/** Reads the value of a directive. */
type Read = (parts: Parts, value: unknown, place: Place) => Make

export const directives: ReadonlyMap<string, Read> = new Map<string, Read>([
  ['@path', readPath],
  ['@template', readTemplate],
  ['@literal', (parts, value, place) => parts.part(value, place)],
  ['@if', readIf],
  ['@case', readCase],
  ['@replace', readReplace],
  ['@merge', readMerge],
  ['@flatten', readFlatten],
  ['@json', readJson],
  ['@arrayPath', readArrayPath],
  ['@excludeWhenNull', readExcludeWhenNull],
])

/** Returns the value of a directive that has fields. */
function fieldsOf(value: unknown, place: Place, example: string): JsonObject {
  if (isJsonObject(value) && !Object.keys(value).some((name) => name.startsWith('@'))) return value
  throw new MappingFault(place, 'has no fields', `write an object such as ${example}`)
}

function readPath(parts: Parts, value: unknown, place: Place): Make {
  if (typeof value === 'string') {
    const path = stepsOf(value)
    return (payload, steps) => {
      steps.take(1 + path.length)
      return valueAt(payload, path)
    }
  }
  const dynamic = textPart(parts, value, place)
  return (payload, steps) => {
    const text = dynamic(payload, steps)
    return text === undefined ? undefined : valueAt(payload, stepsOf(text))
  }
}

function readTemplate(parts: Parts, value: unknown, place: Place): Make {
  if (typeof value === 'string') {
    const pieces = partsOf(value)
    return (payload, steps) => filledIn(pieces, payload, steps)
  }
  const dynamic = textPart(parts, value, place)
  return (payload, steps) => {
    const template = dynamic(payload, steps)
    return template === undefined ? undefined : filledIn(partsOf(template), payload, steps)
  }
}

/** Each value is counted before the next one is added, because a template may name a long one many times. */
function filledIn(pieces: readonly TemplatePart[], payload: unknown, steps: Steps): string {
  steps.take(1)
  return fillTemplate(pieces, payload, (value) => {
    const text = textOf(value)
    steps.take(1 + text.length)
    return text
  })
}

/** Reads a directive that makes a text. If it makes none, or too long a one, there is no value. */
function textPart(
  parts: Parts,
  value: unknown,
  place: Place,
): (payload: unknown, steps: Steps) => string | undefined {
  const isDirective = isJsonObject(value) && Object.keys(value).some((name) => name.startsWith('@'))
  if (!isDirective)
    throw new MappingFault(place, 'is neither text nor a directive', 'write text such as $.properties.total')
  const make = parts.part(value, place)
  return (payload, steps) => {
    const text = make(payload, steps)
    if (typeof text !== 'string' || text.length > mappingLimits.dynamicCharacters) return undefined
    steps.take(text.length)
    return text
  }
}

function readIf(parts: Parts, value: unknown, place: Place): Make {
  const fields = fieldsOf(value, place, '{ "exists": { "@path": "$.userId" }, "then": 1 }')
  const asks = fields['exists'] === undefined ? 'blank' : 'exists'
  if (fields[asks] === undefined)
    throw new MappingFault(place, 'has neither exists nor blank', 'add one of the two')
  const asked = parts.part(fields[asks], [...place, asks])
  const then = fields['then'] === undefined ? nothing : parts.part(fields['then'], [...place, 'then'])
  // As in mapping-kit, an `else` of false, 0, '' or null stands for none.
  const isElse = isGiven(fields['else'])
  const otherwise = isElse ? parts.part(fields['else'], [...place, 'else']) : nothing
  return (payload, steps) => {
    const found = asked(payload, steps)
    const isThere = found !== undefined && found !== null && (asks === 'exists' || !isBlank(found))
    return (isThere ? then : otherwise)(payload, steps)
  }
}

/** As in mapping-kit, 0, false and an empty list are blank too. */
function isBlank(value: unknown): boolean {
  return value === '' || value === 0 || value === false || (Array.isArray(value) && value.length === 0)
}

const nothing: Make = () => undefined

function readCase(parts: Parts, value: unknown, place: Place): Make {
  const fields = fieldsOf(value, place, '{ "operator": "lower", "value": { "@path": "$.event" } }')
  const { operator } = fields
  if (operator !== 'lower' && operator !== 'upper')
    throw new MappingFault([...place, 'operator'], 'is neither lower nor upper', 'write one of the two')
  const make = valuePart(parts, fields, place)
  return (payload, steps) => {
    const found = make(payload, steps)
    if (typeof found !== 'string') return found
    steps.take(found.length)
    return operator === 'lower' ? found.toLowerCase() : found.toUpperCase()
  }
}

function isGiven(value: unknown): boolean {
  return Boolean(value)
}

/** Reads the field `value`. As in mapping-kit, a value of false, 0, '' or null stands for none. */
function valuePart(parts: Parts, fields: JsonObject, place: Place): Make {
  return isGiven(fields['value']) ? parts.part(fields['value'], [...place, 'value']) : nothing
}

function readReplace(parts: Parts, value: unknown, place: Place): Make {
  const fields = fieldsOf(
    value,
    place,
    '{ "pattern": "-", "replacement": "", "value": { "@path": "$.event" } }',
  )
  const flags = `${flagOf(fields, 'global', place, true) ? 'g' : ''}${flagOf(fields, 'ignorecase', place, false) ? 'i' : ''}`
  const first = replacement(fields, ['pattern', 'replacement'], place, flags)
  if (first === undefined)
    throw new MappingFault([...place, 'pattern'], 'is missing', 'write the text to be replaced')
  const second = replacement(fields, ['pattern2', 'replacement2'], place, flags)
  const make = valuePart(parts, fields, place)
  const hasValue = make !== nothing
  return (payload, steps) => {
    if (!hasValue) return undefined
    const found = make(payload, steps)
    const isPlain = typeof found === 'string' || typeof found === 'number' || typeof found === 'boolean'
    const text = isPlain ? String(found) : ''
    steps.take(text.length)
    const replaced = first(text, steps)
    if (second === undefined) return replaced
    steps.take(replaced.length)
    return second(replaced, steps)
  }
}

function flagOf(fields: JsonObject, name: string, place: Place, otherwise: boolean): boolean {
  const flag = fields[name] ?? otherwise
  if (typeof flag === 'boolean') return flag
  throw new MappingFault([...place, name], 'is neither true nor false', 'write one of the two')
}

function replacement(
  fields: JsonObject,
  [patternName, replacementName]: readonly [string, string],
  place: Place,
  flags: string,
): ((text: string, steps: Steps) => string) | undefined {
  const pattern = shortText(fields, patternName, place)
  const by = shortText(fields, replacementName, place)
  if (pattern === '') return undefined
  const sought = new RegExp(pattern.replaceAll(/[^A-Za-z0-9_]/gu, escapedCharacter), `${flags}u`)
  return (text, steps) =>
    text.replace(sought, () => {
      steps.take(1 + by.length)
      return by
    })
}

/** Patterns are plain text, so each character that could mean something is escaped by its code point. */
function escapedCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

function shortText(fields: JsonObject, name: string, place: Place): string {
  const text = fields[name] ?? ''
  if (typeof text === 'string' && text.length <= mappingLimits.replaceCharacters) return text
  const most = mappingLimits.replaceCharacters
  throw new MappingFault([...place, name], `is no text of at most ${most} characters`, 'write a shorter text')
}

function readMerge(parts: Parts, value: unknown, place: Place): Make {
  const fields = fieldsOf(value, place, '{ "objects": [{ "@path": "$.traits" }], "direction": "right" }')
  const { objects, direction } = fields
  if (direction !== 'left' && direction !== 'right')
    throw new MappingFault([...place, 'direction'], 'is neither left nor right', 'write one of the two')
  if (!Array.isArray(objects)) throw new MappingFault([...place, 'objects'], 'is no list', 'write a list')
  const makes = objects.map((object: unknown, index) => parts.part(object, [...place, 'objects', index]))
  if (direction === 'left') makes.reverse()
  return (payload, steps) => {
    const merged: Record<string, unknown> = {}
    for (const make of makes) {
      const object = make(payload, steps)
      if (!isJsonObject(object)) continue
      for (const [name, member] of Object.entries(object)) {
        steps.take(1)
        put(merged, name, member)
      }
    }
    return merged
  }
}

function readFlatten(parts: Parts, value: unknown, place: Place): Make {
  const fields = fieldsOf(value, place, '{ "separator": "_", "value": { "@path": "$.properties" } }')
  const { separator } = fields
  if (typeof separator !== 'string' || separator === '' || separator.length > 10)
    throw new MappingFault(
      [...place, 'separator'],
      'is no text of 1 to 10 characters',
      'write one such as "_"',
    )
  const isListKept = flagOf(fields, 'omitArrays', place, false)
  if (fields['value'] === undefined)
    throw new MappingFault([...place, 'value'], 'is missing', 'write what is to be flattened')
  const make = parts.part(fields['value'], [...place, 'value'])
  return (payload, steps) => {
    const flat: Record<string, unknown> = {}
    const add = (item: unknown, name: string): void => {
      steps.take(1 + name.length)
      if (isJsonObject(item) || (Array.isArray(item) && !isListKept))
        for (const [key, member] of Object.entries(item))
          add(member, name === '' ? key : name + separator + key)
      else put(flat, name, item)
    }
    add(make(payload, steps), '')
    return flat
  }
}

function readJson(parts: Parts, value: unknown, place: Place): Make {
  const fields = fieldsOf(value, place, '{ "mode": "encode", "value": { "@path": "$.properties" } }')
  const { mode } = fields
  if (mode !== 'encode' && mode !== 'decode')
    throw new MappingFault([...place, 'mode'], 'is neither encode nor decode', 'write one of the two')
  if (!isGiven(fields['value']))
    throw new MappingFault([...place, 'value'], 'is missing', `write what is to be ${mode}d`)
  const make = parts.part(fields['value'], [...place, 'value'])
  return (payload, steps) => {
    const found = make(payload, steps)
    if (mode === 'decode') return typeof found === 'string' ? decoded(found, place, steps) : found
    takeAll(found, steps)
    const text = JSON.stringify(found)
    if (text !== undefined) steps.take(text.length)
    return text
  }
}

/** What is deeper than a message could exhaust the stack when it is written. */
const decodedLimits = { maxDepth: mappingLimits.decodedDepth, maxKeys: Infinity }

function decoded(text: string, place: Place, steps: Steps): unknown {
  steps.take(text.length)
  const value = parsed(text)
  if (typeof value === 'object' && value !== null && findExcess(text, value, decodedLimits) !== undefined)
    throw new MappingFault(
      place,
      `decodes more than ${mappingLimits.decodedDepth} levels`,
      'give the mapping a condition, or leave the text as it is',
    )
  return value
}

/** Returns the value of a JSON text, or any other text as it is. */
function parsed(text: string): unknown {
  const read = parseJson(text)
  return read.ok ? read.value : text
}

/** Takes a step for each value and each character that a value has when it is written. */
export function takeAll(value: unknown, steps: Steps): void {
  if (typeof value === 'string') steps.take(1 + value.length)
  else if (Array.isArray(value)) {
    steps.take(1)
    for (const item of value) takeAll(item, steps)
  } else if (isJsonObject(value)) {
    steps.take(1)
    for (const name in value) {
      if (!Object.hasOwn(value, name)) continue
      steps.take(name.length)
      takeAll(value[name], steps)
    }
  } else steps.take(1)
}

function readArrayPath(parts: Parts, value: unknown, place: Place): Make {
  if (!Array.isArray(value) || value.length === 0 || value.length > 2)
    throw new MappingFault(place, 'is no list of a path and a shape', 'write ["$.properties.products", {}]')
  const [path, shape]: unknown[] = value
  const root =
    typeof path === 'string' ? readPath(parts, path, [...place, 0]) : parts.part(path, [...place, 0])
  if (shape !== undefined && shape !== null && !isJsonObject(shape))
    throw new MappingFault([...place, 1], 'is no object', 'write the shape of an item')
  const isShaped = isJsonObject(shape) && Object.keys(shape).length > 0
  const item = isShaped ? parts.part(shape, [...place, 1]) : undefined
  return (payload, steps) => {
    const found = root(payload, steps)
    if (item === undefined || typeof found !== 'object' || found === null) return found
    const items: readonly unknown[] = Array.isArray(found) ? found : [found]
    return items.map((one) => item(one, steps))
  }
}

function readExcludeWhenNull(parts: Parts, value: unknown, place: Place): Make {
  const make = parts.part(value, place)
  return (payload, steps) => {
    const found = make(payload, steps)
    return found === null ? undefined : withoutNulls(found, steps)
  }
}

function withoutNulls(value: unknown, steps: Steps): unknown {
  if (!isJsonObject(value)) return value
  const kept: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    steps.take(1)
    if (member !== null) put(kept, name, withoutNulls(member, steps))
  }
  return kept
}
