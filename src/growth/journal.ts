import type { Change, Layout } from './plan.ts'
import { isCount } from '../message/json/json.ts'

/**
 * The progress of a growth of the installation (`sluice topics grow`). It is stored as a record of the topic
 * `backfills`, under a key that no mark has. Compaction keeps the last such record.
 *
 * - `copying`: the topics that only Sluice writes are being copied to new topics. The old topics are
 *   unchanged.
 * - `switching`: from here on, the new layout is in force, but steps remain. If the command stops, its next
 *   run does them.
 * - `grown`: the new layout is complete.
 * - `abandoned`: the old layout is in force.
 */
export type Growth = Change & {
  readonly state: 'copying' | 'switching' | 'grown' | 'abandoned'
  readonly groupId: string
  /**
   * The digest of the copied topics' contents and of the group's commits for these topics, taken when the
   * growth begins. Neither the contents nor the commits may change while the growth runs.
   */
  readonly digest: string
  /**
   * The topics whose records are copied in the order of the records' times. Each entry is a topic's name
   * without its beginning, which depends on the layout.
   */
  readonly waiting: readonly string[]
  readonly done: readonly GrowthStep[]
  /**
   * The offset that is committed for the group in each partition of the new `memberships`. The list is empty
   * until these offsets are known.
   */
  readonly bounds: readonly number[]
}

/**
 * A step of a growth of the installation. In a step `waiting/…`, the text after the slash is an entry of
 * `waiting` in `Growth`.
 */
export type GrowthStep =
  | 'topics'
  | 'states'
  | 'open-states'
  | `waiting/${string}`
  | 'stamps'
  | 'commits'
  | 'partitions'
  | 'marks'

const key = '[null,"grow"]'

export function encodeGrowth(growth: Growth): { key: Buffer; value: Buffer } {
  return { key: Buffer.from(key), value: Buffer.from(JSON.stringify({ version: 1, ...growth })) }
}

export type DecodedGrowth =
  | { readonly ok: true; readonly growth: Growth }
  /** The record is about a growth, but in a form that this version of Sluice doesn't know. */
  | { readonly ok: false }

/**
 * Decodes a record about a growth of the installation. Returns `undefined` for a record about anything else.
 * Never throws.
 */
export function decodeGrowth(recordKey: Buffer, value: Buffer | null): DecodedGrowth | undefined {
  if (recordKey.toString() !== key || value === null) return undefined
  const fields = parse(value)
  if (fields?.['version'] !== 1) return { ok: false }
  const { state, from, to, groupId, digest, waiting, done, bounds } = fields
  if (state !== 'copying' && state !== 'switching' && state !== 'grown' && state !== 'abandoned')
    return { ok: false }
  if (!isLayout(from) || !isLayout(to)) return { ok: false }
  if (typeof groupId !== 'string' || typeof digest !== 'string') return { ok: false }
  if (!isListOf(waiting, isText) || !isListOf(done, isStep) || !isListOf(bounds, isCount))
    return { ok: false }
  return { ok: true, growth: { state, from, to, groupId, digest, waiting, done, bounds } }
}

/** Returns the layout in force. Returns `undefined` if `sluice topics grow` was never run. */
export function layoutOf(growth: Growth | undefined): Layout | undefined {
  switch (growth?.state) {
    case undefined:
      return undefined
    case 'copying':
    case 'abandoned':
      return growth.from
    case 'switching':
    case 'grown':
      return growth.to
  }
}

/**
 * Returns the generation of the topics that the next growth creates. Each growth has a new generation, even
 * if the previous growth was abandoned. So no two growths create topics with the same names.
 */
export function nextGeneration(growth: Growth | undefined, current: number): number {
  return Math.max(current, growth?.from.generation ?? 0, growth?.to.generation ?? 0) + 1
}

/**
 * Returns a text that says why no role or command may run with the configured layout, and what to do. Returns
 * `undefined` if roles and commands may run.
 */
export function faultOf(growth: Growth | undefined, configured: Layout): string | undefined {
  switch (growth?.state) {
    case 'copying':
    case 'switching':
      return underWay(growth)
    case undefined:
    case 'abandoned':
    case 'grown':
      return misfit(layoutOf(growth), configured)
  }
}

/**
 * Returns a text about a growth that is under way: what it does, and how to complete it. Commands that only
 * write records show this text. For them, the configured layout doesn't matter.
 */
export function underWay({ state, from, to }: Growth): string {
  const again = `run \`sluice topics grow ${to.partitions}\` again until it ends: it continues where it stopped`
  const back =
    state === 'copying' ? `, or \`sluice topics grow --abandon\` to stay at ${from.partitions}` : ''
  return `This installation is being grown from ${from.partitions} to ${to.partitions} partitions: ${again}${back}.`
}

function misfit(layout: Layout | undefined, configured: Layout): string | undefined {
  if (layout === undefined) {
    return configured.generation === 1
      ? undefined
      : 'No growth of this installation is known: set SLUICE_TOPICS_GENERATION=1.'
  }
  if (layout.partitions === configured.partitions && layout.generation === configured.generation)
    return undefined
  return (
    `This installation has ${layout.partitions} partitions, in generation ${layout.generation} of its topics: ${settingsOf(layout)} ` +
    `(they are ${configured.partitions} and ${configured.generation}).`
  )
}

export function settingsOf({ partitions, generation }: Layout): string {
  return `set SLUICE_TOPICS_PARTITIONS=${partitions} and SLUICE_TOPICS_GENERATION=${generation}`
}

function parse(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function isLayout(value: unknown): value is Layout {
  if (typeof value !== 'object' || value === null) return false
  const { partitions, generation }: { partitions?: unknown; generation?: unknown } = value
  return isCount(partitions) && partitions >= 1 && isCount(generation) && generation >= 1
}

function isListOf<T>(value: unknown, isItem: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(isItem)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

const steps: ReadonlySet<string> = new Set([
  'topics',
  'states',
  'open-states',
  'stamps',
  'commits',
  'partitions',
  'marks',
] satisfies GrowthStep[])

function isStep(value: unknown): value is GrowthStep {
  return isText(value) && (steps.has(value) || value.startsWith('waiting/'))
}
