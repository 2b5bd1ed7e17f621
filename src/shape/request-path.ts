import { MappingFault } from './fault.ts'
import { fillTemplate, partsOf, type TemplatePart } from './template.ts'

/** The template of a path that was read. */
export type RequestPath = readonly TemplatePart[]

/** The most characters of a path. Servers have such limits on the whole URL. */
const mostCharacters = 2_000

/**
 * Reads the template of a path, such as `/users/{{userId}}`. It is added to the path of the URL, so it can't
 * lead to another server, nor above the URL's own path.
 */
export function readPath(path: string): RequestPath {
  const parts = partsOf(path)
  const plain = parts.map((part) => (typeof part === 'string' ? part : 'x')).join('')
  if (!/^\/[!$%&'()*+,./0-9:;=?@A-Z_a-z~-]*$/.test(plain) || /%(?![0-9A-Fa-f]{2})/.test(plain))
    throw new MappingFault(
      ['path'],
      'is no path',
      'begin with /, and percent-encode what URLs do not have; {{userId}} stands for a value',
    )
  if (path.length > mostCharacters)
    throw new MappingFault(['path'], `is longer than ${mostCharacters} characters`, 'write a shorter one')
  if (hasDotSegment(plain))
    throw new MappingFault(['path'], 'has a segment . or ..', 'write the path without it')
  return parts
}

/**
 * Fills in a path. Each value becomes a part of one segment, whatever it contains. Ends with the first value
 * that makes it too long: a path may name a long value hundreds of times.
 */
export function fillPath(parts: RequestPath, payload: unknown): string {
  let left = mostCharacters
  const path = fillTemplate(parts, payload, (value) => {
    const text = encoded(value)
    left -= text.length
    if (left < 0) throw unusable()
    return text
  })
  if (hasDotSegment(path) || path.length > mostCharacters) throw unusable()
  return path
}

function unusable(): MappingFault {
  return new MappingFault(
    ['path'],
    'gets a value that no path can have',
    'use a value without dots, or shorter',
  )
}

function encoded(value: unknown): string {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  const text = isPlain ? String(value) : ''
  if (text === '' || text.length > mostCharacters || !text.isWellFormed())
    throw new MappingFault(
      ['path'],
      'has no usable text for one of its values',
      'use short values that each message has, or give the mapping a condition',
    )
  return encodeURIComponent(text)
}

/**
 * Returns true if the path has a segment by which a server may go up. Many servers decode a path before they
 * take it apart, so `%2e` counts as a dot, and `%2f` and `%5c` end a segment.
 */
function hasDotSegment(path: string): boolean {
  return path
    .replace(/\?.*$/, '')
    .split(/\/|%2f|%5c/i)
    .some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
}
