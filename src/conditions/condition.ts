import {
  EvaluationError,
  ParseError,
  type ParseResult,
  TypeError as CelTypeError,
} from '@marcbachmann/cel-js'
import { treeFault } from './checked-tree.ts'
import { createEnvironment } from './environment.ts'
import { conditionFields, conditionLimits } from './limits.ts'
import type { MessageView } from './message-view.ts'

/**
 * What a condition says about a message. `lacks`: the condition reads a field that the message lacks, or that
 * has another type, so it doesn't match. `failed`: it can't be said whether the message matches. No detail
 * contains anything of a message.
 */
export type Said =
  | { readonly kind: 'matches' }
  | { readonly kind: 'differs' }
  | { readonly kind: 'lacks'; readonly detail: string }
  | { readonly kind: 'failed'; readonly detail: string }

/** Why a text is no condition. */
export type ConditionFault = { readonly problem: string; readonly advice: string }

/** A condition that was parsed and checked, and that is evaluated for any number of messages. */
export class Condition {
  readonly text: string
  readonly #parsed: ParseResult

  constructor(text: string, checked: ParseResult) {
    this.text = text
    this.#parsed = checked
  }

  /**
   * Says whether a message matches. Never throws. It takes at most as many steps as the condition has nodes,
   * times the size of the message.
   */
  of(message: MessageView): Said {
    const { fields } = message
    // A field that is absent is an error of the library, and most of the cost of an error is its stack.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    try {
      const result: unknown = this.#parsed(fields)
      if (result === true) return matches
      return result === false ? differs : notBoolean
    } catch (error) {
      return saidOf(error, this.text)
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
  }
}

const matches: Said = { kind: 'matches' }
const differs: Said = { kind: 'differs' }
const notBoolean: Said = { kind: 'lacks', detail: 'the result is neither true nor false' }

/** The errors that mean: the message lacks a field of the condition, or a field has another type. */
const lacking: ReadonlySet<string> = new Set([
  'no_such_key',
  'no_such_overload',
  'no_matching_overload',
  'unknown_variable',
  'variable_type_mismatch',
  'field_type_mismatch',
  'list_item_type_mismatch',
  'index_out_of_bounds',
  'invalid_index_type',
  'cannot_index_type',
  'invalid_comprehension_range',
  'invalid_logical_operand',
  'invalid_condition_type',
  'invalid_comparison_type',
])

/** Limit on the characters of a condition that a detail has. */
const mostQuoted = 60

/**
 * The library's own words may have values of the message, and dead letters have many readers. So only the
 * kind of the error is told, and its place in the condition.
 */
function saidOf(error: unknown, condition: string): Said {
  if (!(error instanceof EvaluationError)) {
    const name = error instanceof Error ? error.name : 'an unknown error'
    return { kind: 'failed', detail: name }
  }
  const { code, node, range, summary } = error
  const detail = `${wordsOf(code, summary)}${placeOf(range?.start)}`
  if (!lacking.has(code)) return { kind: 'failed', detail }
  const quoted = node === undefined ? '' : quotedOf(condition.slice(node.range.start, node.range.end))
  return { kind: 'lacks', detail: `${detail}${quoted}` }
}

/** Says what an error is, for people who don't know CEL. */
function wordsOf(code: string, summary: string): string {
  if (code === 'no_such_key') return 'the message has no such field'
  const [, left, operator, right] = overload.exec(summary) ?? []
  const [one, other] = [typeWords.get(left ?? ''), typeWords.get(right ?? '')]
  if (one !== undefined && other !== undefined)
    return comparisons.has(operator ?? '')
      ? `it compares ${one} with ${other}`
      : `${one} and ${other} don't go together`
  return code.replaceAll('_', ' ')
}

/** How the library names the types of what an operator gets: `dyn<string> > int`. */
const overload = /^no such overload: (?:dyn<)?(\w+)\S* (\S+) (?:dyn<)?(\w+)\S*$/
const comparisons: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>='])

/** CEL's types in plain words. */
const typeWords: ReadonlyMap<string, string> = new Map([
  ['string', 'a text'],
  ['int', 'a number'],
  ['double', 'a number'],
  ['bool', 'true or false'],
  ['null', 'null'],
  ['list', 'a list'],
  ['map', 'an object'],
  ['timestamp', 'a time'],
  ['duration', 'a duration'],
])

function quotedOf(text: string): string {
  return text.length > mostQuoted ? `: ${text.slice(0, mostQuoted)}…` : `: ${text}`
}

/** Characters are counted from 1, for people. */
function placeOf(at: number | undefined): string {
  return at === undefined ? '' : ` at character ${at + 1}`
}

const environment = createEnvironment()

const advice = `write CEL that is true or false, such as event == "Order Completed" && properties.total > 100, on ${[...conditionFields.keys()].join(', ')}`

/** Reads a condition, and checks it by types and by the rules of `checked-tree.ts`. */
export function readCondition(
  text: string,
): { ok: true; condition: Condition } | { ok: false; fault: ConditionFault } {
  if (text.length > conditionLimits.characters) {
    const problem = `has ${text.length} characters`
    return refused(problem, `write at most ${conditionLimits.characters}`)
  }
  let parsed: ParseResult
  try {
    parsed = environment.parse(text)
  } catch (error) {
    if (!(error instanceof ParseError)) return refused("can't be read", advice)
    if (error.code === 'limit_exceeded') return tooLarge()
    return refused(`can't be read: ${lowered(error.summary)}${placeOf(error.range?.start)}`, advice)
  }
  const fault = treeFault(parsed.ast)
  if (fault !== undefined) return refused(`${fault.problem}${placeOf(fault.at)}`, fault.advice)
  const { valid, type, error } = parsed.check()
  if (!valid) return refused(describeTypeFault(error), advice)
  if (type !== 'bool' && type !== 'dyn') return refused(`is of the type ${type ?? 'unknown'}`, advice)
  return { ok: true, condition: new Condition(text, parsed) }
}

function tooLarge(): { ok: false; fault: ConditionFault } {
  const { nodes, depth } = conditionLimits
  return refused(
    `has more than ${nodes} names, values and operators, or more than ${depth} levels`,
    'write less: compare with a list (event in ["A", "B"]), or make two destinations',
  )
}

function refused(problem: string, how: string): { ok: false; fault: ConditionFault } {
  return { ok: false, fault: { problem, advice: how } }
}

function describeTypeFault(error: unknown): string {
  if (!(error instanceof CelTypeError) && !(error instanceof ParseError)) return 'has a fault in its types'
  const summary = error.summary.replaceAll('$type', 'type')
  return `has a fault: ${lowered(summary)}${placeOf(error.range?.start)}`
}

function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

const known = new Map<string, Condition>()
/** As many conditions as any catalog has; each is a few KB. */
const mostKnown = 20_000

/**
 * Returns the condition of a text that the rules of the catalog have allowed. The same text is read only
 * once. Throws if it is none, which would be a bug.
 */
export function conditionOf(text: string): Condition {
  const found = known.get(text)
  if (found !== undefined) return found
  const read = readCondition(text)
  if (!read.ok) throw new Error(`a condition was read that its rules refuse: it ${read.fault.problem}`)
  if (known.size >= mostKnown) known.clear()
  known.set(text, read.condition)
  return read.condition
}
