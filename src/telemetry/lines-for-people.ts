import { styleText } from 'node:util'
import type { DestinationStream } from 'pino'
import { printable } from '../message/printable.ts'

type Fields = Readonly<Record<string, unknown>>

/** Fields that a line for people shows elsewhere, or not at all. */
const shownElsewhere: ReadonlySet<string> = new Set(['level', 'time', 'msg'])
/** The most characters of a field. The JSON lines have the whole. */
const mostCharacters = 200

/**
 * Turns JSON lines of the log into lines that a person reads at a terminal, such as `14:03:05 → crm 200 in 12
 * ms  track order-4711`. Times are local. Line breaks of values are shown as `\n`.
 */
export class LinesForPeople implements DestinationStream {
  readonly #output: DestinationStream
  readonly #paint: Paint

  constructor(output: DestinationStream, { hasColours }: { readonly hasColours: boolean }) {
    this.#output = output
    this.#paint = hasColours ? (style, text) => styleText(style, text, { validateStream: false }) : plain
  }

  write(json: string): void {
    for (const line of json.split('\n')) if (line !== '') this.#output.write(`${this.#line(line)}\n`)
  }

  #line(json: string): string {
    const fields = fieldsIn(json)
    if (fields === undefined) return printable(json)
    const time = this.#paint('dim', localTime(fields['time']))
    return `${time} ${this.#said(fields)}`
  }

  #said(fields: Fields): string {
    if (isAttempt(fields)) return this.#attempt(fields)
    return fields['nextInMs'] === undefined ? this.#other(fields) : this.#nextTry(fields)
  }

  #attempt(fields: Fields): string {
    const isDelivered = fields['verdict'] === 'delivered'
    const answer = textOf(fields['status'] ?? fields['code'] ?? fields['outcome'])
    const mark = this.#paint(isDelivered ? 'green' : 'red', isDelivered ? '→' : '✗')
    const hook = fields['detail'] === undefined ? '' : ` (${textOf(fields['detail'])})`
    const tries = fields['attempt'] === 1 ? '' : `, attempt ${textOf(fields['attempt'])}`
    const about = this.#paint('dim', `${textOf(fields['type'])} ${textOf(fields['messageId'])}`)
    const host = fields['host'] === undefined ? '' : ` from ${textOf(fields['host'])}`
    return `${mark} ${textOf(fields['destination'])} ${answer}${hook}${host} in ${textOf(fields['durationMs'])} ms${tries}  ${about}`
  }

  #nextTry(fields: Fields): string {
    const mark = this.#paint('yellow', '↻')
    const about = this.#paint('dim', `${textOf(fields['type'])} ${textOf(fields['messageId'])}`)
    const seconds = Math.round(Number(fields['nextInMs']) / 1_000)
    const wait = seconds >= 120 ? `${Math.round(seconds / 60)} min` : `${seconds} s`
    return `${mark} ${textOf(fields['destination'])} is tried again at ${localTime(fields['nextAt'])}, in ${wait}  ${about}`
  }

  #other(fields: Fields): string {
    const level = textOf(fields['level'])
    const rest = Object.entries(fields)
      .filter(([name]) => !shownElsewhere.has(name))
      .map(([name, value]) => `${name}=${textOf(value)}`)
      .join(' ')
    const message = textOf(fields['msg'])
    const said =
      level === 'info' || level === 'debug' ? message : `${this.#paint('yellow', level)} ${message}`
    return rest === '' ? said : `${said}  ${this.#paint('dim', rest)}`
  }
}

type Paint = (style: 'dim' | 'green' | 'red' | 'yellow', text: string) => string

const plain: Paint = (_, text) => text

function fieldsIn(json: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(json)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- lines of pino are objects
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined
  } catch {
    return undefined
  }
}

function isAttempt(fields: Fields): boolean {
  return fields['verdict'] !== undefined && fields['destination'] !== undefined
}

function localTime(time: unknown): string {
  const date = new Date(typeof time === 'string' || typeof time === 'number' ? time : Date.now())
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  const line = printable(text).replaceAll('\n', String.raw`\n`)
  return line.length > mostCharacters ? `${line.slice(0, mostCharacters)}…` : line
}
