import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

/** A call that writes a line of the log. */
export type FoundLine = {
  readonly level: string
  /** The message. `…` stands for a part that is known only when the program runs. */
  readonly message: string
  /** The file, from the folder of the project. */
  readonly file: string
}

/** A call whose message can't be read from its file. */
export type UnknownLine = {
  readonly level: string
  readonly file: string
  /** The expression of the message, as the file has it. */
  readonly expression: string
}

const levels: ReadonlySet<string> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
const unknownPart = '…'

/** Finds all calls in `src` that write a line of the log. */
export function findLogLines(root: string): { lines: readonly FoundLine[]; unknown: readonly UnknownLine[] } {
  const lines: FoundLine[] = []
  const unknown: UnknownLine[] = []
  for (const file of globSync('src/**/*.ts', { cwd: root }).toSorted()) {
    const code = readFileSync(join(root, file), 'utf8')
    if (!/[lL]og(?:ger)?\??\s*\.\s*(?:trace|debug|info|warn|error|fatal)\(/.test(code)) continue
    const program: unknown = parseAst(code, { lang: 'ts' })
    const texts = textsIn(program)
    for (const { level, message } of callsIn(program)) {
      const messages = messagesOf(message, texts)
      if (messages === undefined) unknown.push({ level, file, expression: sourceOf(message, code) })
      else for (const one of messages) lines.push({ level, message: one, file })
    }
  }
  return { lines, unknown }
}

type Node = { readonly type: string; readonly [field: string]: unknown }

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

function* nodesIn(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* nodesIn(item)
  if (!isNode(value)) return
  yield value
  for (const [name, field] of Object.entries(value)) if (name !== 'parent') yield* nodesIn(field)
}

/** Returns the constants of a file that are texts, by name. */
function textsIn(program: unknown): ReadonlyMap<string, Node> {
  const texts = new Map<string, Node>()
  for (const node of nodesIn(program)) {
    if (node.type !== 'VariableDeclarator' || !isNode(node['id']) || !isNode(node['init'])) continue
    const { name } = node['id']
    if (typeof name === 'string') texts.set(name, node['init'])
  }
  return texts
}

function* callsIn(program: unknown): Generator<{ level: string; message: Node }> {
  for (const node of nodesIn(program)) {
    if (node.type !== 'CallExpression' || !isNode(node['callee']) || !Array.isArray(node['arguments']))
      continue
    const { callee, arguments: given } = { callee: node['callee'], arguments: node['arguments'] }
    const level = nameOf(callee['property'])
    const object = isNode(callee['object']) ? callee['object'] : undefined
    const holder = object && (nameOf(object['property']) ?? nameOf(object))
    if (level === undefined || !levels.has(level) || holder === undefined || !/log(?:ger)?$/i.test(holder))
      continue
    const message: unknown = given.at(-1)
    if (isNode(message)) yield { level, message }
  }
}

function nameOf(node: unknown): string | undefined {
  return isNode(node) && typeof node['name'] === 'string' ? node['name'] : undefined
}

/** Returns the texts that an expression may be. `undefined`: they can't be told from the file. */
function messagesOf(node: unknown, texts: ReadonlyMap<string, Node>): readonly string[] | undefined {
  if (!isNode(node)) return undefined
  switch (node.type) {
    case 'Literal':
      return typeof node['value'] === 'string' ? [node['value']] : undefined
    case 'TemplateLiteral':
      return templateOf(node, texts)
    case 'Identifier': {
      const known = texts.get(nameOf(node) ?? '')
      return known === undefined ? undefined : messagesOf(known, texts)
    }
    case 'ConditionalExpression': {
      const [one, other] = [messagesOf(node['consequent'], texts), messagesOf(node['alternate'], texts)]
      return one && other && [...one, ...other]
    }
    case 'BinaryExpression': {
      const [left, right] = [messagesOf(node['left'], texts), messagesOf(node['right'], texts)]
      return left && right && left.flatMap((begin) => right.map((end) => begin + end))
    }
    default:
      return undefined
  }
}

function templateOf(node: Node, texts: ReadonlyMap<string, Node>): readonly string[] | undefined {
  const { quasis, expressions } = node
  if (!Array.isArray(quasis) || !Array.isArray(expressions)) return undefined
  const parts = quasis.map((quasi: { value: { cooked: string } }) => quasi.value.cooked)
  const whole = parts.reduce((text, part, at) => {
    const between = messagesOf(expressions[at - 1], texts)
    return `${text}${between?.length === 1 ? (between[0] ?? '') : unknownPart}${part}`
  })
  return /[a-z]{3}/.test(whole) ? [whole] : undefined
}

function sourceOf(node: Node, code: string): string {
  const [start, end] = [Number(node['start']), Number(node['end'])]
  return code.slice(start, end).replaceAll(/\s+/g, ' ')
}
