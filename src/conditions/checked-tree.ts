import type { ASTNode } from '@marcbachmann/cel-js'
import { conditionFields, conditionLimits, typeName } from './limits.ts'

// Which conditions are allowed. The library knows no limit on the time of an evaluation, and makes
// JavaScript's regular expressions of a text. So only those functions are allowed whose cost is at most the
// size of the message for each node of the tree, or what is sought in it for each character of the condition.
// Nothing in a macro may cost the size of the message for each item.

/** Why a condition isn't allowed. `at`: the place in its text, counted from 0. */
export type TreeFault = { readonly problem: string; readonly advice: string; readonly at: number }

/** The functions that a condition may call, by the number of their arguments. */
const functions: ReadonlyMap<string, number> = new Map([
  ['has', 1],
  ['size', 1],
  ['int', 1],
  ['double', 1],
  ['string', 1],
  ['bool', 1],
  ['timestamp', 1],
  ['duration', 1],
])

/** The methods that a condition may call, by the number of their arguments. */
const methods: ReadonlyMap<string, number> = new Map([
  ['startsWith', 1],
  ['endsWith', 1],
  ['contains', 1],
  ['glob', 1],
  ['lowerAscii', 0],
  ['upperAscii', 0],
  ['trim', 0],
  ['size', 0],
  ['getFullYear', 0],
  ['getMonth', 0],
  ['getDate', 0],
  ['getDayOfMonth', 0],
  ['getDayOfWeek', 0],
  ['getDayOfYear', 0],
  ['getHours', 0],
  ['getMinutes', 0],
  ['getSeconds', 0],
  ['getMilliseconds', 0],
])

/** The macros, which look at each item of a list. Each has the name of the item and a condition on it. */
const macros: ReadonlySet<string> = new Set(['exists', 'all', 'exists_one', 'filter'])

type Comparison = Extract<ASTNode, { readonly op: '==' | '!=' | '<' | '<=' | '>' | '>=' }>

/** The name of the item of the macro in which a node is. `undefined`: it is in none. */
type Scope = string | undefined

/**
 * Finds what isn't allowed in the tree of a condition. Renames the field `type` in the tree, because CEL has
 * a type of this name (`typeName`). So call it once, before the condition is checked by types.
 */
export function treeFault(tree: ASTNode): TreeFault | undefined {
  return faultOf(tree, undefined)
}

function faultOf(node: ASTNode, scope: Scope): TreeFault | undefined {
  switch (node.op) {
    case 'value':
      return undefined
    case 'id':
      return faultOfName(node, scope)
    case 'call':
      return faultOfCall(node, scope)
    case 'rcall':
      return faultOfMethod(node, scope)
    case '.':
      return faultOf(node.args[0], scope)
    case '!_':
    case '-_':
      return faultOf(node.args, scope)
    case 'list':
      return firstFault(node.args, scope)
    case 'map':
      return firstFault(node.args.flat(), scope)
    case '.?':
    case '[?]':
      return fault(node, 'has optional fields (.?)', 'ask with has(), such as has(properties.plan)')
    case '==':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return faultOfComparison(node, scope)
    default:
      return firstFault(node.args, scope)
  }
}

function firstFault(nodes: readonly ASTNode[], scope: Scope): TreeFault | undefined {
  for (const node of nodes) {
    const found = faultOf(node, scope)
    if (found !== undefined) return found
  }
  return undefined
}

function faultOfName(node: ASTNode & { readonly op: 'id' }, scope: Scope): TreeFault | undefined {
  const name = node.args
  if (name === scope) return undefined
  if (scope !== undefined && conditionFields.has(name))
    return fault(
      node,
      `uses ${name} for each item`,
      `in ${[...macros].join('(), ')}(), compare fields of the item with a value, or with one field of the message`,
    )
  // Only the name is another. The place and the text of the node stay, for the faults of the check by types.
  if (name === 'type') Object.assign(node, { args: typeName })
  return undefined
}

/**
 * In a macro, a field of the message may only be compared with something of the item. The cost of such a
 * comparison is at most the size of the item. So all of them together cost no more than the list.
 */
function faultOfComparison(node: Comparison, scope: Scope): TreeFault | undefined {
  const [left, right] = node.args
  if (scope === undefined) return faultOf(left, scope) ?? faultOf(right, scope)
  const ofMessage = [left, right].filter((operand) => isFieldOfMessage(operand, scope))
  const [path] = ofMessage
  if (path === undefined || ofMessage.length !== 1) return faultOf(left, scope) ?? faultOf(right, scope)
  // The path is no part of the macro's own names, so that it is looked at as outside of it.
  return faultOf(path, undefined) ?? faultOf(path === left ? right : left, scope)
}

/** Returns true for a field of the message, such as `properties.plan`, and not for a field of the item. */
function isFieldOfMessage(node: ASTNode, scope: Scope): boolean {
  if (node.op === 'id') return node.args !== scope && conditionFields.has(node.args)
  if (node.op === '.') return isFieldOfMessage(node.args[0], scope)
  return node.op === '[]' && node.args[1].op === 'value' && isFieldOfMessage(node.args[0], scope)
}

function faultOfCall(node: ASTNode & { readonly op: 'call' }, scope: Scope): TreeFault | undefined {
  const [name, given] = node.args
  const wanted = functions.get(name)
  if (wanted === undefined) return unknownCall(node, name)
  if (given.length !== wanted) return wrongNumber(node, name, wanted)
  const [first] = given
  if (name === 'duration' && !isText(first))
    return fault(node, 'takes a duration of the message', 'write it as text, such as duration("24h")')
  return firstFault(given, scope)
}

function faultOfMethod(node: ASTNode & { readonly op: 'rcall' }, scope: Scope): TreeFault | undefined {
  const [name, receiver, given] = node.args
  if (macros.has(name)) return faultOfMacro(node, scope)
  const wanted = methods.get(name)
  if (wanted === undefined) return unknownCall(node, name)
  if (given.length !== wanted) return wrongNumber(node, name, wanted)
  // A search takes as long as the text times what is sought, so that both of a message would be its square.
  if ((name === 'glob' || name === 'contains') && !isText(given[0]))
    return fault(
      node,
      `takes what ${name}() looks for from the message`,
      `write it as text: ${name === 'glob' ? 'glob("Order *")' : 'contains("vip")'}`,
    )
  return firstFault([receiver, ...given], scope)
}

function faultOfMacro(node: ASTNode & { readonly op: 'rcall' }, scope: Scope): TreeFault | undefined {
  const [name, list, [item, predicate]] = node.args
  if (scope !== undefined)
    return fault(node, `has ${name}() in another macro`, 'look at one list only, or write two destinations')
  if (item?.op !== 'id' || predicate === undefined)
    return fault(node, `has ${name}() without a name and a condition`, `write ${name}(item, item.price > 10)`)
  if (conditionFields.has(item.args))
    return fault(item, `gives an item the name ${item.args}`, 'choose one that no field of a message has')
  if (!isCheapRange(list, predicate))
    return fault(
      list,
      `makes the list of ${name}() from others`,
      'name one list of the message, such as properties.items, or write a macro for each list',
    )
  return faultOf(list, undefined) ?? faultOf(predicate, item.args)
}

/**
 * Returns true if a predicate on each item of a list costs no more than one on each item of a list of the
 * message. A list that is put together can have its parts many times.
 */
function isCheapRange(list: ASTNode, predicate: ASTNode): boolean {
  switch (list.op) {
    case 'id':
    case '.':
    case '[]':
      return true
    case 'rcall':
      return list.args[0] === 'filter'
    case '?:':
      return list.args.slice(1).every((branch) => isCheapRange(branch, predicate))
    case 'list':
      return (
        list.args.every(({ op }) => op === 'value') ||
        nodesOf(list) * nodesOf(predicate) <= conditionLimits.nodes
      )
    default:
      return false
  }
}

function nodesOf(part: unknown): number {
  if (Array.isArray(part)) return part.reduce((sum: number, one) => sum + nodesOf(one), 0)
  if (typeof part !== 'object' || part === null || !('args' in part)) return 0
  return 1 + nodesOf(part.args)
}

function isText(node: ASTNode | undefined): boolean {
  return node?.op === 'value' && typeof node.args === 'string'
}

function unknownCall(node: ASTNode, name: string): TreeFault {
  if (name === 'matches')
    return fault(
      node,
      'has matches(), whose regular expressions can take any time',
      'use glob(), such as event.glob("Order *"), or startsWith(), endsWith(), contains()',
    )
  if (name === 'map') return fault(node, 'has map()', 'ask with exists(), all(), or filter(…).size()')
  const known = [...new Set([...functions.keys(), ...methods.keys(), ...macros])].join(', ')
  return fault(node, `has ${name}(), which conditions don't have`, `use only ${known}`)
}

function wrongNumber(node: ASTNode, name: string, wanted: number): TreeFault {
  const takes = wanted === 0 ? 'nothing' : 'one argument'
  return fault(node, `calls ${name}() wrongly`, `${name}() takes ${takes}`)
}

function fault(node: ASTNode, problem: string, advice: string): TreeFault {
  return { problem, advice, at: node.start }
}
