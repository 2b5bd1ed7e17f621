import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { conditionLimits } from '../conditions/limits.ts'
import { type Mapping, mappingFormats, mappingMethods } from './definition.ts'
import { mappingLimits } from './limits.ts'

const { fields, headers, mappings } = mappingLimits

const fieldList = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 200, description: 'The path of a field.' }), {
    minItems: 1,
    maxItems: fields,
    uniqueItems: true,
    description,
    examples: [['type', 'userId', 'properties.total']],
  })

const mapping = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'The name for people.' })),
    condition: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: conditionLimits.characters,
        description:
          'The messages that the mapping is for, as in filter.condition. Absent: all. A message gets the first mapping that is for it.',
        examples: ['type == "identify"'],
      }),
    ),
    method: Type.Optional(
      Type.Enum([...mappingMethods], { default: 'POST', description: 'The method of the requests.' }),
    ),
    path: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        description:
          'A path that is added to the path of the URL. {{properties.id}} stands for a value of the message, percent-encoded. A message that lacks one becomes a dead letter (mapping_failed).',
        examples: ['/users/{{userId}}'],
      }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        maxProperties: headers,
        description: `Headers whose values are made of the message, each by a directive or as text: at most ${headers}. They take the place of headers of the URL with the same names.`,
        examples: [{ 'X-Event': { '@path': '$.event' } }],
      }),
    ),
    body: Type.Optional(
      Type.Unknown({
        description: `The body in the form of Segment's mapping-kit, with the directives @path, @template, @literal, @if, @case, @replace, @merge, @flatten, @json, @arrayPath and @excludeWhenNull. Absent: the message. A mapping has at most ${mappingLimits.bytes} bytes as JSON.`,
        examples: [{ text: { '@template': '{{event}} by {{userId}}' } }],
      }),
    ),
    format: Type.Optional(
      Type.Enum([...mappingFormats], {
        default: 'json',
        description:
          'json: the body is JSON. form: it is application/x-www-form-urlencoded, and lists and objects in it are JSON.',
      }),
    ),
    allow: Type.Optional(
      fieldList(
        `The only fields of the message that the mapping sees: at most ${fields} paths, such as properties.total.`,
      ),
    ),
    block: Type.Optional(
      fieldList(
        `Fields of the message that the mapping does not see: at most ${fields} paths, such as context.ip.`,
      ),
    ),
  },
  { additionalProperties: false, minProperties: 1, description: 'How a request is made of a message.' },
)

/** The schema of the mappings of a destination. */
export const mappingsSchema = Type.Array(mapping, {
  minItems: 1,
  maxItems: mappings,
  description: `How requests are made of messages: at most ${mappings} mappings, of which the first that is for a message is used. A message that none is for is not sent, except deletes and the Identifies of audiences, which are then sent as they are. Absent: messages are sent as they are. docs/mappings.md has examples.`,
  examples: [[{ body: { text: { '@template': '{{event}} by {{userId}}' } } }]],
})

const compiled = Compile(mappingsSchema)

/** Returns mappings that are valid by the schema, or `undefined`. */
export function readMappings(value: unknown): readonly Mapping[] | undefined {
  return compiled.Check(value) ? value : undefined
}
