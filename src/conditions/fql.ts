import { readCondition } from './condition.ts'
import { FqlFault, type Token, tokensOf } from './fql-tokens.ts'
import { conditionFields } from './limits.ts'

/**
 * Translates a text in Segment's filter language (FQL) into a condition that says the same about each message
 * as the triggers of Segment's destinations do. There, an absent field is null, and a field of another type
 * isn't equal to any value. `fault` says what can't be translated, and where.
 */
export function conditionOfFql(text: string): { ok: true; condition: string } | { ok: false; fault: string } {
  try {
    const condition = new Reader(tokensOf(text)).whole().text
    const read = readCondition(condition)
    if (read.ok) return { ok: true, condition }
    return { ok: false, fault: `its translation ${condition} ${read.fault.problem}: ${read.fault.advice}` }
  } catch (error) {
    if (error instanceof FqlFault)
      return { ok: false, fault: `${error.message} at character ${error.at + 1}` }
    throw error
  }
}

/** A translated part. `binding`: how strongly its outermost operator binds; higher is stronger. */
type Part = { readonly text: string; readonly binding: number }

const orBinding = 1
const andBinding = 2
const comparing = 3
const whole = 4

type Operand =
  | { readonly kind: 'path'; readonly path: readonly string[]; readonly at: number; readonly call?: string }
  | { readonly kind: 'value'; readonly value: string | number | boolean | null; readonly at: number }
  | { readonly kind: 'list'; readonly text: string; readonly at: number }

/** The operator that is true when another one isn't. */
const opposite: Readonly<Record<string, string>> = {
  '=': '!=',
  '!=': '=',
  '<': '>=',
  '>=': '<',
  '>': '<=',
  '<=': '>',
}

class Reader {
  readonly #tokens: readonly Token[]
  #next = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  whole(): Part {
    const part = this.#either(false)
    const rest = this.#peek
    if (rest.kind !== 'end') throw new FqlFault(`${JSON.stringify(rest.value)} is one word too many`, rest.at)
    return part
  }

  get #peek(): Token {
    return this.#tokens[this.#next] ?? { kind: 'end', value: '', at: 0 }
  }

  #take(): Token {
    const token = this.#peek
    this.#next++
    return token
  }

  /** Takes the next token if it is this word or sign. */
  #takes(value: string): boolean {
    const { kind } = this.#peek
    const isIt = (kind === 'sign' || kind === 'name') && this.#peek.value === value
    if (isIt) this.#next++
    return isIt
  }

  #expect(sign: string): void {
    const { at, value } = this.#peek
    if (!this.#takes(sign)) throw new FqlFault(`${sign} is missing before ${JSON.stringify(value)}`, at)
  }

  // A `not` is carried down to the comparisons, because `!` of a condition on an absent field doesn't match.

  #either(isNegated: boolean): Part {
    const parts = [this.#both(isNegated)]
    while (this.#takes('or')) parts.push(this.#both(isNegated))
    return joined(parts, isNegated ? 'and' : 'or')
  }

  #both(isNegated: boolean): Part {
    const parts = [this.#one(isNegated)]
    while (this.#takes('and')) parts.push(this.#one(isNegated))
    return joined(parts, isNegated ? 'or' : 'and')
  }

  #one(isNegated: boolean): Part {
    if (this.#takes('!') || this.#takes('not')) return this.#one(!isNegated)
    if (this.#takes('(')) {
      const part = this.#either(isNegated)
      this.#expect(')')
      return part
    }
    return this.#comparison(isNegated)
  }

  #comparison(isNegated: boolean): Part {
    const name = this.#peek
    if (name.kind === 'name' && (name.value === 'contains' || name.value === 'match')) {
      this.#next++
      return this.#textCall(name.value, isNegated)
    }
    const left = this.#operand()
    const { at } = this.#peek
    if (this.#takes('in')) {
      const text = `${textOf(left)} in ${textOf(this.#operand())}`
      return isNegated ? { text: `!(${text})`, binding: whole } : { text, binding: comparing }
    }
    const operator = this.#take()
    const sign = operator.kind === 'sign' ? operator.value : ''
    const wanted = opposite[sign]
    if (wanted === undefined) throw new FqlFault('a comparison is missing (=, !=, <, <=, >, >= or in)', at)
    const right = this.#operand()
    return compared(left, isNegated ? wanted : sign, right)
  }

  #textCall(name: 'contains' | 'match', isNegated: boolean): Part {
    this.#expect('(')
    const subject = this.#operand()
    this.#expect(',')
    const pattern = this.#take()
    const { at } = pattern
    if (pattern.kind !== 'text')
      throw new FqlFault(`${name}() needs a text in quotes as its second argument`, at)
    const { value } = pattern
    this.#expect(')')
    if (subject.kind !== 'path')
      throw new FqlFault(`${name}() needs a field as its first argument`, subject.at)
    const method = name === 'contains' ? 'contains' : 'glob'
    const argument = JSON.stringify(name === 'contains' ? value : globText(value, at))
    return { text: `${isNegated ? '!' : ''}${textOf(subject)}.${method}(${argument})`, binding: whole }
  }

  #operand(): Operand {
    const token = this.#take()
    const { at } = token
    switch (token.kind) {
      case 'text':
      case 'number':
        return { kind: 'value', value: token.value, at }
      case 'name':
        return this.#named(token.value, at)
      case 'sign':
        if (token.value === '[') return { kind: 'list', text: this.#list(), at }
        throw new FqlFault(`a field or a value is missing before ${JSON.stringify(token.value)}`, at)
      case 'end':
        throw new FqlFault('a field or a value is missing', at)
    }
  }

  #named(name: string, at: number): Operand {
    if (name === 'true' || name === 'false') return { kind: 'value', value: name === 'true', at }
    if (name === 'null') return { kind: 'value', value: null, at }
    if (this.#takes('(')) {
      const subject = this.#operand()
      this.#expect(')')
      if (subject.kind !== 'path') throw new FqlFault(`${name}() needs a field`, at)
      const call = calls[name]
      if (call === undefined) throw new FqlFault(`conditions have nothing for ${name}()`, at)
      return { ...subject, call }
    }
    const path = [name]
    while (this.#takes('.')) {
      const step = this.#take()
      if (step.kind !== 'name') throw new FqlFault('the name of a field is missing after the dot', step.at)
      path.push(step.value)
    }
    return { kind: 'path', path, at }
  }

  #list(): string {
    const items: string[] = []
    while (!this.#takes(']')) {
      if (items.length > 0) this.#expect(',')
      const item = this.#operand()
      if (item.kind !== 'value') throw new FqlFault('a list has only values', item.at)
      items.push(literal(item.value))
    }
    return `[${items.join(', ')}]`
  }
}

/** The functions of FQL, with what they are in a condition: a method, or a function of one argument. */
const calls: Readonly<Record<string, string>> = { lowercase: '.lowerAscii()', length: 'size' }

function joined(parts: readonly Part[], word: 'and' | 'or'): Part {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only
  const binding = word === 'and' ? andBinding : orBinding
  const texts = parts.map(({ text, binding: own }) => (own < binding ? `(${text})` : text))
  return { text: texts.join(word === 'and' ? ' && ' : ' || '), binding }
}

function compared(left: Operand, operator: string, right: Operand): Part {
  if (right.kind === 'path' && left.kind === 'value') return compared(right, turned(operator), left)
  if (left.kind === 'path' && right.kind === 'value') {
    if (right.value === null) return presence(left, operator)
    if (operator === '!=') return differing(left, right.value)
  }
  const sign = operator === '=' ? '==' : operator
  return { text: `${textOf(left)} ${sign} ${textOf(right)}`, binding: comparing }
}

/** Returns the operator with which the sides of a comparison may be exchanged. */
function turned(operator: string): string {
  return operator.replace(/[<>]/, (sign) => (sign === '<' ? '>' : '<'))
}

/** An absent text isn't equal to any text. But only a number is unequal to a number. */
function differing(left: Operand & { kind: 'path' }, value: string | number | boolean): Part {
  const subject = textOf(left)
  const other = literal(value)
  if (typeof value === 'number')
    return { text: `${subject} < ${other} || ${subject} > ${other}`, binding: orBinding }
  const absent = left.path.map((_, at) => `!${hasText(left.path.slice(0, at + 1))}`)
  return { text: `${absent.join(' || ')} || ${subject} != ${other}`, binding: orBinding }
}

function presence({ path, at }: Operand & { kind: 'path' }, operator: string): Part {
  if (operator !== '=' && operator !== '!=') throw new FqlFault('null can only be compared by = and !=', at)
  const steps = path.map((_, step) => hasText(path.slice(0, step + 1)))
  const subject = pathText(['message', ...path])
  if (operator === '!=') return { text: `${steps.join(' && ')} && ${subject} != null`, binding: andBinding }
  return { text: `${steps.map((step) => `!${step}`).join(' || ')} || ${subject} == null`, binding: orBinding }
}

const isName = /^[A-Za-z_][A-Za-z0-9_]*$/
/** Words of CEL that can't be the name of a field after a dot. */
const reserved: ReadonlySet<string> = new Set(['true', 'false', 'null', 'in'])

/** Returns a condition that is true if a field is there, whatever its value is. */
function hasText(path: readonly string[]): string {
  const last = path.at(-1) ?? ''
  const object = pathText(['message', ...path.slice(0, -1)])
  return isName.test(last) && !reserved.has(last)
    ? `has(${object}.${last})`
    : `(${JSON.stringify(last)} in ${object})`
}

function pathText(path: readonly string[]): string {
  return path
    .map((step, at) => {
      if (at === 0) return step
      return isName.test(step) && !reserved.has(step) ? `.${step}` : `[${JSON.stringify(step)}]`
    })
    .join('')
}

function textOf(operand: Operand): string {
  switch (operand.kind) {
    case 'value':
      return literal(operand.value)
    case 'list':
      return operand.text
    case 'path': {
      const { path, call = '' } = operand
      const text = pathText(conditionFields.has(path[0] ?? '') ? path : ['message', ...path])
      if (call === '') return text
      return call.startsWith('.') ? text + call : `${call}(${text})`
    }
  }
}

function literal(value: string | number | boolean | null): string {
  return JSON.stringify(value)
}

/** Returns the pattern of `glob()` that means the same as a pattern of `match()`. */
function globText(pattern: string, at: number): string {
  if (/[?[\]\\]/.test(pattern))
    throw new FqlFault('conditions know only * in patterns, and not ?, [ ] or \\', at)
  return pattern
}
