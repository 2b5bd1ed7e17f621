import { stepsOf, valueAt } from './path.ts'

/** A part of a template: text, or the path of a value. */
export type TemplatePart = string | readonly string[]

const placeholder = /\{\{\{([^}]+)\}\}\}|\{\{([^}]+)\}\}/g

/**
 * Returns the parts of a template. `{{properties.name}}` and `{{{properties.name}}}` mean the same: nothing
 * is escaped, as in mapping-kit.
 */
export function partsOf(template: string): readonly TemplatePart[] {
  const parts: TemplatePart[] = []
  let at = 0
  for (const found of template.matchAll(placeholder)) {
    if (found.index > at) parts.push(template.slice(at, found.index))
    parts.push(stepsOf((found[1] ?? found[2] ?? '').trim()))
    at = found.index + found[0].length
  }
  if (at < template.length) parts.push(template.slice(at))
  return parts
}

/** Fills in a template. What a value looks like is up to `write`. */
export function fillTemplate(
  parts: readonly TemplatePart[],
  payload: unknown,
  write: (value: unknown) => string,
): string {
  let text = ''
  for (const part of parts) text += typeof part === 'string' ? part : write(valueAt(payload, part))
  return text
}

/**
 * Returns a value as text within a template. Nothing is written for null and for what is absent. Lists of
 * plain values are written with commas. Objects are written as JSON, where mapping-kit has no use for them.
 */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object' || item === null))
    return value.map(textOf).join(',')
  return JSON.stringify(value)
}
