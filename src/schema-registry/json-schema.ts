import { Ajv, type AnySchemaObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type PayloadReader, refuseFramed } from './frame.ts'
import { parseJson } from '../message/json/json.ts'
import { asAjvTakes, multipleOf, uniqueItems } from './json-keywords.ts'

/** Matches the parts of a regular expression that need the flag `u`: properties and code points. */
const unicodeOnly = /\\(?:[pP]|u)\{/

/**
 * Compiles a pattern of a schema. With the flag `u`, JavaScript refuses needless escapes, such as `\@`, which
 * JSON Schema allows. A pattern with such escapes is compiled without the flag.
 */
function compilePattern(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags)
  } catch (error) {
    if (unicodeOnly.test(pattern)) throw error
    return new RegExp(pattern)
  }
}

/**
 * Options with which Ajv, like a schema registry, ignores unknown keywords and formats. A schema with any
 * other fault can't be compiled.
 */
const options: Options = {
  strict: false,
  validateSchema: false,
  validateFormats: false,
  ownProperties: true,
  logger: false,
  // Ajv demands the property `code`, and needs its text only to write the compiled schema to a file.
  code: { regExp: Object.assign(compilePattern, { code: 'compilePattern' }) },
}

/** A schema to which another schema refers. */
export type ReferencedSchema = {
  /** The name in the list of references. It may differ from the `$id`, and many schemas have no `$id`. */
  readonly name: string
  readonly schema: unknown
}

/**
 * Compiles a schema by the rules of its draft (4, 6, 7, 2019-09 or 2020-12). Throws if the schema can't be
 * used.
 */
export function compileJsonSchema(
  schema: unknown,
  referenced: readonly ReferencedSchema[] = [],
): ValidateFunction {
  const main = takenOf(schema, 'it')
  const ajv = createAjv(main.$schema)
  ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems)
  ajv.removeKeyword('multipleOf').addKeyword(multipleOf)
  // Ajv refuses `id`, which was a keyword in draft 4. In later drafts, it is an unknown keyword, and has to
  // be ignored.
  ajv.removeKeyword('id')
  const base: unknown = main.$id
  // A referenced schema may have the same `$id` as this schema, for example because it was copied. It is then
  // added only under the name by which this schema refers to it.
  const known = new Set(typeof base === 'string' ? [absoluteId(ajv, base, '')] : [])
  for (const { name, schema: other } of referenced) {
    const taken = takenOf(other, name)
    const ownId: unknown = taken.$id
    for (const each of typeof ownId === 'string' ? [ownId, name] : [name]) {
      const id = absoluteId(ajv, each, base)
      if (known.has(id)) continue
      known.add(id)
      ajv.addSchema({ ...taken, $id: id }, id)
    }
  }
  const validate = ajv.compile(main)
  // With `$async`, the function returns a promise. A promise is truthy, so every value would be valid, and a
  // rejection would end the process.
  if ('$async' in validate) throw new Error('it says $async, a keyword of Ajv and not of JSON Schema')
  return validate
}

/** Returns a schema as Ajv takes it. A schema may also be a boolean: everything fits, or nothing does. */
function takenOf(schema: unknown, name: string): AnySchemaObject {
  if (typeof schema === 'boolean') return schema ? {} : { not: {} }
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) return asAjvTakes(schema)
  throw new Error(`${name} is neither an object nor a boolean`)
}

/** Resolves an id in the same way as Ajv resolves a reference in a schema with the id `base`. */
function absoluteId({ opts }: Ajv, id: string, base: unknown): string {
  try {
    return opts.uriResolver.resolve(typeof base === 'string' ? base : '', id).replace(/#$/, '')
  } catch {
    return id
  }
}

function createAjv(draft: unknown): Ajv {
  const name = typeof draft === 'string' ? draft : ''
  if (name.includes('/2020-12/')) return new Ajv2020(options)
  if (name.includes('/2019-09/')) return new Ajv2019(options)
  return new Ajv(options)
}

const maxDetailCharacters = 300

/** Creates a reader of JSON that a schema describes. The reader returns exactly the bytes that were sent. */
export function createJsonReader(validate: ValidateFunction): PayloadReader {
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  return (payload) => {
    let text: string
    try {
      text = utf8.decode(payload)
    } catch {
      return refuseFramed('not_utf8', 'it is not UTF-8')
    }
    const parsed = parseJson(text)
    if (!parsed.ok) return refuseFramed('not_json', 'it is not JSON')
    try {
      if (validate(parsed.value)) return { ok: true, value: payload }
    } catch (error) {
      if (error instanceof RangeError) return refuseFramed('schema_mismatch', 'it is nested too deeply')
      throw error
    }
    const [fault] = validate.errors ?? []
    // The text names only the place in the schema. It doesn't name the path within the value, because this
    // path could contain keys of the message.
    const detail = `${fault?.schemaPath ?? '#'}: ${fault?.message ?? 'is not met'}`
    // The text is cut, because a dead letter has limited room, and names in a schema can have any length.
    return refuseFramed('schema_mismatch', detail.slice(0, maxDetailCharacters))
  }
}
