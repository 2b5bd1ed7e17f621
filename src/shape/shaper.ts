import { withOwnKeys } from '../message/json/json.ts'
import { isJsonObject } from '../conditions/json-value.ts'
import type { MessageView } from '../conditions/message-view.ts'
import { Compiler } from './compile.ts'
import { type MappingMethod, type RequestMapping, requestText } from './definition.ts'
import { takeAll } from './directives.ts'
import { MappingFault, Steps } from './fault.ts'
import { fieldTree, onlyFields, withoutFields } from './fields.ts'
import { formOf } from './form.ts'
import { mappingLimits } from './limits.ts'
import type { Make } from './part.ts'
import { fillPath, readPath, type RequestPath } from './request-path.ts'
import { textOf } from './template.ts'

const jsonType = 'application/json'
const formType = 'application/x-www-form-urlencoded'

/** What a mapping makes of a message: the parts of its requests that the message decides. */
export type Shaped = {
  readonly method: MappingMethod
  /** Added to the path of the URL. '': nothing. */
  readonly path: string
  /** Name, value, name, value. They take the place of headers of the hook with the same names. */
  readonly headers: readonly string[]
  readonly contentType: string
  /** The bytes of the body. They are the message's own if the mapping doesn't change the body. */
  readonly body: Buffer
}

/** Returns true if a message needs a request of its own, because more of it than its body is made. */
export function isOwnRequest(shaped: Shaped | undefined): boolean {
  if (shaped === undefined) return false
  const { method, path, headers, contentType } = shaped
  return method !== 'POST' || path !== '' || headers.length > 0 || contentType !== jsonType
}

/** Returns true if all messages of a mapping need a request of their own, whatever they contain. */
export function makesOwnRequests({ method = 'POST', path, format }: RequestMapping): boolean {
  return method !== 'POST' || path !== undefined || format === 'form'
}

export type ShapeResult = { ok: true; shaped: Shaped } | { ok: false; detail: string }

/** A mapping that was read, and is applied to any number of messages. */
export class Shaper {
  /** The mapping as a text, by which the same requests can be made again later. */
  readonly text: string
  readonly #method: MappingMethod
  readonly #isForm: boolean
  readonly #path: RequestPath | undefined
  readonly #headers: readonly (readonly [name: string, make: Make])[]
  readonly #body: Make | undefined
  readonly #allow: ReturnType<typeof fieldTree> | undefined
  readonly #block: ReturnType<typeof fieldTree> | undefined

  /** Throws a `MappingFault` if the mapping can't be used. */
  constructor(mapping: RequestMapping) {
    this.text = requestText(mapping)
    const bytes = Buffer.byteLength(this.text)
    if (bytes > mappingLimits.bytes)
      throw new MappingFault([], `has ${bytes} bytes as JSON`, `write at most ${mappingLimits.bytes}`)
    const compiler = new Compiler()
    const { method = 'POST', path, headers = {}, body, format, allow, block } = mapping
    this.#method = method
    this.#isForm = format === 'form'
    this.#path = path === undefined ? undefined : readPath(path)
    this.#headers = Object.entries(headers).map(
      ([name, value]) => [name, compiler.part(value, ['headers', name])] as const,
    )
    this.#body = body === undefined ? undefined : compiler.part(body, ['body'])
    this.#allow = allow && fieldTree(allow)
    this.#block = block && fieldTree(block)
  }

  /**
   * Makes the parts of the requests for a message. Never throws. The same message always gives the same
   * bytes, and takes at most `mappingLimits.steps` steps.
   */
  of(message: MessageView, ownBody: Buffer): ShapeResult {
    try {
      return { ok: true, shaped: this.#shaped(message, ownBody) }
    } catch (error) {
      if (!(error instanceof MappingFault)) throw error
      const where = error.path.length === 0 ? 'the mapping' : error.path.join('.')
      return { ok: false, detail: `${where} ${error.message}: ${error.advice}` }
    }
  }

  #shaped(message: MessageView, ownBody: Buffer): Shaped {
    const steps = new Steps(mappingLimits.steps)
    let payload: unknown = message.value
    if (this.#allow !== undefined) payload = onlyFields(payload, this.#allow, steps)
    if (this.#block !== undefined) payload = withoutFields(payload, this.#block, steps)
    return {
      method: this.#method,
      path: this.#path === undefined ? '' : fillPath(this.#path, payload),
      headers: this.#headers.length === 0 ? none : this.#headersOf(payload, steps),
      contentType: this.#isForm ? formType : jsonType,
      body: this.#bodyOf(payload, payload === message.value ? ownBody : undefined, steps),
    }
  }

  #headersOf(payload: unknown, steps: Steps): readonly string[] {
    return this.#headers.flatMap(([name, make]) => {
      const value = make(payload, steps)
      if (value === undefined || value === null) return []
      takeAll(value, steps)
      const text = textOf(value).trim()
      if (/^[\t\x20-\x7e\xa0-\xff]{0,2000}$/.test(text)) return [name, text]
      throw new MappingFault(
        ['headers', name],
        'gets a value that no header can have',
        'headers have at most 2,000 Latin-1 characters in one line',
      )
    })
  }

  /** `own`: the bytes of the body if the message isn't changed. */
  #bodyOf(payload: unknown, own: Buffer | undefined, steps: Steps): Buffer {
    if (this.#body === undefined && own !== undefined && !this.#isForm) return own
    const value = this.#body === undefined ? payload : this.#body(payload, steps)
    takeAll(value, steps)
    // JSON.stringify gives the canonical form: whoever parses and stringifies it gets the same text.
    const text = this.#isForm ? formOf(value) : JSON.stringify(value)
    if (text === undefined)
      throw new MappingFault(['body'], 'makes no body of this message', 'give it a value for each message')
    const body = Buffer.from(text)
    if (body.length > mappingLimits.bodyBytes)
      throw new MappingFault(
        ['body'],
        `makes a body of more than ${mappingLimits.bodyBytes} bytes`,
        'map less',
      )
    return body
  }
}

const none: readonly string[] = []

/** The shapers of the catalog's mappings. An entry of the catalog that stays the same keeps its object. */
const ofCatalog = new WeakMap<RequestMapping, Shaper>()

/** Returns the shaper of a mapping that the rules of the catalog have allowed. It is read only once. */
export function shaperOf(mapping: RequestMapping): Shaper {
  let shaper = ofCatalog.get(mapping)
  if (shaper === undefined) ofCatalog.set(mapping, (shaper = shaperOfText(requestText(mapping))))
  return shaper
}

const known = new Map<string, Shaper>()
/** As many mappings as any catalog has, and those of messages that wait for a retry. */
const mostKnown = 20_000

/**
 * Returns the shaper of a mapping that was written to Kafka as `Shaper.text`. The same text is read only
 * once. Throws if it is no mapping that can be used.
 */
export function shaperOfText(text: string): Shaper {
  let shaper = known.get(text)
  if (shaper !== undefined) return shaper
  if (known.size >= mostKnown) known.clear()
  const mapping = withOwnKeys(text, JSON.parse(text))
  if (!isJsonObject(mapping)) throw new Error('it is no mapping')
  shaper = new Shaper(mapping)
  // A mapping of a newer version may have more fields, without which another request would be made.
  if (shaper.text !== text) throw new Error('it is no mapping that this version has written')
  known.set(text, shaper)
  return shaper
}
