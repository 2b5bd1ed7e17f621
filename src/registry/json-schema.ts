import { Ajv, type AnySchemaObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type PayloadReader, refuseFramed } from './frame.ts'
import { parseJson } from '../message/json.ts'

/**
 * As forgiving as a schema registry is: keywords that nobody knows and formats mean nothing. A schema that is faulty in
 * another way can't be compiled.
 */
const options: Options = {
  strict: false,
  validateSchema: false,
  validateFormats: false,
  ownProperties: true,
  logger: false,
}

/**
 * Stands in for the one Ajv that the registry's library would make, which knows draft 7 alone: here each schema gets one of its
 * own draft (6, 7, 2019-09, 2020-12). Made anew for each schema.
 */
export class JsonSchemaCompiler {
  readonly #referenced: AnySchemaObject[] = []
  #validate: ValidateFunction | undefined

  /** What the last schema was compiled to. */
  get validate(): ValidateFunction | undefined {
    return this.#validate
  }

  addSchema(schema: AnySchemaObject): this {
    this.#referenced.push(schema)
    return this
  }

  compile(schema: AnySchemaObject): ValidateFunction {
    const ajv = createAjv(schema.$schema)
    for (const referenced of this.#referenced) ajv.addSchema(referenced, referenced.$id)
    this.#validate = ajv.compile(schema)
    return this.#validate
  }
}

function createAjv(draft: unknown): Ajv {
  const name = typeof draft === 'string' ? draft : ''
  if (name.includes('/2020-12/')) return new Ajv2020(options)
  if (name.includes('/2019-09/')) return new Ajv2019(options)
  return new Ajv(options)
}

/** Makes a reader of JSON that a schema describes: the value is what was sent, to the byte. */
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
    // Of the schema only: the path within the value could quote its keys.
    return refuseFramed('schema_mismatch', `${fault?.schemaPath ?? '#'}: ${fault?.message ?? 'is not met'}`)
  }
}
