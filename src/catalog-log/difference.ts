import isEqual from 'fast-deep-equal'
import type { Path } from '../catalog/fault.ts'
import { isRecord, listOf, recordOf } from '../catalog/plain-data.ts'
import { keyOf, type ObjectName } from './names.ts'

type Definition = Readonly<Record<string, unknown>>

/** An object before and after a change. `undefined`: it doesn't exist. */
export type ObjectDifference = {
  readonly name: ObjectName
  readonly before: Definition | undefined
  readonly after: Definition | undefined
}

/** A field that differs. A value that is `undefined` isn't there. */
export type FieldDifference = {
  /** The path of the field, such as `hooks[0].url`. */
  readonly field: string
  readonly before: unknown
  readonly after: unknown
}

/** What a change has made of an object. */
export type Made = 'created' | 'changed' | 'removed'

export function madeOf({ before, after }: Omit<ObjectDifference, 'name'>): Made {
  return before === undefined ? 'created' : after === undefined ? 'removed' : 'changed'
}

const marks: Readonly<Record<Made, string>> = { created: '+', changed: '~', removed: '-' }

/** Describes what was made of an object in a line such as `+ destination/crm`. */
export function lineOf({ name, what }: { readonly name: ObjectName; readonly what: Made }): string {
  return `${marks[what]} ${keyOf(name)}`
}

/**
 * Compares two definitions field by field. Lists are compared position by position if they hold records, and
 * otherwise as a whole.
 */
export function fieldDifferences(
  before: Definition | undefined,
  after: Definition | undefined,
): readonly FieldDifference[] {
  const found: FieldDifference[] = []
  compare(before ?? {}, after ?? {}, [], found)
  return found
}

function compare(before: unknown, after: unknown, path: Path, found: FieldDifference[]): void {
  if (isEqual(before, after)) return
  if (isRecord(before) && isRecord(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    for (const key of keys) compare(recordOf(before)[key], recordOf(after)[key], [...path, key], found)
    return
  }
  if (isListOfRecords(before) && isListOfRecords(after)) {
    const [old, now] = [listOf(before), listOf(after)]
    for (let index = 0; index < Math.max(old.length, now.length); index++)
      compare(old[index], now[index], [...path, index], found)
    return
  }
  found.push({ field: fieldOf(path), before, after })
}

function isListOfRecords(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && listOf(value).every(isRecord)
}

/** Unlike in a fault, a key is no mistake here, so it is written out. */
function fieldOf(path: Path): string {
  return path
    .map((step) => (typeof step === 'string' && !/^[\w$-]+$/.test(step) ? JSON.stringify(step) : step))
    .reduce<string>(
      (text, step) =>
        typeof step === 'number' ? `${text}[${step}]` : text === '' ? step : `${text}.${step}`,
      '',
    )
}
