import { Environment } from '@marcbachmann/cel-js'
import { globOf } from '../message/glob.ts'
import { conditionFields, conditionLimits, typeName } from './limits.ts'

/** The operators between the numbers of JSON, which are all doubles, and whole numbers in conditions. */
const arithmetic: Readonly<Record<string, (left: number, right: number) => number>> = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  '/': (left, right) => left / right,
  '%': (left, right) => left % right,
}

/** Creates the environment in which conditions are parsed, checked and evaluated. */
export function createEnvironment(): Environment {
  const { nodes, depth } = conditionLimits
  const environment = new Environment({
    limits: { maxAstNodes: nodes, maxDepth: depth, maxListElements: nodes, maxMapEntries: nodes },
  })
  for (const [name, type] of conditionFields)
    environment.registerVariable(name === 'type' ? typeName : name, type)
  environment.registerFunction({
    signature: 'string.glob(string): bool',
    handler: (text: string, pattern: string) => knownGlob(pattern)(text),
    async: false,
  })
  for (const [operator, result] of Object.entries(arithmetic)) {
    const handler = (left: number | bigint, right: number | bigint): number =>
      result(Number(left), Number(right))
    environment.registerOperator(`double ${operator} int`, handler)
    environment.registerOperator(`int ${operator} double`, handler)
  }
  environment.registerOperator('double % double', (left: number, right: number) => left % right)
  return environment
}

const globs = new Map<string, (text: string) => boolean>()
/** Patterns are written in conditions, so there are as many as the catalog has. */
const mostGlobs = 10_000

function knownGlob(pattern: string): (text: string) => boolean {
  let glob = globs.get(pattern)
  if (glob === undefined) {
    if (globs.size >= mostGlobs) globs.clear()
    globs.set(pattern, (glob = globOf(pattern)))
  }
  return glob
}
