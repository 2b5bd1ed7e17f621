import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { timestampPattern } from './timestamp.ts'

/** The kinds of message, which are the values of `type` (the specification, section 6). */
export const messageKinds = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const
export type MessageKind = (typeof messageKinds)[number]

/**
 * The name of the field with the attributes of a message, by the kind of the message. Receivers always get an
 * object in this field.
 */
export const attributesFields = {
  identify: 'traits',
  track: 'properties',
  page: 'properties',
  screen: 'properties',
  group: 'traits',
  alias: undefined,
  delete: undefined,
} as const satisfies Record<MessageKind, 'properties' | 'traits' | undefined>

/** Segment's limit on `messageId`. */
export const MAX_MESSAGE_ID_CHARACTERS = 100

const openObject = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}))

// In all schemas, `null` and an empty string mean "absent". For example, clients send `"userId": null` with
// an anonymousId.
const id = (description: string) => Type.Optional(Type.Union([Type.String(), Type.Null()], { description }))
const object = (description: string) => Type.Optional(Type.Union([openObject, Type.Null()], { description }))
const filled = (description: string) => Type.String({ minLength: 1, description })

const everywhere = {
  userId: id('The id of the user who did this. It is also the key of the record.'),
  anonymousId: id('An id for the user while the userId is unknown. It is then the key of the record.'),
  messageId: Type.Optional(
    Type.Union([Type.String({ maxLength: MAX_MESSAGE_ID_CHARACTERS }), Type.Null()], {
      description:
        'The id of the message. If a source sends an id again, Sluice drops the repeat. If it is absent, Sluice makes one from topic, partition and offset.',
    }),
  ),
  timestamp: Type.Optional(
    Type.Union([Type.String({ pattern: timestampPattern }), Type.Literal(''), Type.Null()], {
      description:
        'The time when this happened, in ISO 8601. A time without a zone is UTC. If it is absent, the time when the record was appended is taken.',
    }),
  ),
  context: object(
    'Facts about the device, the IP address and the like. If it is absent, an empty object is sent.',
  ),
  integrations: object(
    'Names destinations. false leaves out a destination; All: false leaves out all destinations that are not named.',
  ),
}

const traits = object('The traits of the user or the group. If they are absent, an empty object is sent.')
const properties = object(
  'The properties of the event, the page or the screen. If they are absent, an empty object is sent.',
)

/** Makes a schema that requires at least one of the fields to be a string that isn't empty. */
const someOf = (...names: string[]) => ({
  anyOf: names.map((name) => ({
    required: [name],
    properties: { [name]: { type: 'string', minLength: 1 } },
  })),
})
const userOrAnonymous = someOf('userId', 'anonymousId')

const kindSchemas = {
  identify: Type.Object({ type: Type.Literal('identify'), ...everywhere, traits }, userOrAnonymous),
  track: Type.Object(
    { type: Type.Literal('track'), ...everywhere, event: filled('The name of the event.'), properties },
    userOrAnonymous,
  ),
  page: Type.Object({ type: Type.Literal('page'), ...everywhere, properties }, userOrAnonymous),
  screen: Type.Object({ type: Type.Literal('screen'), ...everywhere, properties }, userOrAnonymous),
  group: Type.Object(
    {
      type: Type.Literal('group'),
      ...everywhere,
      groupId: filled('The id of the group that the user belongs to.'),
      traits,
    },
    userOrAnonymous,
  ),
  alias: Type.Object(
    {
      type: Type.Literal('alias'),
      ...everywhere,
      previousId: id('The id that was used so far.'),
      'User ID': id('The same as userId: receivers get both spellings, producers may send either.'),
      'Previous ID': id('The same as previousId.'),
    },
    { allOf: [someOf('userId', 'User ID'), someOf('previousId', 'Previous ID')] },
  ),
  delete: Type.Object({ type: Type.Literal('delete'), ...everywhere }, someOf('userId')),
} satisfies Record<MessageKind, unknown>

const event = Type.Union([
  kindSchemas.identify,
  kindSchemas.track,
  kindSchemas.page,
  kindSchemas.screen,
  kindSchemas.group,
  kindSchemas.alias,
  kindSchemas.delete,
])

/**
 * The schema of a message that a producer writes to the topic `events`. `schemas/event.schema.json` is
 * generated from this schema. Fields that the schema doesn't name are allowed and are delivered unchanged.
 */
export const eventSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Event',
  description:
    'A Segment-spec message on the events topic. Null and an empty string count as absent. Fields that are not ' +
    'named here are delivered unchanged. A timestamp must also be a day of the calendar.',
  ...event,
}

/** A message that is valid by `eventSchema`. It may have other fields too. */
export type Message = Static<typeof event>

/**
 * The schemas of the kinds in `eventSchema`. Each is compiled separately, so that the errors concern only the
 * kind that the message's `type` names.
 */
export const kindChecks = {
  identify: Compile(kindSchemas.identify),
  track: Compile(kindSchemas.track),
  page: Compile(kindSchemas.page),
  screen: Compile(kindSchemas.screen),
  group: Compile(kindSchemas.group),
  alias: Compile(kindSchemas.alias),
  delete: Compile(kindSchemas.delete),
} satisfies Record<MessageKind, unknown>

type FieldCheck = { Check(value: unknown): boolean }

/**
 * The rules of a kind, field by field. `someOf`: lists of fields, of each of which at least one must be
 * filled.
 */
export type FieldRules = {
  readonly required: readonly string[]
  readonly fields: readonly (readonly [name: string, check: FieldCheck])[]
  readonly someOf: readonly (readonly string[])[]
}

const userFields: FieldRules['someOf'] = [['userId', 'anonymousId']]
const someOfFields: Partial<Record<MessageKind, FieldRules['someOf']>> = {
  alias: [
    ['userId', 'User ID'],
    ['previousId', 'Previous ID'],
  ],
  delete: [['userId']],
}
const fieldChecks = new Map<unknown, FieldCheck>()
const fieldRules = new Map<MessageKind, FieldRules>()

/** Returns the rules of a kind. They are compiled only when a message breaks one. */
export function fieldRulesOf(kind: MessageKind): FieldRules {
  const known = fieldRules.get(kind)
  if (known !== undefined) return known
  const { properties: ofKind, required } = kindSchemas[kind]
  const fields = Object.entries(ofKind).map(([name, schema]) => {
    const check = fieldChecks.get(schema) ?? Compile(schema)
    fieldChecks.set(schema, check)
    return [name, check] as const
  })
  const rules: FieldRules = { required, fields, someOf: someOfFields[kind] ?? userFields }
  fieldRules.set(kind, rules)
  return rules
}
