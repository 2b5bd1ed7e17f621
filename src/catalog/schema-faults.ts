import { Compile } from 'typebox/compile'
import { Settings } from 'typebox/system'
import { maxFaults, type Path } from './fault.ts'
import { labelKeyExpected } from './labels.ts'
import { nearest } from './nearest.ts'
import { childOf, recordOf } from './plain-data.ts'
import { catalogSchema, type CatalogDefinition } from './catalog-schema.ts'

/** A fault that the schema found. `of` says whether the key or the value is wrong. */
type SchemaFault = {
  readonly path: Path
  readonly of: 'key' | 'value'
  readonly problem: string
  readonly advice: string
}

const check = Compile(catalogSchema)

export function checkDefinition(
  value: unknown,
): { ok: true; definition: CatalogDefinition } | { ok: false; faults: readonly SchemaFault[] } {
  if (check.Check(value)) return { ok: true, definition: value }
  return { ok: false, faults: allErrors(value).flatMap((error) => explain(error, value)) }
}

type SchemaError = ReturnType<typeof check.Errors>[number]

/**
 * Lists at most `2 * (maxFaults + 1)` errors of a value. TypeBox reports an unknown key twice, so this many
 * errors still make more than `maxFaults` faults. By default, TypeBox lists only 8 errors. This limit is a
 * setting of the whole process, so it is raised only during this call.
 */
function allErrors(value: unknown): readonly SchemaError[] {
  const { maxErrors } = Settings.Get()
  Settings.Set({ maxErrors: 2 * (maxFaults + 1) })
  try {
    return check.Errors(value)
  } finally {
    Settings.Set({ maxErrors })
  }
}

function explain(error: SchemaError, root: unknown): readonly SchemaFault[] {
  const path = pathOf(error.instancePath, root)
  const value = valueAt(root, path)
  const schema = schemaAt(error.schemaPath)
  const say = (problem: string, advice: string): readonly SchemaFault[] => [
    { path, of: 'value', problem, advice },
  ]

  switch (error.keyword) {
    case 'type':
      return say(
        `must be ${kindName(error.params.type)}, and is ${kindOf(value)}`,
        howToWrite(error.params.type, value),
      )
    case 'enum':
      return say('is not a value that is known here', `write ${either(error.params.allowedValues)}`)
    case 'required':
      return error.params.requiredProperties.map((key) => ({
        path: [...path, key],
        of: 'key',
        problem: 'is missing',
        advice: `add ${key}: ${exampleOf(schema, key)}`,
      }))
    case 'additionalProperties':
      return error.params.additionalProperties.map((key) => unknownKey([...path, key], key, schema))
    // TypeBox also reports this fault under `additionalProperties`, where it names the key.
    case 'boolean':
      return []
    case 'minProperties':
      return say(
        'is empty',
        `write ${either(Object.keys(recordOf(recordOf(schema)['properties'])))}, or remove the key`,
      )
    case 'minItems':
      return say('has too few entries', `write at least ${error.params.limit}`)
    case 'maxItems':
    case 'maxProperties':
      return say('has too many entries', `keep at most ${error.params.limit}`)
    case 'minLength':
      return say('is empty', 'write a value, or remove the key')
    case 'maxLength':
      return say('is too long', `keep at most ${error.params.limit} characters`)
    case 'minimum':
      return say('is too small', `write ${error.params.limit} or more`)
    case 'exclusiveMinimum':
      return say('is too small', `write more than ${error.params.limit}`)
    case 'maximum':
      return say('is too large', `write ${error.params.limit} or less`)
    case 'pattern':
      return say('is not written as it has to be', `write it so: ${textOf(schema, 'description')}`)
    case 'uniqueItems':
      return say('names something twice', 'name each once')
    default:
      throw new Error(`the catalog schema uses a keyword that has no explanation: ${error.keyword}`)
  }
}

function unknownKey(path: Path, key: string, schema: unknown): SchemaFault {
  const properties = recordOf(schema)['properties']
  // Only labels have names that are free.
  if (properties === undefined) {
    const advice = `write a name that has ${labelKeyExpected}`
    return { path, of: 'key', problem: 'is not the name of a label', advice }
  }
  const advice = adviceForKey(key, Object.keys(recordOf(properties)))
  return { path, of: 'key', problem: 'is not a known key', advice }
}

/** The key itself may be a secret (a line `key:value`), so it isn't in the advice. */
function adviceForKey(key: string, known: readonly string[]): string {
  const meant = nearest(key, known)
  return `${meant === undefined ? 'remove it' : `did you mean ${meant}?`}; the keys here are ${known.join(', ')}`
}

/** Joins values to a text such as `on, off or paused`. */
function either(values: readonly unknown[]): string {
  return values.join(', ').replace(/, ([^,]*)$/, ' or $1')
}

function kindName(type: string | readonly string[]): string {
  switch (type) {
    case 'object':
      return 'a block of keys'
    case 'array':
      return 'a list'
    case 'string':
      return 'text'
    case 'integer':
      return 'a whole number'
    case 'number':
      return 'a number'
    case 'boolean':
      return 'true or false'
    default:
      return String(type)
  }
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return 'a list'
  switch (typeof value) {
    case 'object':
      return 'a block of keys'
    case 'string':
      return 'text'
    case 'boolean':
      return 'true or false'
    default:
      return Number.isInteger(value) ? 'a whole number' : 'a number'
  }
}

function howToWrite(type: string | readonly string[], value: unknown): string {
  switch (type) {
    case 'object':
      return 'write its keys below it, one a line: "key: value"'
    case 'array':
      return value === null
        ? 'write its entries below it, each after "- ", or [] for none'
        : 'write each entry after "- "'
    case 'string':
      return typeof value === 'object' ? 'write one value' : 'put the value in quotes'
    case 'integer':
      return 'write digits only, without quotes'
    case 'number':
      return 'write a number such as 0.5, without quotes'
    default:
      return 'write true or false, without quotes'
  }
}

function exampleOf(schema: unknown, key: string): string {
  const property = recordOf(recordOf(recordOf(schema)['properties'])[key])
  const example: unknown = Array.isArray(property['examples']) ? property['examples'][0] : undefined
  if (example !== undefined) return typeof example === 'string' ? example : JSON.stringify(example)
  return property['type'] === 'array' ? '[]' : `... (${textOf(property, 'description')})`
}

function textOf(schema: unknown, key: string): string {
  const text = recordOf(schema)[key]
  return typeof text === 'string' ? `${text.charAt(0).toLowerCase()}${text.slice(1).replace(/\.$/, '')}` : ''
}

/**
 * Converts a JSON pointer into keys and list positions. The pointer belongs to the value `root`. A step
 * becomes a position if the value at this place is a list, and a key otherwise.
 */
function pathOf(pointer: string, root: unknown): Path {
  const path: (string | number)[] = []
  let value = root
  for (const step of stepsOf(pointer)) {
    const key = Array.isArray(value) ? Number(step) : step
    path.push(key)
    value = childOf(value, key)
  }
  return path
}

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>(childOf, root)
}

function schemaAt(pointer: string): unknown {
  return stepsOf(pointer.replace(/^#/, '')).reduce<unknown>(childOf, catalogSchema)
}

function stepsOf(pointer: string): readonly string[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
